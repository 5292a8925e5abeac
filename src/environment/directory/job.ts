// The steps of a restore, as data, and how one can fail; jobs-native.ts and jobs-portable.ts carry them out.
import type { EntryType } from "./entry.ts";
import type { RawPath } from "./names.ts";

/** What the capture knew of a path; it tells whether the path is still what was captured. */
export interface Known {
  readonly ino: bigint;
  readonly ctimeNs: bigint;
  readonly mtimeNs: bigint;
  readonly size: number;
  /** Never hardLink: what the name leads to. */
  readonly type: EntryType;
}

/** Numbers of Operation in native/core/restore-job.hpp. */
export const operation = {
  stage: 1,
  makeDirectory: 2,
  remove: 3,
  removeDirectory: 4,
  place: 5,
  link: 6,
  setMetadata: 7,
  removeTree: 8,
} as const;

export interface Job {
  readonly operation: (typeof operation)[keyof typeof operation];
  /** What is made, changed or removed: in the staging folder or in place. */
  readonly at: RawPath;
  /** The workspace's path that it is about. */
  readonly path: RawPath;
  /** place: the staged entry; link: the first name. */
  readonly from?: RawPath;
  /** link: a free name in the staging folder. */
  readonly temporary?: RawPath;
  /** Of `at`; undefined where nothing may be there. */
  readonly known?: Known | undefined;
  /** Another name of the inode may be changed by the same restore, which moves its time of change. */
  readonly shared?: boolean;
  /** stage and setMetadata: as stored. */
  readonly entry?: Buffer;
}

export interface JobFailure {
  /**
   * refused: by the system, for this path. immutable: the same, because of an attribute that forbids changes. moved: it is not what was captured, and was left alone.
   * damaged: the store's bytes cannot be used. unstaged: new content could not be made. owner: it was done, but for the owner or group.
   */
  readonly kind: "refused" | "immutable" | "moved" | "damaged" | "unstaged" | "owner";
  /** As of node:fs; empty where no system call failed. */
  readonly code: string;
  readonly syscall: string;
  readonly cause?: unknown;
}

export interface JobRunner {
  /**
   * Runs jobs that do not depend on each other, in any order, and resolves when none is under way. `failed` may throw: the rest is given up.
   * New entries are whole when their job is done, metadata included; content is compared with its names on the way (F-4).
   */
  run(jobs: Iterable<Job>, failed: (job: Job, failure: JobFailure) => void): Promise<void>;
}
