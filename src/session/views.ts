// Catalog rows as the public Checkpoint.
import { RewindError } from "../errors.ts";
import type { CheckpointRow, Partial } from "../store/rows.ts";
import type { Effect } from "./effect-types.ts";
import type { Checkpoint, CheckpointKind, CheckpointState } from "./types.ts";

export const checkpointId = (row: { seq: number }): string => `c${row.seq}`;
export const branchId = (branch: number): string => `b${branch}`;

/** What an id says: "c7", or "b2/c7" for a checkpoint of another branch; "b0" is the thread from which all were forked. */
export interface ParsedId {
  readonly branch: number | null;
  readonly seq: number;
}

/** @throws BAD_CHECKPOINT */
export function parseCheckpointId(id: string): ParsedId {
  const match = /^(?:b(\d{1,9})\/)?c?(\d{1,9})$/i.exec(id.trim());
  if (match !== null) return { branch: match[1] === undefined ? null : Number(match[1]), seq: Number(match[2]) };
  throw new RewindError("BAD_CHECKPOINT", `"${id.slice(0, 60)}" is not the id of a checkpoint.`, {
    hint: "Ids look like c7; list the checkpoints to see them.",
  });
}

export interface ViewContext {
  readonly head: number | null;
  /** Whether a row lies on the head's lineage. */
  readonly isActive: (id: number) => boolean;
  /** The row's id as this thread knows it. */
  readonly nameOf: (row: CheckpointRow) => string;
  readonly find: (id: number) => CheckpointRow | undefined;
  readonly effectsOf: (id: number) => readonly Effect[];
}

export function toCheckpoint(row: CheckpointRow, view: ViewContext): Checkpoint {
  const parent = row.parent === null ? undefined : view.find(row.parent);
  return {
    id: view.nameOf(row),
    thread: row.thread_name,
    branch: row.branch === null ? null : branchId(row.branch),
    parent: parent === undefined ? null : view.nameOf(parent),
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
    partial: partialOf(row, view),
    changes: row.changes === null ? null : JSON.parse(row.changes),
    activity: JSON.parse(row.activity),
    problems: JSON.parse(row.problems),
    timings: JSON.parse(row.timings),
    effects: view.effectsOf(row.id),
    head: row.id === view.head,
    active: view.isActive(row.id),
  };
}

function partialOf(row: CheckpointRow, view: ViewContext): Checkpoint["partial"] {
  if (row.partial === null) return null;
  const { from, paths } = JSON.parse(row.partial) as Partial;
  const source = view.find(from);
  return { from: source === undefined ? null : view.nameOf(source), paths };
}
