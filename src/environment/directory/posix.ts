// System calls below a workspace's root, behind one interface: with the addon (posix-native.ts) or without it (posix-portable.ts).
import type { Native } from "../../native.ts";
import type { EntryType, Xattr } from "./entry.ts";
import type { RawPath } from "./names.ts";

export interface Stat {
  readonly type: EntryType;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly nlink: number;
  readonly rdevMajor: number;
  readonly rdevMinor: number;
  readonly dev: string;
  readonly ino: bigint;
  readonly size: number;
  /** Allocated, in units of 512 bytes. */
  readonly blocks: number;
  readonly mtimeNs: bigint;
  readonly ctimeNs: bigint;
}

export interface NamedStat extends Stat {
  readonly name: RawPath;
}

/**
 * Paths are relative to the root, "" is the root itself; no last component is followed and no path leaves the root, also through a link
 * that is swapped in meanwhile (the portable form checks before it writes and says so in `lacks`). Errors are Node's system errors.
 */
export interface Posix {
  /** fidelityBit values. */
  readonly fidelity: number;
  readonly lacks: readonly string[];
  /** The addon, where this is the exact form. */
  readonly native: Native | null;
  /** Descriptor of the root; -1 in the portable form. */
  readonly root: number;
  /** Sorted by raw name. */
  readDirectory(path: RawPath): NamedStat[];
  stat(path: RawPath): Stat | undefined;
  /** Of what is there: immutable or append-only; the portable form knows of immutable only. */
  isMarked(path: RawPath): boolean;
  readLink(path: RawPath): RawPath;
  /** A descriptor for reading; never waits for a FIFO's writer. */
  openRead(path: RawPath): number;
  /** A descriptor of an existing file, emptied. */
  openWrite(path: RawPath): number;
  /** A descriptor of a new file that nobody else can read. */
  create(path: RawPath): number;
  makeDirectory(path: RawPath): void;
  makeSymlink(target: RawPath, path: RawPath): void;
  makeLink(from: RawPath, to: RawPath): void;
  makeNode(path: RawPath, type: EntryType, rdevMajor: number, rdevMinor: number): void;
  unlink(path: RawPath): void;
  removeDirectory(path: RawPath): void;
  rename(from: RawPath, to: RawPath): void;
  setMode(path: RawPath, mode: number): void;
  setOwner(path: RawPath, uid: number, gid: number): void;
  setTime(path: RawPath, mtimeNs: bigint): void;
  getXattrs(path: RawPath): Xattr[];
  setXattrs(path: RawPath, wanted: readonly Xattr[]): void;
  close(): void;
}
