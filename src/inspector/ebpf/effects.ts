// What the tasks of a cgroup did to files and processes, and others to file systems, as the kernel counts it.
import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { RewindError } from "../../errors.ts";
import { loadNative, type Native, type NativeEffectsHandle } from "../../native.ts";
import { type CounterName, classesOf, places, toCounters } from "./counters.ts";
import { objectFiles } from "./object.ts";
import { cgroupPlace, devicePlace } from "./where.ts";

export type { CounterName } from "./counters.ts";

export interface WatchOptions {
  /** Folder of a cgroup of version 2: its tasks and those of all below it. */
  readonly cgroup?: string;
  /** Folder of a cgroup whose tasks trace the watched ones to write down their state: what they do with them meanwhile is no effect of theirs. */
  readonly tracers?: string;
  /** Any path on each file system on which effects by everybody outside of the cgroup count as `host`. */
  readonly fileSystems?: readonly string[];
}

export interface DirtyInode {
  /** Of the superblock, as "major:minor" stands in /proc/self/mountinfo. Of a file opened through an overlay it is the overlay's, as is `ino`. */
  readonly device: string;
  /** On a btrfs one of its subvolume, which is not told. */
  readonly ino: bigint;
  /** Names of counters; "host": by somebody outside of the cgroup; "inode": told by the file system itself. */
  readonly classes: readonly string[];
}

export interface Connection {
  readonly address: string;
  readonly port: number;
  readonly count: number;
}

export interface SeenThread {
  readonly scheduled: bigint;
  /** Calls that ended. */
  readonly returned: bigint;
  /** It is in a call, or was interrupted in one that it enters again by itself: it runs no code of its own before one more has returned. */
  readonly waits: boolean;
}

/** All throw CLOSED once it is closed. */
export interface EffectsWatch {
  /** Since the watch began; they only grow. No system call. */
  counters(): Readonly<Record<CounterName, bigint>>;
  /**
   * Processors on which a thread of the cgroup runs at this moment: it may go on for long without being counted as scheduled. Read before the counters are; what
   * begins behind that is counted behind it. No system call.
   */
  running(): number;
  /** By thread id of the host's: those that ran or made a call since the watch began and have not ended. */
  threads(): Map<number, SeenThread>;
  /** Inodes that were changed since the last call, where they are known: calls by path are counted only. A caller who looks at them afterwards sees what was told. */
  takeDirty(): DirtyInode[];
  takeConnections(): Connection[];
  /** Grows when anything may have been missed: then everything may have changed. A few system calls. */
  lost(): bigint;
  close(): void;
}

export interface Effects {
  /**
   * @throws BAD_ARGUMENT where the folder is no cgroup of version 2, NOT_AVAILABLE where it is watched already, or too many are
   */
  watch(options: WatchOptions): EffectsWatch;
  /** Ends all watches; the programs leave the kernel. */
  close(): void;
}

export interface EffectsOptions {
  /** Default: what was built on this machine, else what the package brings. */
  readonly object?: string;
  /** Entries of the kernel's tables: fewer need less memory, and lose sooner. */
  readonly limits?: { readonly threads?: number; readonly dirty?: number; readonly connections?: number };
}

/** Loads the programs once for each call; the process keeps them. @throws NOT_AVAILABLE */
export async function openEffects({ object = objectFiles()[0], limits = {} }: EffectsOptions = {}): Promise<Effects> {
  const found = loadNative();
  if (found.native === null) throw notAvailable(found.reason);
  const { native } = found;
  if (object === undefined) throw notAvailable("the object with the programs is not there");
  const { threads = 0, dirty = 0, connections = 0 } = limits;
  const loaded = await native.loadEffects(readObject(object), threads, dirty, connections);
  if (typeof loaded === "string") throw notAvailable(loaded);
  return new OpenEffects(native, new native.Effects(loaded));
}

function readObject(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw notAvailable("the object with the programs cannot be read", error);
  }
}

const notAvailable = (reason: string, cause?: unknown): RewindError =>
  new RewindError("NOT_AVAILABLE", `Effects cannot be watched: ${reason}.`, {
    hint: "`agentrewind doctor` says what is missing; changes are found by scans without it.",
    cause,
  });

class OpenEffects implements Effects {
  readonly #native: Native;
  readonly #handle: NativeEffectsHandle;
  readonly #watches = new Set<OpenWatch>();
  #closed = false;

  constructor(native: Native, handle: NativeEffectsHandle) {
    this.#native = native;
    this.#handle = handle;
  }

  watch({ cgroup, tracers, fileSystems = [] }: WatchOptions): EffectsWatch {
    if (this.#closed) throw new RewindError("CLOSED", "The effects are no longer watched.");
    const group = cgroup === undefined ? undefined : cgroupPlace(this.#native, cgroup);
    const traced = tracers === undefined ? undefined : cgroupPlace(this.#native, tracers);
    const devices = fileSystems.map((path) => devicePlace(this.#native, path));
    const handle = this.#handle;
    const slot = filled(() => handle.watch());
    try {
      for (const { dev, tells } of devices) filled(() => handle.addDevice(slot, dev, tells));
      if (traced !== undefined) filled(() => handle.addTracers(slot, traced.number));
      if (group !== undefined) filled(() => handle.addCgroup(slot, group.number, group.least, group.most));
    } catch (error) {
      handle.unwatch(slot);
      throw error;
    }
    const made = new OpenWatch(handle, slot, () => this.#watches.delete(made));
    this.#watches.add(made);
    return made;
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const one of this.#watches) one.close();
    this.#handle.close();
  }
}

function filled<T>(call: () => T): T {
  try {
    return call();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOSPC") throw notAvailable("too many cgroups or file systems are watched", error);
    if (code === "EEXIST") throw notAvailable("the cgroup is watched already", error);
    throw error;
  }
}

class OpenWatch implements EffectsWatch {
  readonly #handle: NativeEffectsHandle;
  readonly #slot: number;
  readonly #ended: () => void;
  #closed = false;

  constructor(handle: NativeEffectsHandle, slot: number, ended: () => void) {
    this.#handle = handle;
    this.#slot = slot;
    this.#ended = ended;
  }

  counters(): Readonly<Record<CounterName, bigint>> {
    return toCounters(this.#open().read(this.#slot));
  }

  running(): number {
    return Number(this.#open().read(this.#slot)[places + 1]);
  }

  threads(): Map<number, SeenThread> {
    const found = new Map<number, SeenThread>();
    const flat = this.#open().threads(this.#slot);
    for (const [tid, scheduled, returned, waits] of tuples(flat, 4))
      found.set(Number(tid), { scheduled, returned, waits: waits === 1n });
    return found;
  }

  takeDirty(): DirtyInode[] {
    return [...tuples(this.#open().takeDirty(this.#slot), 3)].map(([dev, ino, bits]) => ({
      device: `${dev >> 20n}:${dev & 0xfffffn}`,
      ino,
      classes: classesOf(bits),
    }));
  }

  takeConnections(): Connection[] {
    const found = this.#open().takeConnections(this.#slot);
    return found.map(({ family, port, address, count }) => ({ address: addressOf(family, address), port, count }));
  }

  lost(): bigint {
    return this.counters().lost + this.#handle.losses();
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#ended();
    this.#handle.unwatch(this.#slot);
  }

  #open(): NativeEffectsHandle {
    if (this.#closed) throw new RewindError("CLOSED", "The watch is closed.");
    return this.#handle;
  }
}

type Four = [bigint, bigint, bigint, bigint];

function* tuples(flat: BigUint64Array, length: 3 | 4): Generator<Four> {
  for (let at = 0; at < flat.length; at += length) yield [...flat.subarray(at, at + length)] as Four;
}

const ipv4 = 2;
const mapped = Buffer.from("00000000000000000000ffff", "hex");

function addressOf(family: number, bytes: Buffer): string {
  if (family === ipv4) return bytes.subarray(0, 4).join(".");
  // An IPv4 address in IPv6 is the same address.
  if (bytes.subarray(0, 12).equals(mapped)) return bytes.subarray(12, 16).join(".");
  const groups = Array.from({ length: 8 }, (_, at) => bytes.readUInt16BE(at * 2).toString(16));
  const text = groups.join(":");
  // The shortest form, as URLs have it.
  return isIP(text) === 6 ? new URL(`http://[${text}]`).hostname.slice(1, -1) : text;
}
