// What a policy came to on a recorded thread: what was captured, what that cost, and how much work lies between two checkpoints that can be restored.
import type { Checkpoint } from "./types.ts";
import { isNotCaptured } from "./uncaptured.ts";

export interface CaptureStats {
  /** Model decisions, those of abandoned branches included. */
  readonly turns: number;
  /** Of these: with a state of the environment of their own. */
  readonly captured: number;
  /** Of these: with that of the checkpoint before, since nothing had changed. */
  readonly unchanged: number;
  /** Of these: left out, as `capture` was set. */
  readonly notCaptured: number;
  /** Of these: not restorable for another reason. */
  readonly failed: number;
  /** Written to the store for all of them. */
  readonly bytes: number;
  /** Milliseconds in which the agent waited, in all. */
  readonly exposedMs: number;
  /** The most turns of work that lie between two neighbouring checkpoints of the head's line that can be restored, its beginning and the present included. */
  readonly worstLoss: number;
}

/** @param all every checkpoint of the thread, in any order */
export function captureStats(all: readonly Checkpoint[]): CaptureStats {
  const byId = new Map(all.map((one) => [one.id, one]));
  const turns = all.filter(({ kind }) => kind === "turn");
  const restorable = turns.filter(({ state }) => state !== "not-restorable");
  const unchanged = restorable.filter((one) => hasHalvesOf(one, restorableBefore(one, byId))).length;
  const notCaptured = turns.filter(isNotCaptured).length;
  return {
    turns: turns.length,
    captured: restorable.length - unchanged,
    unchanged,
    notCaptured,
    failed: turns.length - restorable.length - notCaptured,
    bytes: turns.reduce((sum, { timings }) => sum + timings.bytes, 0),
    exposedMs: turns.reduce((sum, { timings }) => sum + timings.exposedMs, 0),
    worstLoss: worstLoss(all.filter(({ active }) => active)),
  };
}

function restorableBefore({ parent }: Checkpoint, byId: ReadonlyMap<string, Checkpoint>): Checkpoint | undefined {
  let at = parent === null ? undefined : byId.get(parent);
  while (at?.state === "not-restorable") at = at.parent === null ? undefined : byId.get(at.parent);
  return at;
}

const hasHalvesOf = ({ environment }: Checkpoint, before: Checkpoint | undefined): boolean =>
  before !== undefined &&
  environment.files === before.environment.files &&
  environment.processes === before.environment.processes;

function worstLoss(line: readonly Checkpoint[]): number {
  if (line.length === 0) return 0;
  const points = line.filter(({ state }) => state !== "not-restorable").map(({ turn }) => turn);
  return longestGap(points, Math.max(...line.map(({ turn }) => turn)));
}

/** The most turns of work between two neighbours of `points`, the line's beginning and the end of its last turn included. */
export function longestGap(points: readonly number[], last: number): number {
  const end = last + 1;
  const sorted = [Math.min(1, end), ...points, end].sort((a, b) => a - b);
  return Math.max(...sorted.map((turn, index) => turn - (sorted[index - 1] ?? turn)));
}
