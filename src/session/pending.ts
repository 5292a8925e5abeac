// Rewinds from outside that a framework has not heard of yet.
import type { CheckpointRow, RewindRow, ThreadRow } from "../store/rows.ts";
import type { Alignment } from "./alignment.ts";
import type { SessionDeps } from "./deps.ts";
import type { RewindResult } from "./types.ts";

/**
 * The rewinds from outside that the framework does not know, without those that were undone before a model call was made behind them, and those behind
 * which the model decided before the next one came.
 */
export function undelivered(deps: SessionDeps, thread: ThreadRow): RewindRow[] {
  let pending: RewindRow[] = [];
  for (const row of deps.catalog.rewinds(thread.id)) {
    if (row.delivered !== 0) continue;
    if (isTakenOver(deps, pending, row.head_before)) pending = [];
    const last = pending.at(-1);
    const nothingSince = last !== undefined && [last.target, last.head_before].includes(row.head_before);
    if (row.kind === "undo" && nothingSince && last.undone !== 0) pending.pop();
    else pending.push(row);
  }
  return pending;
}

/** The newest checkpoint on the line that a decision or a step made: others are made beside the conversation. */
export function decision({ catalog }: SessionDeps, from: number | null): CheckpointRow | undefined {
  return catalog.lineage(from).find((row) => row.kind === "turn" || row.kind === "step");
}

/** Whether a decision whose reply came was made on the line to `head` since: its context holds what they restored. */
export function isTakenOver(deps: SessionDeps, pending: readonly RewindRow[], head: number | null): boolean {
  const last = pending.at(-1);
  if (last === undefined) return false;
  const { catalog } = deps;
  const target = last.target === null ? undefined : catalog.checkpoint(last.target);
  const left = last.scope === "environment" && target?.kind !== "partial" ? last.head_before : last.target;
  const from = decision(deps, left)?.id;
  for (const row of catalog.lineage(head)) {
    if (row.id === from) return false;
    if (row.kind === "step" || (row.kind === "turn" && row.tools !== "unknown")) return true;
  }
  return false;
}

/** What moved the conversation last, and what came after it. */
export async function deliver(
  { catalog }: SessionDeps,
  pending: readonly RewindRow[],
  result: (row: RewindRow) => Promise<RewindResult>,
): Promise<Alignment> {
  const from = Math.max(
    0,
    pending.findLastIndex((row) => row.scope !== "environment"),
  );
  const results: RewindResult[] = [];
  for (const row of pending.slice(from)) results.push(await result(row));
  return { status: "deliver", results, epoch: catalog.epoch() };
}
