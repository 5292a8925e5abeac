// Walks a directory into stored trees without the addon; a file whose stat is unchanged since an earlier scan is not read again.
import type { Breathe } from "../../breathe.ts";
import type { Batch, Hash } from "../../store/objects.ts";
import { putSequence } from "../../store/sequence.ts";
import type { Problem } from "../environment.ts";
import { storeContent, unreadableReason } from "./content.ts";
import { type Entry, encodeEntry, entryFlag, entryType, fidelityBit, nameBoundary, sameMetadata } from "./entry.ts";
import { display, join, type RawPath } from "./names.ts";
import type { NamedStat, Posix, Stat } from "./posix.ts";

/** An entry with what tells whether it changed since. */
export interface ScannedEntry extends Entry {
  readonly dev: string;
  readonly ino: bigint;
  readonly ctimeNs: bigint;
  readonly nlink: number;
  /** False while a change in the same clock tick as the reading could hide behind equal times (the racy-clean rule of git's index). */
  readonly settled: boolean;
  readonly children: ScannedTree | null;
}

export interface ScannedTree {
  readonly entries: readonly ScannedEntry[];
  readonly hash: Hash;
}

export interface PortableScan {
  readonly root: ScannedEntry;
  readonly snapshot: Hash;
  readonly problems: readonly Problem[];
  readonly entries: number;
  readonly bytes: number;
  /** First member's path to all members' paths, for inodes with several names in the workspace. */
  readonly groups: ReadonlyMap<RawPath, readonly RawPath[]>;
}

export interface ScanOptions {
  readonly previous?: ScannedEntry | undefined;
  readonly skip: (path: RawPath) => boolean;
  /** What is mounted below the root is not the workspace's. */
  readonly mounts: ReadonlySet<RawPath>;
  readonly breathe: Breathe;
}

/** Kernel timestamps advance with the timer tick, at the slowest every 10 ms; one without a fraction may be of a file system that keeps every other second only. */
const clockTickNs = 20_000_000n;
const secondNs = 1_000_000_000n;

export async function scan(posix: Posix, batch: Batch, options: ScanOptions): Promise<PortableScan> {
  const problems: Problem[] = [];
  const groups = new Map<RawPath, RawPath[]>();
  const firstNames = new Map<string, RawPath>();
  const { breathe } = options;
  let entries = 0;
  let bytes = 0;

  async function scanDirectory(path: RawPath, previous: ScannedTree | null | undefined): Promise<ScannedTree> {
    const known = new Map(previous?.entries.map((entry) => [entry.name, entry]));
    const found: ScannedEntry[] = [];
    for (const stat of posix.readDirectory(path)) {
      const at = join(path, stat.name);
      if (options.skip(at)) continue;
      const scanned = scanEntry(at, stat, known.get(stat.name));
      const entry = scanned instanceof Promise ? await scanned : scanned;
      if (entry !== undefined) found.push(entry);
      const pause = breathe();
      if (pause !== undefined) await pause;
    }
    const same = previous?.entries.length === found.length && found.every((entry, i) => entry === previous.entries[i]);
    if (previous !== undefined && previous !== null && same) return previous;
    const hash = putSequence(
      batch,
      found.map((entry) => ({ bytes: encodeEntry(entry), boundary: nameBoundary(entry.name) })),
    );
    return { entries: found, hash };
  }

  /** Asynchronous only for a directory or what must be read: most entries of most scans are neither. */
  function scanEntry(
    path: RawPath,
    stat: NamedStat,
    known: ScannedEntry | undefined,
  ): ScannedEntry | undefined | Promise<ScannedEntry | undefined> {
    entries++;
    // What is mounted is not this tree's, and neither is when it changed.
    if (options.mounts.has(path))
      return unread(path, { ...stat, ...blank(stat) }, "is a mount point; what is mounted there is left alone", known);
    const same = known !== undefined && isUnchanged(known, stat) ? known : undefined;
    if (stat.type === entryType.directory) return scanFolder(path, stat, known, same);
    if (stat.nlink > 1 && stat.type !== entryType.socket) {
      const key = `${stat.dev}/${stat.ino}`;
      const first = firstNames.get(key);
      if (first !== undefined) {
        groups.set(first, [...(groups.get(first) ?? [first]), path]);
        if (same?.type === entryType.hardLink && same.tail === first) return same;
        return { ...blank(stat), ...stamp(stat), type: entryType.hardLink, tail: first };
      }
      firstNames.set(key, path);
    }
    if (same?.type === stat.type) {
      bytes += same.size;
      return same;
    }
    return readOrExplain(path, stat, known);
  }

  async function readOrExplain(
    path: RawPath,
    stat: NamedStat,
    known: ScannedEntry | undefined,
  ): Promise<ScannedEntry | undefined> {
    try {
      return await readEntry(path, stat, 1);
    } catch (error) {
      const reason = unreadableReason(error);
      return reason === undefined ? undefined : unread(path, stat, reason, known);
    }
  }

  async function scanFolder(
    path: RawPath,
    stat: NamedStat,
    known: ScannedEntry | undefined,
    same: ScannedEntry | undefined,
  ): Promise<ScannedEntry | undefined> {
    let children: ScannedTree;
    try {
      children = await scanDirectory(path, known?.children);
    } catch (error) {
      const reason = unreadableReason(error);
      return reason === undefined ? undefined : unread(path, stat, reason, known);
    }
    if (same?.children === children) return same;
    const xattrs = same?.xattrs ?? posix.getXattrs(path);
    return {
      ...metadata(stat),
      ...stamp(stat),
      xattrs,
      type: entryType.directory,
      size: 0,
      content: children.hash,
      children,
    };
  }

  async function readEntry(path: RawPath, stat: NamedStat, attempt: number): Promise<ScannedEntry | undefined> {
    const base = { ...metadata(stat), ...stamp(stat), xattrs: posix.getXattrs(path), type: stat.type, size: 0 };
    if (stat.type === entryType.symlink) return { ...base, tail: posix.readLink(path) };
    if (stat.type === entryType.socket) {
      problems.push({ path: display(path), reason: "is a socket; sockets are left alone" });
      return base;
    }
    if (stat.type !== entryType.file) {
      if ((posix.fidelity & fidelityBit.devices) === 0 && stat.type !== entryType.fifo) {
        problems.push({ path: display(path), reason: "is a device node, which only root can restore" });
      }
      return { ...base, rdevMajor: stat.rdevMajor, rdevMinor: stat.rdevMinor };
    }
    const { content, flags, size, ctimeNs } = await storeContent(posix, path, batch, breathe);
    if (ctimeNs !== stat.ctimeNs && attempt < 3) {
      const again = posix.stat(path);
      return again === undefined ? undefined : readEntry(path, { ...again, name: stat.name }, attempt + 1);
    }
    bytes += size;
    const torn = (flags & entryFlag.torn) !== 0 || ctimeNs !== stat.ctimeNs;
    if (torn) problems.push({ path: display(path), reason: "changed while it was read; stored as last read" });
    return { ...base, content, flags: torn ? flags | entryFlag.torn : flags, size, settled: base.settled && !torn };
  }

  function unread(path: RawPath, stat: NamedStat, reason: string, known: ScannedEntry | undefined): ScannedEntry {
    problems.push({ path: display(path), reason });
    const same = known?.type === entryType.unread && known.tail === reason && known.ctimeNs === stat.ctimeNs;
    if (same && sameMetadata(known, { ...known, ...metadata(stat) })) return known;
    return {
      ...metadata(stat),
      ...stamp(stat),
      type: entryType.unread,
      size: 0,
      tail: reason,
      xattrs: [],
      settled: false,
    };
  }

  const rootStat = posix.stat("");
  if (rootStat === undefined)
    throw Object.assign(new Error("ENOENT: the directory is gone"), { code: "ENOENT", syscall: "stat" });
  const children = await scanDirectory("", options.previous?.children);
  const root: ScannedEntry = {
    ...metadata({ ...rootStat, name: "" }),
    ...stamp(rootStat),
    xattrs: posix.getXattrs(""),
    type: entryType.directory,
    size: 0,
    content: children.hash,
    children,
  };
  const snapshot = batch.put(Buffer.concat([Buffer.from([3, posix.fidelity]), encodeEntry(root)]));
  return { root, snapshot, problems, entries, bytes, groups };
}

function isUnchanged(known: ScannedEntry, stat: Stat): boolean {
  return (
    known.settled &&
    known.ino === stat.ino &&
    known.ctimeNs === stat.ctimeNs &&
    known.mtimeNs === (known.type === entryType.hardLink ? 0n : stat.mtimeNs) &&
    known.dev === stat.dev
  );
}

function stamp(stat: Stat): Pick<ScannedEntry, "dev" | "ino" | "ctimeNs" | "nlink" | "settled"> & { children: null } {
  const nowNs = BigInt(Date.now()) * 1_000_000n;
  return {
    dev: stat.dev,
    ino: stat.ino,
    ctimeNs: stat.ctimeNs,
    nlink: stat.nlink,
    settled: stat.ctimeNs < nowNs - (stat.ctimeNs % secondNs === 0n ? 2n * secondNs : clockTickNs),
    children: null,
  };
}

function metadata(stat: NamedStat): Omit<Entry, "type" | "size" | "xattrs"> {
  const { mode, uid, gid, mtimeNs } = stat;
  return { ...blank(stat), mode, uid, gid, mtimeNs };
}

function blank(stat: { name: RawPath }): Omit<Entry, "type"> {
  return {
    name: stat.name,
    flags: 0,
    mode: 0,
    uid: 0,
    gid: 0,
    mtimeNs: 0n,
    size: 0,
    rdevMajor: 0,
    rdevMinor: 0,
    tail: "",
    xattrs: [],
    content: null,
  };
}
