// What moves a thread's head: a rewind, an undo, an alignment or an adoption, and what is stored of it.
import type { FileChanges, Manifest, Problem } from "../environment/environment.ts";
import type { CheckpointRow, ThreadRow } from "../store/rows.ts";
import type { SessionDeps } from "./deps.ts";
import type { Activity, Scope } from "./types.ts";

export interface Move {
  readonly thread: ThreadRow;
  readonly target: CheckpointRow;
  readonly kind: "rewind" | "undo" | "align" | "adopt";
  readonly by: "agent" | "caller" | "framework";
  readonly scope: Scope;
  /** Only these go back, and the head becomes a checkpoint of its own; null: all. */
  readonly paths: readonly string[] | null;
  /** Number of the branch that ends with it. */
  readonly adopts: number | null;
  readonly external: "keep" | "restore";
  readonly key: string | null;
  readonly lesson: string | null;
  readonly undoes: number | null;
  readonly delivered: boolean;
  readonly deliveredTexts: readonly string[];
  readonly carried: number;
  /** Stores the context that is left, or null when it is the head's. Returns its name and length. */
  readonly storeCurrent: (() => Promise<{ name: string; messages: number; serializer: string }>) | null;
}

/** What is stored of a rewind, so that it can be told again. */
export interface MoveResult {
  readonly message: string;
  readonly restored: FileChanges;
  readonly notRestored: readonly Problem[];
  readonly external: readonly string[];
  readonly conflicts: readonly string[];
  readonly lessons: readonly number[];
  readonly timings: { readonly exposedMs: number; readonly overlappedMs: number; readonly bytes: number };
}

/** What the intent holds: enough to finish after a kill. */
export interface Payload
  extends Pick<
    Move,
    | "kind"
    | "by"
    | "scope"
    | "paths"
    | "adopts"
    | "key"
    | "lesson"
    | "undoes"
    | "delivered"
    | "deliveredTexts"
    | "carried"
  > {
  readonly target: number;
  readonly left: number;
  /** Number of the checkpoint that a restore of paths makes. */
  readonly seq: number | null;
  readonly headBefore: number | null;
  readonly keep: readonly string[];
  readonly external: readonly string[];
  readonly conflicts: readonly string[];
}

export const nothing: FileChanges = { added: [], removed: [], changed: [], mode: [], type: [], renamed: [] };
export const noActivity: Activity = { said: "", actions: [] };

export const manifestOf = (row: CheckpointRow): Manifest => ({ files: row.files, processes: row.processes });

/** The checkpoints after `target` that lead to `head`; all of the head's line behind their last common one when the target lies elsewhere. */
export function lineBetween(deps: SessionDeps, target: number, head: number | null): CheckpointRow[] {
  const line = deps.catalog.lineage(head).reverse();
  const targets = new Set(deps.catalog.lineage(target).map((row) => row.id));
  return line.filter((row) => !targets.has(row.id));
}
