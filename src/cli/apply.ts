// `apply`: what was made in a sandbox, on the host.
import type { Applied } from "../environment/environment.ts";
import { safe } from "../text/safe.ts";
import { plural } from "../text/words.ts";
import type { Global } from "./global.ts";
import type { Output } from "./output.ts";
import { give } from "./writer.ts";

export interface ApplyOptions {
  readonly overwrite?: boolean;
  readonly dryRun?: boolean;
}

export async function apply(
  global: Global,
  paths: readonly string[],
  { overwrite = false, dryRun = false }: ApplyOptions,
): Promise<Output> {
  const request = { ...(paths.length === 0 ? {} : { paths }), overwrite, dryRun };
  const applied = await give<Applied>(global, {
    command: "apply",
    arguments: request,
    here: (_, rewind) => rewind.apply(request),
    begins: false,
  });
  return {
    json: { ...applied, dryRun },
    text: (paint) => {
      const { added, changed, removed, conflicts, notApplied } = applied;
      const of = (letter: string, list: readonly string[]) => list.map((path) => `  ${letter} ${safe(path)}`);
      const count = added.length + changed.length + removed.length;
      return [
        `${dryRun ? "Would bring back" : "Brought back"} ${plural(count, "path")}${count === 0 ? "." : ":"}`,
        ...[...of("A", added), ...of("M", changed), ...of("D", removed)],
        ...(conflicts.length === 0
          ? []
          : [
              paint("yellow", `${plural(conflicts.length, "path")} changed on the host as well, left as they are:`),
              ...of("C", conflicts),
            ]),
        ...notApplied.map(({ path, reason }) => paint("yellow", `left out: ${safe(path)}: ${reason}`)),
      ];
    },
  };
}
