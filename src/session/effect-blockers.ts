// Why a call may not simply be made: it was made already, an equivalent one is done in the world, or its one-time credential is used up.
import type { EffectRow } from "../store/effects.ts";
import type { ThreadRow } from "../store/rows.ts";
import { canonical, keyOf } from "./canonical.ts";
import type { SessionDeps } from "./deps.ts";
import type { EffectDefinition } from "./effect-rules.ts";
import type { ToolRun } from "./effect-types.ts";
import { knownNow } from "./known-effects.ts";

/** What is asked of the record before a call. */
export interface Asked {
  readonly thread: ThreadRow;
  readonly tool: string;
  readonly args: unknown;
  readonly callId: string | null;
  readonly inside: ToolRun<unknown>["inside"];
  /** Digests of the one-time credentials that it would use up. */
  readonly consumes: readonly string[];
  /** Token of a consent; undefined where the model gave none. */
  readonly confirm: string | undefined;
}

export interface Blocker {
  readonly effect: EffectRow;
  /** "same": this very call; "done": an equivalent one; "consumed": its credential is used up. */
  readonly why: "same" | "done" | "consumed";
}

export interface Found {
  readonly blocker?: Blocker;
  /** This very call, whose first try did nothing. */
  readonly again?: EffectRow;
}

export function findBlocker(deps: SessionDeps, asked: Asked): Found {
  const { catalog, effects: rules, running } = deps;
  const { thread, tool, callId, consumes } = asked;
  let same = callId === null ? undefined : catalog.effectByCall(thread.id, callId);
  if (same?.state === "replayed") same = catalog.effect(same.replays as number);
  const harmless = rules.onRepeat(tool) === "allow" && same?.state === "recorded" && !running.has(same.id);
  const didNothing = same?.state === "withdrawn" || same?.state === "failed";
  if (same !== undefined && !didNothing && !harmless) return { blocker: { effect: same, why: "same" } };
  const again = same === undefined ? {} : { again: same };
  const done = findEquivalent(deps, asked, same);
  if (done !== undefined) return { ...again, blocker: { effect: done, why: "done" } };
  const consumer = consumes.length === 0 ? undefined : catalog.consumerOf(thread.id, consumes);
  if (consumer === undefined || consumer.id === same?.id) return again;
  return { ...again, blocker: { effect: consumer, why: "consumed" } };
}

/** The newest that is done and that the conversation does not tell of. */
function findEquivalent(
  deps: SessionDeps,
  { thread, tool, args, inside }: Asked,
  own: EffectRow | undefined,
): EffectRow | undefined {
  const { catalog, effects: rules, running } = deps;
  const definition = rules.of(tool) as EffectDefinition;
  const isTold = knownNow(deps, thread);
  const isKnown = (row: EffectRow): boolean => isTold(row) && !isOfEarlierRun(row, inside);
  const rows = catalog.familyEffects(thread.id, tool);
  // Behind a replay the conversation tells of the original's result.
  const replayed = new Set(rows.filter((row) => row.state === "replayed" && isKnown(row)).map((row) => row.replays));
  const inTheWay = (row: EffectRow): boolean => {
    if (running.has(row.id) || replayed.has(row.id) || row.id === own?.id) return false;
    // What nobody knows the end of is in the way wherever it was begun.
    if (row.state === "recorded") return true;
    if (row.state === "failed") return definition.onFailure === "unknown";
    return ["completed", "compensating", "uncompensated"].includes(row.state) && !isKnown(row);
  };
  const isEquivalent = equivalence(definition, args);
  return rows.findLast((row) => inTheWay(row) && isEquivalent(row));
}

const isOfEarlierRun = ({ id, call }: EffectRow, inside: Asked["inside"]): boolean =>
  inside !== undefined && call?.startsWith(`${inside.call}/`) === true && !inside.made.has(id);

function equivalence({ equals, key }: EffectDefinition, args: unknown): (row: EffectRow) => boolean {
  if (equals !== undefined) return (row) => equals(JSON.parse(row.arguments), args);
  const whole = canonical(args, "The arguments of a call");
  const wanted = key === undefined ? undefined : keyOf(args, key);
  if (key === undefined || wanted === undefined) return (row) => row.arguments === whole;
  return (row) => keyOf(JSON.parse(row.arguments), key) === wanted;
}
