// One run: a trace under a policy, killed once as planned, recovered as the policy does it, and verified.
import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { beginLife, type CheckpointLine, type Life, type Told, type Verified } from "./agent.ts";
import { startModel, type TraceModel, turnOfCall } from "./model.ts";
import { makePlace } from "./place.ts";
import type { Kill } from "./plan.ts";
import type { Policy } from "./policies.ts";
import type { Trace } from "./traces/trace.ts";

export interface Run {
  readonly trace: string;
  readonly family: string;
  readonly kind: Trace["kind"];
  readonly policy: string;
  readonly seed: number;
  readonly scale: number;
  readonly kill: Kill | null;
  readonly pass: boolean;
  readonly why: string;
  /** Milliseconds from the first start of the agent to its last end, the verifier and cleaning up left out. */
  readonly ms: number;
  /** Replies of the model that the run had already and asked for again. */
  readonly modelCallsRepeated: number;
  /** Tool runs that had ended and were made again. */
  readonly toolRunsRepeated: number;
  /** The same of the turn of the kill, and with pairs of the one before: no log line, no pair behind them need have been there yet. */
  readonly toolRunsRedone: number;
  /** What was under way in the moment of the kill and was begun again. */
  readonly begunAgain: number;
  readonly turns: number;
  /** Of the pairs with a parent, how often a half was the parent's own. */
  readonly captures: {
    readonly made: number;
    readonly filesSkipped: number;
    readonly processesSkipped: number;
    readonly bothSkipped: number;
    readonly notRestorable: number;
  };
  readonly bytes: number;
  readonly exposedMs: number;
}

/** What the agent has said and asked for so far, over all of its lives. */
interface Seen {
  readonly begun: string[];
  readonly ended: string[];
}

export async function runTrace(
  trace: Trace,
  policy: Policy,
  seed: number,
  kill: Kill | null,
  scale: number,
): Promise<Run> {
  const place = makePlace(trace);
  const seen: Seen = { begun: [], ended: [] };
  let life: Life | undefined;
  let killed = false;
  let finishedAt = 0;
  const strike = async (delayMs: number): Promise<void> => {
    await sleep(delayMs);
    if (killed || kill === null) return;
    killed = true;
    life?.kill(kill.victim);
  };
  const model = await startModel(trace, scale, (turn, latencyMs) => {
    const isIts = kill?.moment === "model" && kill.turn === turn && !killed;
    return isIts ? strike(Math.min(kill.delayMs, latencyMs)).then(() => false) : true;
  });
  const onTold = (told: Told): void => {
    if (told.type === "finished") finishedAt = performance.now();
    if (told.type === "tool") seen.begun.push(told.call);
    if (told.type === "tool-done") seen.ended.push(told.call);
    if (kill === null || !("call" in told) || turnOfCall(told.call) !== kill.turn) return;
    const last = told.call.endsWith(`_${(trace.turns[kill.turn]?.calls.length ?? 1) - 1}`);
    if (told.type === "tool" && kill.moment === "tool") void strike(kill.delayMs);
    if (told.type === "tool-done" && last) void strike(kill.moment === "behind" ? kill.delayMs : 0);
  };
  const live = (): Promise<Verified | undefined> => {
    life = beginLife(place, trace, policy, model.baseUrl, onTold);
    return life.ended;
  };
  try {
    place.makeFresh();
    const start = performance.now();
    let verified = await live();
    if (kill !== null) {
      if (!killed) throw new Error(`${trace.id}: the agent ended before it was killed: ${life?.stderr()}`);
      if (policy.keeps !== "pairs") place.makeFresh();
      verified = await live();
    }
    const said = verified?.why ?? `the agent failed: ${(life?.stderr() ?? "").trim().slice(-600)}`;
    const why = said.replaceAll(place.workspace, "work");
    const ms = (finishedAt === 0 ? performance.now() : finishedAt) - start;
    return {
      ...{ trace: trace.id, family: trace.family, kind: trace.kind, policy: policy.name, seed, scale, kill },
      ...{ pass: verified?.pass ?? false, why, ms },
      ...counted(model, seen, kill, policy.keeps),
      turns: trace.turns.length + 1,
      ...captured(verified?.checkpoints ?? []),
    };
  } finally {
    await model.close();
    place.remove();
  }
}

/** What had ended before the kill and was done once more. What need not have been kept yet (no pair, no log line behind it) counts apart. */
function counted(model: TraceModel, { begun, ended }: Seen, kill: Kill | null, keeps: Policy["keeps"]) {
  const repeats = (list: readonly unknown[]): number => list.length - new Set(list).size;
  const lastReply = kill === null ? 0 : kill.moment === "model" ? kill.turn - 1 : kill.turn;
  const modelCalls = repeats(model.answered.filter((turn) => keeps === "nothing" || turn <= lastReply));
  const toolRuns = repeats(ended);
  // A log has the results of the turn before; its pair is only captured while the model is asked again.
  const unsure = { nothing: Number.POSITIVE_INFINITY, conversation: kill?.turn ?? 0, pairs: (kill?.turn ?? 0) - 1 }[
    keeps
  ];
  const unkept = repeats(ended.filter((call) => turnOfCall(call) >= unsure));
  return {
    modelCallsRepeated: modelCalls,
    toolRunsRepeated: toolRuns - unkept,
    toolRunsRedone: unkept,
    begunAgain: repeats(model.asked) - modelCalls + repeats(begun) - toolRuns,
  };
}

function captured(checkpoints: readonly CheckpointLine[]): Pick<Run, "captures" | "bytes" | "exposedMs"> {
  const byId = new Map(checkpoints.map((one) => [one.id, one]));
  const turns = checkpoints.filter(({ kind, parent }) => kind === "turn" && parent !== null);
  const kept = (half: "files" | "processes") => (one: CheckpointLine) =>
    one[half] === byId.get(one.parent as string)?.[half];
  const files = turns.filter(kept("files"));
  return {
    captures: {
      made: turns.length,
      filesSkipped: files.length,
      processesSkipped: turns.filter(kept("processes")).length,
      bothSkipped: files.filter(kept("processes")).length,
      notRestorable: checkpoints.filter(({ state }) => state === "not-restorable").length,
    },
    bytes: checkpoints.reduce((sum, { bytes }) => sum + bytes, 0),
    exposedMs: checkpoints.reduce((sum, { exposedMs }) => sum + exposedMs, 0),
  };
}
