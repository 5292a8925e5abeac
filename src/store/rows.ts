// Rows of the catalog, and what is put into it.
export interface ThreadRow {
  readonly id: number;
  readonly name: string;
  readonly head: number | null;
  readonly next_seq: number;
  readonly forked_from: number | null;
  /** JSON: ids of the lessons that the context at the head contains. */
  readonly lessons: string;
  readonly active_at: string;
  /** JSON of Place; null where the framework names no states. */
  readonly place: string | null;
  /** The environment's checkpoint behind which a tool of the newest decision was last known to run; 0: none has run; null: who asks for tools does not tell. */
  readonly acted: number | null;
  /** JSON of Gone; null where all that the conversation can know is there. */
  readonly gone: string | null;
}

/** The environment ended with its owner and began again at an older checkpoint: what tools of the thread did behind that is gone (F-75). */
export interface Gone {
  /** Where it began again. */
  readonly checkpoint: number;
  /** Of the files as they were left; null where they were those of that checkpoint. */
  readonly found: number | null;
  /** Calls that run again since: what they do is there. */
  readonly again: readonly string[];
}

/** Where the files stand among the states that the thread's framework names (F-47). */
export interface Place {
  /** By namespace, "" the framework's own: the state from which what runs now started. */
  readonly at: Readonly<Record<string, string>>;
  /** Tools may have changed the files since they were last captured. */
  readonly touched: boolean;
  /** States to which the files belong as they are now; the next checkpoint of them is theirs. */
  readonly waiting: readonly string[];
  /** The agent's own rewind has moved the files, and no stored state tells of it yet: the checkpoint to which those of `at` belong. */
  readonly left?: number | undefined;
  /** The state that follows from where the files were, and that the framework has not stored yet. */
  readonly storing?: { readonly name: string; readonly from: string } | undefined;
  /** States whose files are gone with the environment's owner (F-75). */
  readonly gone?: readonly string[] | undefined;
}

export interface ManifestRow {
  readonly files: string | null;
  readonly processes: string | null;
}

/**
 * `none`: no tool ran behind it; `waiting`: none has begun yet; `running`: tools have begun, from the state `tools_from` on, and none has ended;
 * `ran`: one has; `unknown`: nobody said.
 */
export type ToolsMark = "none" | "waiting" | "running" | "ran" | "unknown";

export interface CheckpointRow {
  readonly id: number;
  readonly thread: number;
  readonly thread_name: string;
  readonly seq: number;
  readonly parent: number | null;
  readonly timeline: number | null;
  readonly turn: number;
  readonly kind: string;
  readonly state: string;
  readonly reason: string | null;
  readonly label: string | null;
  readonly anchor: string | null;
  readonly context: string;
  readonly messages: number;
  readonly serializer: string;
  readonly files: string | null;
  readonly processes: string | null;
  readonly tools: ToolsMark;
  readonly tools_files: string | null;
  readonly tools_processes: string | null;
  /** JSON, as are activity, problems, timings and lessons. */
  readonly changes: string | null;
  readonly activity: string;
  readonly problems: string;
  readonly timings: string;
  readonly lessons: string;
  /** How many checkpoints between its parent and it were pruned. */
  readonly pruned: number;
  /** JSON of Partial; null where both halves are of one moment. */
  readonly partial: string | null;
  /** JSON of KnownEffects: the effects that its context tells of. */
  readonly effects: string;
  /** Number of the branch whose thread it is; null outside of branches. */
  readonly branch: number | null;
  readonly created_at: string;
}

/** Some paths of a state come from another checkpoint than the rest. */
export interface Partial {
  readonly from: number;
  readonly paths: readonly string[];
}

export interface NewCheckpoint {
  readonly thread: number;
  readonly seq: number;
  readonly parent: number | null;
  readonly turn: number;
  readonly kind: string;
  readonly state: "captured" | "not-restorable";
  readonly reason: string | null;
  readonly label: string | null;
  readonly anchor: string | null;
  readonly context: string;
  readonly messages: number;
  readonly serializer: string;
  readonly manifest: ManifestRow | null;
  readonly changes: unknown;
  readonly activity: unknown;
  readonly problems: unknown;
  readonly timings: unknown;
  readonly lessons: readonly number[];
  readonly partial?: Partial;
  /** Its context tells of all that the thread has done up to this effect; null: of what its parent's context tells. */
  readonly effectsUpTo?: number | null;
}

/** What a checkpoint of the conversation alone gets later. */
export type EnvironmentHalf = Pick<NewCheckpoint, "changes" | "problems" | "timings"> & {
  readonly manifest: ManifestRow;
};

export interface RewindRow {
  readonly id: number;
  readonly thread: number;
  readonly key: string | null;
  readonly kind: string;
  readonly requested_by: string;
  readonly scope: string;
  readonly head_before: number | null;
  /** Null when it was pruned, as with `target`. */
  readonly left_at: number | null;
  readonly left_seq: number;
  readonly target: number | null;
  readonly target_seq: number;
  readonly epoch: number;
  readonly delivered: number;
  readonly undone: number;
  readonly result: string;
  readonly created_at: string;
}

export interface LessonRow {
  readonly id: number;
  readonly text: string;
  /** JSON: what of it was said as what; null for plain text. */
  readonly parts: string | null;
  /** JSON: ids of the lessons that it sums up; null for one that was learned. */
  readonly covers: string | null;
  readonly rewind: number;
  readonly from_seq: number;
  readonly to_seq: number;
  /** The checkpoint to which that rewind returned; null when it was pruned. */
  readonly target: number | null;
  /** Number of the branch whose thread learned it; null outside of branches. */
  readonly branch: number | null;
  readonly created_at: string;
}

export interface NewLesson {
  readonly text: string;
  readonly parts?: unknown;
  readonly covers?: readonly number[] | null;
}

export interface JournalRow {
  /** Name of an object. */
  readonly value: string;
}

export interface IntentRow {
  readonly id: number;
  readonly thread: number;
  readonly kind: string;
  readonly payload: string;
}

/** What closes a rewind: the heads move, the epoch rises, the rewind, its lesson and the intent's end are stored (F-22). */
export interface RewindCommit {
  readonly intent: number | null;
  readonly thread: number;
  readonly key: string | null;
  readonly kind: string;
  readonly requestedBy: string;
  readonly scope: string;
  readonly headBefore: number | null;
  readonly leftAt: number;
  /** The new head; one that is not there yet is made. */
  readonly target: number | NewCheckpoint;
  readonly delivered: boolean;
  readonly undoes: number | null;
  readonly newLessons: readonly NewLesson[];
  /** Lessons that the context at the new head contains; the new ones are added to them. */
  readonly lessons: readonly number[];
  readonly moveThread: boolean;
  readonly moveTimeline: boolean;
  /** Number of the branch that is adopted. */
  readonly adopts: number | null;
  readonly result: unknown;
}
