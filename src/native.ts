// The only file that loads the addon; says whether this machine has it, and decodes what it returns.
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * System calls that Node lacks, below a root directory that no call can leave. All are synchronous.
 *
 * `root` is the descriptor of an open directory (O_RDONLY | O_DIRECTORY or O_PATH), which the caller owns. A path is
 * raw bytes relative to it: components separated by single slashes, without "." and "..", no slash at either end; empty
 * means the root itself; it may be longer than PATH_MAX. A symbolic link among its parents is refused with ELOOP, and
 * the last component is never followed.
 *
 * A failed call throws an Error with `code`, `errno` and `syscall` as those of node:fs; a wrong argument throws a
 * TypeError.
 */
export interface Native {
  /** Records of all entries, for decodeEntries, sorted by the names' bytes. An entry that vanishes meanwhile is left out. */
  readDirectory(root: number, path: Uint8Array): Buffer;
  /** One record with an empty name, for decodeEntries; null on ENOENT and ENOTDIR. */
  stat(root: number, path: Uint8Array): Buffer | null;
  /** The target of a symbolic link. */
  readLink(root: number, path: Uint8Array): Buffer;
  /** A descriptor; O_NOFOLLOW, O_CLOEXEC and O_NOCTTY are added to `flags`. The umask applies to `mode`. */
  open(root: number, path: Uint8Array, flags: number, mode: number): number;
  /** As `open`, for a process whose root directory is `root`: symbolic links are followed, and none leads out of it. Not for paths of PATH_MAX bytes and more. */
  openInside(root: number, path: Uint8Array, flags: number, mode: number): number;

  /** The mode is exact, whatever the umask. If only setting it fails, the directory stays. */
  makeDirectory(root: number, path: Uint8Array, mode: number): void;
  makeSymlink(root: number, target: Uint8Array, path: Uint8Array): void;
  /** A second name for `from`; if that is a symbolic link, for the link itself. */
  makeLink(root: number, from: Uint8Array, to: Uint8Array): void;
  /** A FIFO, socket, character or block device, as the type bits of `mode` say. The mode is exact as above. */
  makeNode(root: number, path: Uint8Array, mode: number, rdevMajor: number, rdevMinor: number): void;
  unlink(root: number, path: Uint8Array): void;
  removeDirectory(root: number, path: Uint8Array): void;
  /** `flags`: 0 or one of renameFlags. */
  rename(root: number, from: Uint8Array, to: Uint8Array, flags: number): void;

  /** ENOTSUP on symbolic links: their mode cannot be changed. */
  setMode(root: number, path: Uint8Array, mode: number): void;
  /** 0xffffffff leaves an id as it is. Clears set-id bits and file capabilities: set mode and xattrs afterwards. */
  setOwner(root: number, path: Uint8Array, uid: number, gid: number): void;
  /** Exact nanoseconds since 1970, negative before. null leaves the time of access as it is. */
  setTimes(root: number, path: Uint8Array, atimeNs: bigint | null, mtimeNs: bigint): void;

  /** Name and value of each that the process may see, sorted by the names' bytes; [] where the file system has none. */
  getXattrs(root: number, path: Uint8Array): Array<[name: Buffer, value: Buffer]>;
  setXattr(root: number, path: Uint8Array, name: Uint8Array, value: Uint8Array): void;
  removeXattr(root: number, path: Uint8Array, name: Uint8Array): void;

  /** Waits until the whole file system of `fd` is on its device. */
  syncFileSystem(fd: number): void;
  /** Gives the range's room back to the file system; it reads as zeros then, and the file stays as long as it is. EOPNOTSUPP where the file system cannot. */
  punchHole(fd: number, offset: number, length: number): void;
  /**
   * The next range [start, end) at or after `offset` that is not a hole; null if only a hole follows or the file ends.
   * Where the file system does not know holes, all is data. Moves the descriptor's position.
   */
  nextData(fd: number, offset: number): [start: number, end: number] | null;

  /** Inode and process for each of these inodes that another visible process has open for writing, or maps shared and writable. */
  findWriters(inodes: BigUint64Array): Promise<[ino: bigint, process: number][]>;

  /**
   * For tests: fails the `nth` change that the addon's threads make to a file from now on. `kind`: 0 none, 1 as a full disk, 2 as a broken one, 3 half of it is written.
   * Returns whether what was armed before has failed something.
   */
  armWriteFault(kind: number, nth: number): boolean;

  /** Null where what changes below `root` can be watched; else why it cannot. */
  probeWatch(root: number): string | null;

  readonly Scanner: new () => NativeScannerHandle;

  /** Loads a program that does nothing into the kernel, which forgets it at once. */
  tryBpf(): void;
  /** Null where libbpf is there; else why it is not. */
  probeLibbpf(): string | null;
  /** All of the machine. */
  bpfPrograms(): { readonly id: number; readonly name: string }[];
  /** Loads the programs of an object and attaches them; a limit of 0 leaves a map as the object has it. Throws an Error that says why it cannot. */
  loadEffects(object: Uint8Array, threads: number, dirty: number, connections: number): Promise<object | string>;
  /** Takes over what was loaded, once. */
  readonly Effects: new (
    loaded: object,
  ) => NativeEffectsHandle;

  /**
   * Runs steps of a restore that do not depend on each other (native/core/restore-job.hpp) from threads of its own, off the
   * main thread, and resolves with those that failed. `root` must stay open until then.
   */
  runJobs(root: number, jobs: Uint8Array): Promise<NativeFailure[]>;

  /** A subvolume named `name` (one component) in an open folder of a btrfs. This and all that follows but `lockFile` runs off the main thread; descriptors must stay open until then. */
  makeSubvolume(folder: number, name: Uint8Array): Promise<void>;
  /** What the source held is on its device when it resolves. `readOnly`: 1 or 0. */
  makeSnapshot(source: number, folder: number, name: Uint8Array, readOnly: number): Promise<void>;
  /** With all that lies in it. */
  removeSubvolume(folder: number, name: Uint8Array): Promise<void>;
  /** ENOTTY where it is not on a btrfs, EINVAL where the folder is not a subvolume's root. */
  subvolumeInfo(fd: number): Promise<SubvolumeInfo>;
  waitForTransaction(fd: number, transaction: number): Promise<void>;
  /** Inodes of the subvolume that were changed after a transaction, in ascending order, and how many bytes were written for its files. One that was removed is told by its folder. */
  changedInodes(fd: number, transaction: number): Promise<{ readonly inodes: BigUint64Array; readonly bytes: number }>;
  /** How many objects of System V IPC there are in the namespace of a process (native/core/ipc-objects.hpp). */
  countIpcObjects(pid: number): Promise<number>;
  /** Paths of the subvolumes inside of this one, which no snapshot of it holds. */
  innerSubvolumes(fd: number): Promise<Buffer[]>;
  /**
   * What differs between two trees that stand still, as records of native/core/tree-difference.hpp. `since`: a transaction of whose state both are made; -1 where there is none: then all is
   * looked at, and an inode with the same number, size and times on both sides is taken for unchanged.
   */
  compareTrees(from: number, to: number, since: number): Promise<Buffer>;

  /** One side of such a record, of the entry at `path`; empty where there is none, or a link above it. */
  lookAt(root: number, path: Uint8Array): Promise<Buffer>;

  /** What a stat tells of everything at and below `path`, as records (native/core/stamps.hpp). */
  stampTree(root: number, path: Uint8Array): Promise<Buffer>;

  /** Path of the loop device over this file, or null. */
  findLoopDevice(file: number): Promise<string | null>;
  /** A new one, which goes when nothing uses it: `fd` keeps it until it is mounted. `direct`: 1 goes past the page cache where the file system can. */
  attachLoopDevice(file: number, direct: number): Promise<{ readonly path: string; readonly fd: number }>;
  /** mount(2); empty bytes are none. */
  mount(source: Uint8Array, target: Uint8Array, kind: Uint8Array, flags: number, data: Uint8Array): Promise<void>;
  unmount(target: Uint8Array, flags: number): Promise<void>;
  /** flock(2) without waiting; false while another holds it. `kind` is one of lockKind. */
  lockFile(fd: number, kind: number): boolean;

  /** The numbers of src/faults.ts, as the addon knows them. */
  faultPoints(): Record<string, number>;
}

export const lockKind = { shared: 0, exclusive: 1, none: 2 } as const;

export interface SubvolumeInfo {
  readonly id: number;
  /** The last transaction that wrote its tree. */
  readonly generation: number;
  /** The last transaction that changed an inode of it. A snapshot inherits it; being captured or read does not move it. */
  readonly changed: number;
  /** The transaction that made it. */
  readonly made: number;
  readonly readOnly: boolean;
}

/** The room in a pack for some objects; see Batch.reserve of src/store/batch.ts. */
export interface NativeRoom {
  readonly fd: number;
  readonly offsets: Float64Array;
}

export interface NativeScan {
  readonly snapshot: Buffer;
  readonly problems: readonly { readonly path: Buffer; readonly reason: string }[];
  readonly entries: number;
  readonly bytes: number;
  /** Only what a watcher named was looked at. */
  readonly trusted: boolean;
  /** The watcher may have missed something since the last scan: everything was looked at. */
  readonly missed: boolean;
}

/** The tree of one directory, kept outside of JavaScript's heap, and scans of it on threads of their own. */
export interface NativeScannerHandle {
  /**
   * Reads what changed since the kept scan and stores it through `reserve`, which is called on the main thread. `excluded` is asked for names that the kept scan does not
   * have, if `asksExcluded` is 1. With `watches` the file system is watched between scans, where it can be, and a scan looks only at what was named. A call back that fails returns undefined; each is called through `later`, in a turn of the event loop of its own. The descriptor must stay open until the promise settles; it rejects with an error
   * that has `where`: "workspace", "store" or "aborted".
   */
  scan(
    root: number,
    stage: Uint8Array,
    fidelity: number,
    asksExcluded: 0 | 1,
    watches: 0 | 1,
    reserve: (names: Buffer, lengths: Uint32Array) => NativeRoom | undefined,
    excluded: (folder: Buffer, names: Buffer[]) => boolean[] | undefined,
    later: (call: () => void) => void,
  ): Promise<NativeScan>;
  abort(): void;
  /** The next scan compares with the last one. */
  keep(): void;
  forget(): void;
  /** Ends the watching for good. */
  unwatch(): void;
  /** Of the kept scan; null when it has no such path. */
  lookup(path: Uint8Array): {
    readonly type: number;
    readonly ino: bigint;
    readonly size: number;
    readonly mtimeNs: bigint;
    readonly ctimeNs: bigint;
    readonly nlink: number;
  } | null;
  /** Of the last scan: paths of inodes with several names in the workspace, the first of the walk in front. */
  groups(): Buffer[][];
  /** Writes the kept scan for `load` of the same build, as an image into the file at `offset`. Resolves to the image's size, 0 when nothing is kept. */
  save(file: number, offset: number): Promise<number>;
  load(image: Uint8Array, unsettledFromNs: bigint | null): Promise<boolean>;
}

/** What the programs in the kernel count, by slot (native/core/bpf-effects.hpp). Used up by `close`. */
export interface NativeEffectsHandle {
  watch(): number;
  unwatch(slot: number): void;
  /** `number` of the folder's inode; `least` and `most`: how far below the root it may lie. */
  addCgroup(slot: number, number: bigint, least: number, most: number): void;
  /** Of a cgroup whose tasks trace others without acting for them. */
  addTracers(slot: number, number: bigint): void;
  /** The kernel's dev_t of a superblock. `tells`: 1 for ext4. */
  addDevice(slot: number, dev: number, tells: 0 | 1): void;
  /** The counters of bpf/effects.h, then effects by others and processors that run one of it now. No system call. */
  read(slot: number): BigUint64Array;
  /** Number, switches, returns, 1 where it waits in a call, of each. */
  threads(slot: number): BigUint64Array;
  /** Device, inode, bits of each. */
  takeDirty(slot: number): BigUint64Array;
  /** `address` has 16 bytes, of which IPv4 uses 4. */
  takeConnections(slot: number): {
    readonly family: number;
    readonly port: number;
    readonly address: Buffer;
    readonly count: number;
  }[];
  losses(): bigint;
  /** A line for each map (name, type, sizes of key and value, entries, flags) and program (name, section). */
  form(): string[];
  close(): void;
}

/** Why a step of a restore failed; see FailureKind in native/core/restore-outcome.hpp. */
export const failureKind = { refused: 1, damaged: 2, moved: 3, immutable: 4, unstaged: 5, owner: 6 } as const;

export interface NativeFailure {
  /** Of the step among those of the call. */
  index: number;
  /** A value of failureKind. */
  kind: number;
  /** As of node:fs; empty where no system call failed. */
  code: string;
  syscall: string;
}

/** Flags of Native.rename. */
export const renameFlags = { noReplace: 1, exchange: 2 } as const;

/** Bits of NativeEntry.attributes (STATX_ATTR_*) that forbid changes. */
export const entryAttributes = { immutable: 0x10, append: 0x20 } as const;

/** What is known about one directory entry. */
export interface NativeEntry {
  /** A view into the decoded buffer; empty from Native.stat. */
  name: Buffer;
  /** Type and permission bits, as in st_mode. */
  mode: number;
  uid: number;
  gid: number;
  nlink: number;
  rdevMajor: number;
  rdevMinor: number;
  devMajor: number;
  devMinor: number;
  /** See entryAttributes. */
  attributes: number;
  ino: bigint;
  size: bigint;
  /** Allocated, in units of 512 bytes. */
  blocks: bigint;
  /** Held at the limits of 64 bits beyond the years 1677 to 2262. */
  mtimeNs: bigint;
  ctimeNs: bigint;
  /** 0 where the kernel does not tell (before Linux 5.8). */
  mountId: bigint;
}

/** Offsets in a record; EntryRecord in native/core/entry.hpp is the other side. */
const field = {
  recordLength: 0,
  nameLength: 4,
  mode: 6,
  uid: 8,
  gid: 12,
  nlink: 16,
  rdevMajor: 20,
  rdevMinor: 24,
  devMajor: 28,
  devMinor: 32,
  attributes: 36,
  ino: 40,
  size: 48,
  blocks: 56,
  mtimeNs: 64,
  ctimeNs: 72,
  mountId: 80,
  name: 88,
} as const;

/** Decodes what Native.readDirectory and Native.stat return. Throws a RangeError if that is cut or damaged. */
export function decodeEntries(records: Buffer): NativeEntry[] {
  const entries: NativeEntry[] = [];
  for (let at = 0; at < records.length; ) {
    const recordLength = records.readUInt32LE(at + field.recordLength);
    const nameStart = at + field.name;
    const nameEnd = nameStart + records.readUInt16LE(at + field.nameLength);
    if (nameEnd > at + recordLength || at + recordLength > records.length) {
      throw new RangeError(`damaged entry record at byte ${at}`);
    }
    entries.push({
      name: records.subarray(nameStart, nameEnd),
      mode: records.readUInt16LE(at + field.mode),
      uid: records.readUInt32LE(at + field.uid),
      gid: records.readUInt32LE(at + field.gid),
      nlink: records.readUInt32LE(at + field.nlink),
      rdevMajor: records.readUInt32LE(at + field.rdevMajor),
      rdevMinor: records.readUInt32LE(at + field.rdevMinor),
      devMajor: records.readUInt32LE(at + field.devMajor),
      devMinor: records.readUInt32LE(at + field.devMinor),
      attributes: records.readUInt32LE(at + field.attributes),
      ino: records.readBigUInt64LE(at + field.ino),
      size: records.readBigUInt64LE(at + field.size),
      blocks: records.readBigUInt64LE(at + field.blocks),
      mtimeNs: records.readBigInt64LE(at + field.mtimeNs),
      ctimeNs: records.readBigInt64LE(at + field.ctimeNs),
      mountId: records.readBigUInt64LE(at + field.mountId),
    });
    at += recordLength;
  }
  return entries;
}

/** The addon, or why it is not there. */
export type LoadedNative = { native: Native } | { native: null; reason: string };

/** A binary that lacks one of these was built from other sources. */
const calls: Record<keyof Native, true> = {
  readDirectory: true,
  stat: true,
  readLink: true,
  open: true,
  openInside: true,
  makeDirectory: true,
  makeSymlink: true,
  makeLink: true,
  makeNode: true,
  unlink: true,
  removeDirectory: true,
  rename: true,
  setMode: true,
  setOwner: true,
  setTimes: true,
  getXattrs: true,
  setXattr: true,
  removeXattr: true,
  syncFileSystem: true,
  punchHole: true,
  nextData: true,
  armWriteFault: true,
  findWriters: true,
  probeWatch: true,
  Scanner: true,
  tryBpf: true,
  probeLibbpf: true,
  bpfPrograms: true,
  Effects: true,
  loadEffects: true,
  runJobs: true,
  makeSubvolume: true,
  makeSnapshot: true,
  removeSubvolume: true,
  subvolumeInfo: true,
  waitForTransaction: true,
  changedInodes: true,
  innerSubvolumes: true,
  countIpcObjects: true,
  compareTrees: true,
  lookAt: true,
  stampTree: true,
  findLoopDevice: true,
  attachLoopDevice: true,
  mount: true,
  unmount: true,
  lockFile: true,
  faultPoints: true,
};

/** The package's folder, above src/ as well as above dist/src/. */
export function packageRoot(): string | undefined {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (true) {
    const manifest = join(folder, "package.json");
    if (existsSync(manifest) && JSON.parse(readFileSync(manifest, "utf8")).name === "agentrewind") return folder;
    const parent = dirname(folder);
    if (parent === folder) return undefined;
    folder = parent;
  }
}

function load(): LoadedNative {
  const rebuild = "run `npm rebuild agentrewind`";
  if (process.platform !== "linux") return { native: null, reason: "the native addon is built on Linux only" };
  const root = packageRoot();
  if (root === undefined) return { native: null, reason: `no package.json of agentrewind above ${import.meta.url}` };
  const file = join(root, "native", "build", "Release", "agentrewind.node");
  if (!existsSync(file)) return { native: null, reason: `${file} is not there: ${rebuild}` };
  let addon: Partial<Native>;
  try {
    addon = createRequire(import.meta.url)(file) as Partial<Native>;
  } catch (error) {
    const cause = error instanceof Error ? error.message : String(error);
    return { native: null, reason: `${file} does not load (${cause}): ${rebuild}` };
  }
  const missing = Object.keys(calls).find((name) => typeof addon[name as keyof Native] !== "function");
  if (missing !== undefined)
    return { native: null, reason: `${file} is older than this code (no ${missing}): ${rebuild}` };
  return { native: addon as Native };
}

let loaded: LoadedNative | undefined;

/** Loads the addon once. AGENTREWIND_NATIVE=off keeps it out, so that the portable path runs. */
export function loadNative(): LoadedNative {
  if (process.env.AGENTREWIND_NATIVE === "off") return { native: null, reason: "AGENTREWIND_NATIVE=off" };
  loaded ??= load();
  return loaded;
}
