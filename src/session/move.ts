// What moves a thread's head: a rewind, an undo, an alignment or an adoption, and what is stored of it.
import type { FileChanges, Manifest, Problem } from "../environment/environment.ts";
import type { CheckpointRow, NewLesson, ThreadRow } from "../store/rows.ts";
import type { SessionDeps, StoredContext } from "./deps.ts";
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
  readonly lesson: NewLesson | null;
  /** Must succeed in the restored files; null: nothing must. */
  readonly verify: Check | null;
  readonly undoes: number | null;
  readonly delivered: boolean;
  readonly deliveredTexts: readonly string[];
  readonly carried: number;
  /** Stores the context that is left, or null when it is the head's. Returns its name and length. */
  readonly storeCurrent: (() => Promise<StoredContext>) | null;
}

/** A command, and how long it may take. */
export interface Check {
  readonly command: string | readonly string[];
  readonly timeoutMs: number;
}

/** What is stored of a rewind, so that it can be told again; what older versions did not store is not there. */
export interface MoveResult {
  readonly message: string;
  readonly effects?: readonly string[];
  readonly contacted?: readonly string[];
  readonly compensated?: readonly string[];
  readonly uncompensated?: readonly string[];
  readonly restored: FileChanges;
  readonly notRestored: readonly Problem[];
  readonly stopped?: readonly string[];
  readonly external: readonly string[];
  readonly conflicts: readonly string[];
  readonly lessons: readonly number[];
  readonly timings: { readonly exposedMs: number; readonly overlappedMs: number; readonly bytes: number };
}

/** What the intent holds: enough to finish after a kill. */
export interface Payload
  extends Pick<
    Move,
    "kind" | "by" | "scope" | "paths" | "adopts" | "key" | "undoes" | "delivered" | "deliveredTexts" | "carried"
  > {
  readonly target: number;
  readonly left: number;
  /** A text in intents of older versions. */
  readonly lesson: NewLesson | string | null;
  /** Missing in intents of older versions, as is `compensate`. */
  readonly verify?: Check | null;
  /** Effects for which this move makes up, newest first. */
  readonly compensate?: readonly number[];
  /** Number of the checkpoint that a restore of paths makes. */
  readonly seq: number | null;
  readonly headBefore: number | null;
  readonly keep: readonly string[];
  readonly external: readonly string[];
  readonly conflicts: readonly string[];
}

export const nothing: FileChanges = { added: [], removed: [], changed: [], mode: [], type: [], renamed: [] };
export const noActivity: Activity = { said: "", actions: [] };

/** Tools began behind it, from the state that it holds beside its own. */
export const hasTools = ({ tools }: CheckpointRow): boolean => tools === "running" || tools === "ran";

export const manifestOf = (row: CheckpointRow): Manifest => ({ files: row.files, processes: row.processes });

/** The checkpoints after `target` that lead to `head`; all of the head's line behind their last common one when the target lies elsewhere. */
export function lineBetween(deps: SessionDeps, target: number, head: number | null): CheckpointRow[] {
  const line = deps.catalog.lineage(head).reverse();
  const targets = new Set(deps.catalog.lineage(target).map((row) => row.id));
  return line.filter((row) => !targets.has(row.id));
}
