// Takes down the turns of one process that observes.
import type { Policy } from "../coordinator/policy/policy.ts";
import type { Manifest } from "../environment/environment.ts";
import type { BegunTurn, RepliedTurn, TurnName, TurnObserver } from "../session/observer.ts";
import { changedHalves } from "../session/turn-stats.ts";
import type { ObserveLine } from "./lines.ts";
import { type FactCall, factCall, type TurnFacts } from "./turns.ts";

export interface ObserverOptions {
  readonly classesOf: Policy["classesOf"];
  /** Bytes that captures would have stored since the last call. */
  readonly takeBytes: () => number;
  readonly write: (line: ObserveLine) => void;
}

export class Observer implements TurnObserver {
  readonly #options: ObserverOptions;
  readonly #turns = new Map<string, TurnFacts>();
  /** Of the newest turn of each thread: its reply's calls, in full. */
  readonly #replies = new Map<string, readonly FactCall[]>();
  #last: Manifest | undefined;

  constructor(options: ObserverOptions) {
    this.#options = options;
  }

  /** In the order in which they began. */
  turns(): TurnFacts[] {
    return [...this.#turns.values()];
  }

  began(one: BegunTurn): void {
    const { manifest, thread, turn } = one;
    const bytes = this.#options.takeBytes();
    const told = one.calls.map((call) =>
      factCall({ tool: call.tool, input: String(call.input) }, this.#options.classesOf),
    );
    const before = this.#last;
    if (manifest !== undefined) this.#last = manifest;
    this.#put(one, {
      ...{ thread, turn, bytes, at: Date.now(), exposedMs: 0, overlappedMs: one.workMs, reply: null },
      // What ran is told in a short form; what was asked for is known in full.
      calls: told.length > 0 ? (sameCalls(this.#replies.get(thread), told) ?? told) : [],
      changed: before === undefined || manifest === undefined ? null : changedHalves(before, manifest),
    });
    this.#replies.delete(thread);
  }

  replied({ tools, calls, timings, ...name }: RepliedTurn): void {
    const input = (given: unknown): string => (typeof given === "string" ? given : (JSON.stringify(given) ?? ""));
    const asked = calls?.map((one) => ({
      name: factCall({ tool: one.tool, input: input(one.input) }, this.#options.classesOf).name,
      classes: this.#options.classesOf(one),
    }));
    if (asked !== undefined) this.#replies.set(name.thread, asked);
    const { exposedMs, overlappedMs } = timings;
    this.#change(name, { reply: tools ? (asked ?? null) : [], exposedMs, overlappedMs });
  }

  waited(name: TurnName, ms: number): void {
    const found = this.#turns.get(keyOf(name));
    if (found !== undefined) this.#change(name, { exposedMs: found.exposedMs + ms });
  }

  #change(name: TurnName, change: Partial<TurnFacts>): void {
    const found = this.#turns.get(keyOf(name));
    if (found !== undefined) this.#put(name, { ...found, ...change });
  }

  #put(name: TurnName, facts: TurnFacts): void {
    const key = keyOf(name);
    this.#turns.set(key, facts);
    this.#options.write({ kind: "turn", key, facts });
  }
}

const keyOf = ({ thread, id }: TurnName): string => `${thread}/${id}`;

/** The calls that were asked for, where it is these that ran. */
function sameCalls(asked: readonly FactCall[] | undefined, ran: readonly FactCall[]): readonly FactCall[] | undefined {
  const tool = ({ name }: FactCall): string => name.split(":")[0] as string;
  const same = asked?.length === ran.length && asked.every((one, i) => tool(one) === tool(ran[i] as FactCall));
  return same ? asked : undefined;
}
