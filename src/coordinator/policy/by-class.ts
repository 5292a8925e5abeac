// Captures before and after actions of some classes.
import type { PolicyClass } from "./actions.ts";
import type { Wants } from "./policy.ts";

export interface ByClass {
  /** When the reply is there and holds such a call, before its tools run: they wait for it. */
  readonly before?: readonly PolicyClass[] | undefined;
  /** At the beginning of the turn behind such a call. */
  readonly after?: readonly PolicyClass[] | undefined;
}

/** What cannot be judged counts as whatever is asked for. */
export function byClass({ before = [], after = [] }: ByClass): Wants {
  const part = (name: string, classes: readonly PolicyClass[]): string[] =>
    classes.length === 0 ? [] : [`${name} ${classes.join(", ")}`];
  return {
    name: [...part("before", before), ...part("after", after)].join("; ") || "never",
    wants({ moment, classes }) {
      const asked = moment === "begin" ? after : before;
      return asked.length > 0 && classes.some((one) => one === "unknown" || asked.includes(one));
    },
  };
}
