// Where everything that a sandbox changes on disk lives, behind one interface: folders that are captured together and put back together.
import type { Problem } from "../../environment.ts";

/** A state of all folders of a sandbox. */
export interface LayerSnapshot {
  /** Equal names mean equal states. */
  readonly name: string;
  /** Bytes that became this state's own, as far as the file system tells; 0 when it is an older state again. */
  readonly bytes: number;
  /** What lies below the live folder and is not in this state, and why. */
  readonly problems: readonly Problem[];
}

/**
 * A folder directly below the live folder whose name ends so is an overlay's `workdir`. Mounting and unmounting the overlay changes it, which is no change of the state: it is
 * captured, but neither makes a new state nor is told as a difference.
 */
export const workSuffix = ".work";

export interface SnapshotOptions {
  /** Where it is true of all that differs from the state before, that one stays the present state. Kind "copy" makes a new one all the same. */
  readonly besides?: (one: LayerDifference) => boolean;
}

/** One difference between two states. */
export interface LayerDifference {
  /** Below the live folder, raw bytes as latin1, components separated by single slashes. */
  readonly path: string;
  readonly before: LayerEntry | null;
  readonly after: LayerEntry | null;
  /** Where both are there: whether the content or the kind of entry differs, or only mode, owner, times or attributes. */
  readonly differs: "content" | "metadata";
}

export interface LayerEntry {
  readonly type: "file" | "directory" | "symlink" | "whiteout" | "other";
  /** Of a directory: it hides what is below it in the lower layer (overlay's opaque mark, trusted.* or user.*). */
  readonly opaque: boolean;
  /** Permission bits, with setuid, setgid and sticky. */
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly size: number;
  /** Nanoseconds since 1970. */
  readonly mtimeNs: bigint;
  /** 0 where the implementation does not keep them. */
  readonly inode: bigint;
  /** Of a file: equal where known means the same bytes. */
  readonly content?: string;
}

/**
 * Implementer's contract.
 *
 * - `live` is one folder on one file system that an overlay can use for `upperdir` and `workdir` (rename between all folders below it, `trusted.*` attributes,
 *   whiteouts); its owner makes whatever folders it needs below it. All of it is captured, nothing else.
 * - `snapshot` is called while the writers stand still, where the order of their writes has to hold: then of two writes never the second without the first. Under live writers kind "btrfs"
 *   keeps the order of what changes names and metadata; contents of two files may be some milliseconds apart, as each is written out (kind "copy": anything). It runs off the event loop. Stores
 *   through shared mappings count as changes.
 * - Two snapshots without a change between them MUST give the same name; reading is no change, where whatever is mounted over `live` is mounted `noatime` (an overlay too: it does not
 *   ask the mount below it). Mounting an overlay for the first time on an empty upper folder may be a change (it marks that folder), doing so again is none.
 * - Killed during `snapshot`, there may be a state whose name nobody was told: the owner drops those of `names()` that it does not know.
 * - `reset` does first all of its work that can fail and leaves the present live folder as it is, then calls `end`, which ends whatever is mounted on or open below that folder,
 *   then puts the new one in its place. Where it fails before, nothing has ended. It MUST be idempotent, and leave the live folder untouched where the state is not complete. Killed at any point, the next `open` finds a live folder: the one before or the one after. `null` gives an empty one.
 * - Inode numbers of files that did not change are the same before a snapshot and after a reset to it, where the file system can (CRIU's images name them).
 * - Names are never used again.
 * - Paths of problems have the form of a difference's.
 * - Calls may come at any time; those that change something run one after the other.
 */
export interface Layers {
  readonly kind: "btrfs" | "copy";
  /** Host path of a folder beside the live one, for what belongs to all states: no state holds it. Its owner makes it. `discard` removes it. */
  readonly kept: string;
  /** Host path of the live folder. Changes with `reset`. */
  live(): string;
  snapshot(options?: SnapshotOptions): Promise<LayerSnapshot>;
  /** The state is on disk and survives a power loss when it resolves. */
  sync(name: string): Promise<void>;
  reset(name: string | null, end?: () => Promise<void>): Promise<void>;
  /** Parents before children; of a directory that only one side has, every entry below it. */
  diff(from: string, to: string): AsyncIterable<LayerDifference>;
  /** The state's entry at a difference's path, or null. */
  look(name: string, path: string): Promise<LayerEntry | null>;
  /** The bytes of a file of the state. */
  read(name: string, path: string): AsyncIterable<Uint8Array>;
  /** A read-only host path at which the state's files can be read; undefined where there is none (use `live` of a fork). */
  folder(name: string): string | undefined;
  has(name: string): boolean;
  names(): string[];
  /** Gives a state up. No error when it is not there. */
  drop(name: string): Promise<void>;
  /** What is missing or damaged of the state; [] when sound. */
  verify(name: string): Promise<Problem[]>;
  /** Layers of another sandbox, with this state as their first (under the same name) and as their live folder. */
  fork(name: string, folder: string): Promise<Layers>;
  /** Removes the live folder and all states. */
  discard(): Promise<void>;
  /** Lets go of mounts and devices; keeps all states and the live folder. */
  close(): Promise<void>;
}
