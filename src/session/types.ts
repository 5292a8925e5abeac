// The public words of a session: contexts, checkpoints, rewinds and their options.
import type { FileChanges, Manifest, Problem } from "../environment/environment.ts";
import type { Effect } from "./effect-types.ts";

/** Everything that the framework gives the model: the messages, and its other state channels by name. */
export interface Context {
  readonly messages: readonly unknown[];
  readonly channels?: Readonly<Record<string, unknown>>;
}

/** Turns one item of a context into bytes and back. Named and versioned; the name is stored with each context. */
export interface Serializer {
  /** For example "json@1". */
  readonly name: string;
  encode(item: unknown): Uint8Array | Promise<Uint8Array>;
  decode(bytes: Uint8Array): unknown | Promise<unknown>;
  /**
   * With `isMarked`: lets a long conversation be stored at the cost of what is new in it. Returns something small by which `isMarked` sees that the same object was
   * edited: as a rule its fields, compared by reference. What was edited deeper is found by encoding the newest messages and some of the others again; in
   * conversations of more than 256 messages an edit of an old one may be seen some turns later.
   */
  mark?(item: unknown): unknown;
  isMarked?(item: unknown, mark: unknown): boolean;
}

/** What one tool call did, as the list of checkpoints shows it. */
export interface ToolAction {
  readonly tool: string;
  /** Short form of the arguments. */
  readonly input: string;
  /** Short form of the result, empty while unknown. */
  readonly output: string;
  readonly failed: boolean;
}

/** What happened between the previous checkpoint of the lineage and this one. */
export interface Activity {
  /** What the model said. */
  readonly said: string;
  readonly actions: readonly ToolAction[];
}

export type CheckpointState = "captured" | "durable" | "not-restorable";

export type CheckpointKind =
  /** At a model decision. */
  | "turn"
  /** Asked for by a caller. */
  | "explicit"
  /** The state that a rewind or an undo left. */
  | "safety"
  /** Some paths were taken back: its halves come from different moments. */
  | "partial"
  /** The files between two decisions, for a state that the framework names itself; its context is that of the decision before. */
  | "step";

export interface Timings {
  /** Milliseconds in which the agent waited for us. */
  readonly exposedMs: number;
  /** Milliseconds of our work that ran beside the model call. */
  readonly overlappedMs: number;
  /** Bytes written to the store. */
  readonly bytes: number;
}

/** The pair (context, environment) at a model decision. */
export interface Checkpoint {
  /** Short and per thread: "c0", "c1", … */
  readonly id: string;
  readonly thread: string;
  /** Id of the branch in which it was made ("b2"); null outside of branches. */
  readonly branch: string | null;
  /** The checkpoint before it in its lineage, or null. */
  readonly parent: string | null;
  /** How many checkpoints between the parent and it were pruned. */
  readonly pruned: number;
  /** Counts the model decisions of the lineage, from 1. */
  readonly turn: number;
  readonly kind: CheckpointKind;
  readonly state: CheckpointState;
  /** Why it is not restorable; null otherwise. */
  readonly reason: string | null;
  readonly label: string | null;
  readonly createdAt: string;
  /** The adapter's name for this boundary (the id of the last message); null where none was given. */
  readonly anchor: string | null;
  readonly messages: number;
  readonly environment: Manifest;
  /** Where only some paths were taken back: which, and from which checkpoint (null when that was pruned). Else null. */
  readonly partial: { readonly from: string | null; readonly paths: readonly string[] } | null;
  /** Against the parent; null when there is none or it cannot be told. */
  readonly changes: FileChanges | null;
  readonly activity: Activity;
  readonly problems: readonly Problem[];
  readonly timings: Timings;
  /** What the tools behind it did outside of the environment. */
  readonly effects: readonly Effect[];
  /** True on the thread's head. */
  readonly head: boolean;
  /** True when it lies on the lineage of the head. */
  readonly active: boolean;
}

/** A lesson in parts; each is shortened where it is long. */
export interface LessonParts {
  readonly attempted?: string | undefined;
  /** What proved false. */
  readonly disproved?: string | undefined;
  readonly evidence?: string | undefined;
  readonly consequence?: string | undefined;
  /** What to do instead. */
  readonly instead?: string | undefined;
}

/** What a failed attempt taught. */
export interface Lesson {
  readonly id: number;
  readonly text: string;
  /** Null where it was given as plain text. */
  readonly parts: LessonParts | null;
  /** Ids of the lessons that it sums up. */
  readonly covers: readonly number[];
  /** Number of the rewind that it came with. */
  readonly rewind: number;
  /** Id of the branch in which it was learned; null outside of branches. */
  readonly branch: string | null;
  /** The checkpoint that was left and the one that was returned to. */
  readonly from: string;
  readonly to: string;
  readonly createdAt: string;
}

export interface VerifyCommand {
  readonly command: string | readonly string[];
  /** Default: ten minutes. */
  readonly timeoutMs?: number;
}

export type Scope = "both" | "environment" | "context";
export type ExternalPolicy = "keep" | "restore";

export interface RewindRequest {
  /** Id of the checkpoint to return to. */
  readonly to: string;
  readonly lesson?: string | LessonParts;
  /**
   * A command that must succeed in the restored files. It runs behind the restore, as `environment.exec` does; where it fails everything is put back as it was
   * and the rewind is refused with VERIFY_FAILED. What it writes is taken back.
   */
  readonly verify?: string | VerifyCommand;
  /** The caller takes it upon itself that effects are left behind which the option `cross` protects. Not for the agent's own requests. */
  readonly crossEffects?: boolean;
  readonly scope?: Scope;
  /**
   * Only these go back, a folder with all below it; relative to the workspace, in the form in which paths are shown. The conversation stays, and a checkpoint
   * is made of the state after it.
   */
  readonly paths?: readonly string[];
  /** What happens to changes that the agent did not make. Default "restore". */
  readonly external?: ExternalPolicy;
  /** Makes the request idempotent: the same key returns the recorded result (an adapter gives its tool-call id). */
  readonly key?: string;
  /** The context that is left, for the safety checkpoint. Default: the head's. */
  readonly current?: Context;
  /** How many messages that a person sent in between the caller puts behind the restored ones; the message says so. */
  readonly carried?: number;
  /** Texts that already reached the person in the turns that are abandoned. */
  readonly delivered?: readonly string[];
  /** Who asks. The agent's own requests need a lesson and count against the budget. Default "caller". */
  readonly by?: "agent" | "caller";
  /**
   * "returned": the caller goes on from the context that is returned. "pending": the adapter that drives the thread takes it over at its next turn.
   * Default: "pending" for a thread that an adapter drives.
   */
  readonly delivery?: "returned" | "pending";
  /** Plan only: neither the workspace nor the conversation nor the tree of checkpoints changes. */
  readonly dryRun?: boolean;
}

export interface RewindResult {
  readonly scope: Scope;
  /** The paths that alone were taken back; null when all were. */
  readonly paths: readonly string[] | null;
  /** The checkpoint that is now the head. */
  readonly checkpoint: Checkpoint;
  /** The state that was left; `undo` returns to it. Null for a dry run. */
  readonly left: Checkpoint | null;
  /** The restored context, without the message below. */
  readonly context: Context;
  /** What the model must be told, as the last message of its context. */
  readonly message: string;
  readonly restored: FileChanges;
  readonly notRestored: readonly Problem[];
  /** Programs that were started since and were ended. */
  readonly stopped: readonly string[];
  /** What is done in the world and not undone, and what the restored conversation does not tell of, oldest first. */
  readonly effects: readonly string[];
  /** "ADDRESS:PORT" of places outside of the environment to which what was taken back had connected, where that is seen. */
  readonly contacted: readonly string[];
  /** Effects that this rewind made up for, newest first. */
  readonly compensated: readonly string[];
  /** Those for which that failed, and why. */
  readonly uncompensated: readonly string[];
  /** Paths changed by the agent and by somebody else: they went back, the newer version is in `left`. */
  readonly conflicts: readonly string[];
  /** Paths changed by somebody else: kept or restored as `external` says. */
  readonly external: readonly string[];
  readonly lessons: readonly Lesson[];
  readonly epoch: number;
  readonly timings: Timings;
}

/** Limits against rewind loops. */
export interface Budget {
  /** Rewinds of one thread that the agent may make. Default 10. */
  readonly rewinds: number;
  /** Rewinds to the same checkpoint that the agent may make. Default 3. */
  readonly perCheckpoint: number;
}
