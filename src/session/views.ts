// Catalog rows as the public Checkpoint.
import { RewindError } from "../errors.ts";
import type { CheckpointRow } from "../store/catalog.ts";
import type { Checkpoint, CheckpointKind, CheckpointState } from "./types.ts";

export const checkpointId = (row: { seq: number }): string => `c${row.seq}`;

/** The number of a checkpoint's id. @throws BAD_CHECKPOINT */
export function parseCheckpointId(id: string): number {
  const match = /^c?(\d{1,9})$/i.exec(id.trim());
  if (match !== null) return Number(match[1]);
  throw new RewindError("BAD_CHECKPOINT", `"${id.slice(0, 60)}" is not the id of a checkpoint.`, {
    hint: "Ids look like c7; list the checkpoints to see them.",
  });
}

export interface ViewContext {
  readonly head: number | null;
  /** Whether a row lies on the head's lineage. */
  readonly isActive: (id: number) => boolean;
  readonly seqOf: (id: number) => number | undefined;
}

export function toCheckpoint(row: CheckpointRow, view: ViewContext): Checkpoint {
  const parent = row.parent === null ? undefined : view.seqOf(row.parent);
  return {
    id: checkpointId(row),
    thread: row.thread_name,
    parent: parent === undefined ? null : `c${parent}`,
    pruned: row.pruned,
    turn: row.turn,
    kind: row.kind as CheckpointKind,
    state: row.state as CheckpointState,
    reason: row.reason,
    label: row.label,
    createdAt: row.created_at,
    anchor: row.anchor,
    messages: row.messages,
    environment: { files: row.files, processes: row.processes },
    changes: row.changes === null ? null : JSON.parse(row.changes),
    activity: JSON.parse(row.activity),
    problems: JSON.parse(row.problems),
    timings: JSON.parse(row.timings),
    head: row.id === view.head,
    active: view.isActive(row.id),
  };
}
