// Turns as facts: what ran, what it changed, and what a capture of it cost or would cost. Recorded threads and observed ones are told in the same form.
import type { Declarations, PolicyClass } from "../coordinator/policy/actions.ts";
import { every } from "../coordinator/policy/by-name.ts";
import { type Policy, policyOf } from "../coordinator/policy/policy.ts";
import { checkpointTool } from "../session/tools.ts";
import { callName, changedHalves, type TurnClass } from "../session/turn-stats.ts";
import type { Checkpoint, ToolAction } from "../session/types.ts";

export interface FactCall {
  /** The tool; of a shell's also the program, and its subcommand. */
  readonly name: string;
  readonly classes: readonly PolicyClass[];
}

export interface TurnFacts {
  readonly thread: string;
  /** Number of the model decision in its line, from 1. */
  readonly turn: number;
  /** When it began, in milliseconds since 1970. */
  readonly at: number;
  /** What ran since the turn before. */
  readonly calls: readonly FactCall[];
  /** What its reply calls; null where tools ran that nobody told of. */
  readonly reply: readonly FactCall[] | null;
  /** Against the turn before; null where that cannot be told, which counts as both where it decides. */
  readonly changed: TurnClass | null;
  /** What a capture stores of it. */
  readonly bytes: number;
  /** Milliseconds in which the agent waited, the capture beginning together with the model call. */
  readonly exposedMs: number;
  /** Milliseconds of work beside the model call. */
  readonly overlappedMs: number;
}

/** Classes of calls, as a policy sees them. */
export const classifier = (
  declared: Declarations["declared"] = () => [],
  tools: Declarations["tools"] = {},
): Policy["classesOf"] => policyOf(every, { tools, declared }).classesOf;

export function factCall(call: Pick<ToolAction, "tool" | "input">, classesOf: Policy["classesOf"]): FactCall {
  return { name: callName(call), classes: classesOf(call) };
}

/** A capture is owed before it, whatever the policy. */
export const isOwed = ({ name, classes }: FactCall): boolean =>
  name === checkpointTool.name || classes.includes("irreversible") || classes.includes("destructive");

/** The turns of the head's line. @param all every checkpoint of one thread */
export function recordedTurns(all: readonly Checkpoint[]): TurnFacts[] {
  const classesOf = classifier();
  const byId = new Map(all.map((one) => [one.id, one]));
  const line = all.filter(({ active, kind }) => active && kind === "turn");
  const callsOf = ({ activity }: Checkpoint): FactCall[] => activity.actions.map((one) => factCall(one, classesOf));
  return line.map((one, index) => {
    const next = line[index + 1];
    return {
      ...{ thread: one.thread, turn: one.turn, at: Date.parse(one.createdAt), calls: callsOf(one) },
      reply: next === undefined ? [] : callsOf(next),
      changed: changedSince(one, one.parent === null ? undefined : byId.get(one.parent)),
      ...one.timings,
    };
  });
}

function changedSince(one: Checkpoint, before: Checkpoint | undefined): TurnClass | null {
  if (before === undefined || before.state === "not-restorable" || one.state === "not-restorable") return null;
  return changedHalves(before.environment, one.environment);
}
