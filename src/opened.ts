// What openRewind and a fork give back.
import type { Exported } from "./bundle/export.ts";
import type { Applied, ApplyOptions, Environment, Problem } from "./environment/environment.ts";
import type { ObserveReport } from "./observe/report.ts";
import type { Pruned, PruneRequest } from "./session/prune.ts";
import type { Thread } from "./session/thread.ts";
import type { RewindResult, Serializer } from "./session/types.ts";
import type { Finding } from "./session/verify.ts";
import type { Collected } from "./store/gc.ts";

export interface ThreadOptions {
  readonly serializer?: Serializer;
  /**
   * For adapters: whether state channels besides the messages can be put back. While it says no, a rewind from outside to a checkpoint where one differs is
   * refused before anything moves.
   */
  readonly restoresChannels?: () => boolean;
}

export interface Rewind extends AsyncDisposable {
  /** Real path of the workspace. */
  readonly workspace: string;
  readonly environment: Environment;
  /** The thread of that name; made with its first checkpoint. */
  thread(name: string, options?: ThreadOptions): Thread;
  /** Names of the threads, the most recently active first. */
  threads(): string[];
  /**
   * For tools: the thread whose tool asks, where an adapter entered it (`Thread.enterTool`); undefined elsewhere.
   * @throws STALE_EPOCH when a rewind ended that tool: nothing that it started may act any more
   */
  running(): Thread | undefined;
  /**
   * Makes independent workspaces that go on from a checkpoint, each with a thread of its own.
   * @throws UNKNOWN_CHECKPOINT, NO_THREAD, NOT_RESTORABLE, NOT_AVAILABLE, FOLDER_NOT_EMPTY, BRANCH_INSIDE_WORKSPACE, STORE_INSIDE_WORKSPACE, DISK_FULL;
   * then nothing of it is left
   */
  fork(checkpoint: string, options?: ForkRequest): Promise<Branch[]>;
  /** All branches that were forked from this workspace, oldest first. */
  branches(): BranchInfo[];
  /** Opens a branch again. @throws UNKNOWN_BRANCH, BRANCH_ENDED, ENVIRONMENT_BUSY */
  branch(id: string): Promise<Branch>;
  /**
   * Writes a thread, or one checkpoint of it, into one file with everything that it needs: conversation, files, processes, effects, lessons. It holds what is recorded; make a
   * checkpoint first where something was changed since. `importBundle` brings it to life, here or on another machine. The file has mode 0600: it holds whatever these hold, secrets too.
   * @throws BAD_ARGUMENT, NO_THREAD, UNKNOWN_CHECKPOINT, NOT_AVAILABLE, STORE_CORRUPT, DISK_FULL, WRITE_FAILED; then there is no such file
   */
  export(request: ExportRequest): Promise<Exported>;
  /**
   * Gives up checkpoints of this workspace by number and age, then runs `gc`. Labelled checkpoints, heads, what an undo needs and where branches part stay.
   * @throws BAD_ARGUMENT, NO_THREAD, DISK_FULL
   */
  prune(request: PruneRequest): Promise<Pruned>;
  /**
   * Brings what a sandbox made back to the host's folders. Three-way: what was changed on the host as well since the sandbox began is named and left alone. Checkpoints
   * stay as they were.
   * @throws NOT_AVAILABLE where the environment works in the workspace itself, PATH_OUTSIDE, DISK_FULL
   */
  apply(options?: ApplyOptions): Promise<Applied>;
  /**
   * Whether it was opened to observe (`inspector: { observe: true }`, or below `agentrewind observe`): turns are classified and nothing is captured. Adapters then offer no rewind tools.
   */
  readonly observes: boolean;
  /** What was observed so far, also behind `close`; undefined where it records. */
  observed(): ObserveReport | undefined;
  /** Takes out of the store what no checkpoint of any workspace needs, and gives its room back. @throws GC_RUNNING, STORE_CORRUPT, DISK_FULL */
  gc(): Promise<Collected>;
  /** What is wrong in the store; [] when it is sound. */
  verify(): Promise<Finding[]>;
  /** Everything that was recorded before the call is on disk when it resolves, a pair that is being captured included. @throws DISK_FULL, WRITE_FAILED, and what the capture throws */
  durable(): Promise<void>;
  /** Waits for what is on its way to the disk, and frees the workspace for other writers. */
  close(): Promise<void>;
}

export interface ExportRequest {
  /** The file, which is not there yet, outside of the workspace. */
  readonly to: string;
  /** Default: the thread most recently active. */
  readonly thread?: string;
  /** Id of one that is exported alone. Default: the whole thread. */
  readonly checkpoint?: string;
}

export interface ForkRequest {
  /** Default: the thread most recently active. */
  readonly thread?: string;
  /** How many branches. Default 1. */
  readonly count?: number;
  /** The folder of one branch; of more, its subfolders "1", "2", …. Default: folders beside the store. */
  readonly into?: string;
}

export interface BranchSource {
  readonly workspace: string;
  readonly thread: string;
  /** Id of the checkpoint from which it goes on. */
  readonly checkpoint: string;
}

/** A branch, open or not. */
export interface BranchInfo {
  readonly id: string;
  readonly source: BranchSource;
  /** Its workspace; null when it has ended. */
  readonly folder: string | null;
  readonly state: "open" | "adopted" | "abandoned";
  readonly createdAt: string;
}

/**
 * A workspace of its own that goes on from a checkpoint: in its thread, which has the source thread's name, the ids before are inherited and new ones count on.
 * `close` leaves it as it is; `rewind.branch(id)` opens it again.
 */
export interface Branch extends Rewind {
  readonly id: string;
  readonly source: BranchSource;
  /** What the branch's folder lacks of the checkpoint, and why; known where it was forked. */
  readonly notRestored: readonly Problem[];
  /**
   * Brings its files and its conversation to the source, as the source thread's new head, and ends it: its folder is removed. The source's `undo` takes that
   * back. Nothing may work in the branch any more.
   * @throws BRANCH_ENDED, SHARED_ENVIRONMENT, ENVIRONMENT_BUSY, INSIDE_TOOL, and what a rewind throws
   */
  adopt(): Promise<RewindResult>;
  /** Ends it and removes its folder; its checkpoints stay in the source's tree. @throws BRANCH_ENDED, FOLDER_NOT_REMOVED */
  abandon(): Promise<void>;
}
