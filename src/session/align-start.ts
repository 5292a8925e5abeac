// The framework begins a conversation once more: the files of its first decision.
import { RewindError } from "../errors.ts";
import type { CheckpointRow, ThreadRow } from "../store/rows.ts";
import { requireRestorable } from "./admissible.ts";
import type { Alignment } from "./alignment.ts";
import type { SessionDeps } from "./deps.ts";
import { checkpointId } from "./views.ts";

/** @throws NOT_RESTORABLE, also where that decision was pruned; SHARED_ENVIRONMENT */
export async function alignToStart(
  deps: SessionDeps,
  thread: ThreadRow,
  move: (target: CheckpointRow, scope: "both") => Promise<void>,
): Promise<Alignment> {
  const { catalog } = deps;
  const line = catalog.lineage(thread.head);
  const first = line.findLast((row) => row.kind === "turn");
  if (first === undefined) return { status: "new", epoch: catalog.epoch() };
  if (first.turn > 1) throw pruned(thread, first);
  requireRestorable(deps, first, "both");
  await move(first, "both");
  catalog.markDelivered(thread.id);
  return { status: "moved", checkpoint: checkpointId(first), epoch: catalog.epoch() };
}

const pruned = (thread: ThreadRow, first: CheckpointRow): RewindError =>
  new RewindError(
    "NOT_RESTORABLE",
    `The files with which thread "${thread.name}" began cannot be restored: its first checkpoints were pruned.`,
    {
      hint: `Go on from ${checkpointId(first)}, the oldest that is kept, or begin a new thread.`,
      details: { checkpoint: null, nearest: checkpointId(first) },
    },
  );
