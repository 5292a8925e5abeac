// What a directory environment is opened with.
import type { Objects } from "../../store/objects.ts";
import type { ProgramPolicy } from "./programs/policy.ts";

export interface DirectoryOptions {
  /** Absolute path of the workspace. */
  readonly root: string;
  readonly objects: Objects;
  /** The environment's id; names the staging folder. */
  readonly id: string;
  /** Glob patterns, relative to the workspace; what they match is neither captured nor touched. */
  readonly exclude: readonly string[];
  /** A watcher may say what changed between two captures (`inspector: "auto"`). */
  readonly watches: boolean;
  /** Where what the last scan knew lies between processes. */
  readonly cacheFile: string;
  /** A restorable checkpoint holds this snapshot, so the store has all of it. */
  readonly isHeld: (snapshot: string) => boolean;
  /** Counts restores, also those of earlier processes. */
  readonly raiseGeneration: () => number;
  /** Where forks lie for which the caller names no place. */
  readonly forks?: string;
  /** What commands leave running is kept track of. `folder`: where notes of it lie, in a folder for each environment. */
  readonly programs?: { readonly folder: string; readonly policy: ProgramPolicy | undefined };
}
