// Rewinds from outside that a framework has not heard of yet.
import type { RewindRow } from "../store/rows.ts";
import type { Alignment } from "./alignment.ts";
import type { SessionDeps } from "./deps.ts";
import type { RewindResult } from "./types.ts";

/** The rewinds from outside that the framework does not know, without those that were undone before a model call was made behind them. */
export function undelivered(rewinds: readonly RewindRow[]): RewindRow[] {
  const pending: RewindRow[] = [];
  for (const row of rewinds) {
    if (row.delivered !== 0) continue;
    const last = pending.at(-1);
    const nothingSince = last !== undefined && [last.target, last.head_before].includes(row.head_before);
    if (row.kind === "undo" && nothingSince && last.undone !== 0) pending.pop();
    else pending.push(row);
  }
  return pending;
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
