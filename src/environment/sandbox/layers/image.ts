// The btrfs that holds the layers of all sandboxes of a store: the store's own, or one in a sparse file, mounted once for all processes that use the store.
import { execFile } from "node:child_process";
import { closeSync, existsSync, realpathSync, statfsSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { asWriteFailure, RewindError, systemCode } from "../../../errors.ts";
import { fault } from "../../../faults.ts";
import type { Native } from "../../../native.ts";
import { makeFolder, openForWriting, remove, rename, setLength, syncFile, syncFolder } from "../../../store/io.ts";
import { type MountLine, mountAt } from "../mount-table.ts";
import { type FileLock, lockFile } from "./file-lock.ts";

/*
 * Below the store's folder: layers.img (F-60), and the folder `layers`, where it is mounted. Whoever uses it holds locks/layers.users shared; who mounts or unmounts holds
 * locks/layers.lock. Both locks die with their process, so a mount that a killed process left is found with no user: the next one takes it over, and the last one unmounts it.
 */

export interface ImageOptions {
  /** The store's folder. */
  readonly store: string;
  readonly native: Native;
  /** The program that makes a btrfs in the file that is its last argument; undefined where there is none. */
  readonly mkfs: readonly string[] | undefined;
  /** Bytes that must be free on the store's disk before anything is written to the layers. */
  readonly reserve?: number;
}

export interface Image {
  /** The folder below which the layers of each sandbox lie. */
  readonly folder: string;
  /** Is there room, and is the file system sound? @throws DISK_FULL, WRITE_FAILED */
  check(): void;
  close(): Promise<void>;
}

export const btrfsMagic = 0x9123683e;
const flags = { remount: 0x20, noatime: 0x400, bind: 0x1000, private: 0x40000 } as const;
const patienceMs = 30_000;
const mkfsMs = 60_000;
const defaultReserve = 128 << 20;
/** mkfs.btrfs makes none that is smaller than 109 MiB. */
const smallest = 256 << 20;
const none = Buffer.alloc(0);
const bytes = (text: string): Buffer => Buffer.from(text);
const run = promisify(execFile);

/** @throws NOT_AVAILABLE where this machine cannot have one, DISK_FULL, WRITE_FAILED */
export async function openImage(options: ImageOptions): Promise<Image> {
  const { native, reserve = defaultReserve } = options;
  const store = realpathSync(options.store);
  const place = { store, folder: join(store, "layers"), file: join(store, "layers.img") };
  const locks = join(store, "locks");
  const lock = (name: string, kind: "shared" | "exclusive"): Promise<FileLock> =>
    lockFile(native, join(locks, name), kind, patienceMs).then((held) => held ?? refuseBusy());
  makeFolder(locks, 0o700);
  makeFolder(place.folder, 0o700);

  const turn = await lock("layers.lock", "exclusive");
  let users: FileLock | undefined;
  try {
    users = await lock("layers.users", "shared");
    await (isOnBtrfs(place) ? mountFolder(native, place) : mountImage(options, place, reserve, users));
    fault("layers.mounted");
  } catch (error) {
    users?.release();
    throw asWriteFailure(error, place.folder);
  } finally {
    turn.release();
  }
  const held = users;
  let open = true;
  return {
    folder: place.folder,

    check() {
      checkRoom(store, reserve);
      const mounted = mountAt(place.folder);
      if (mounted === undefined) throw unmounted(place.folder);
      if (isReadOnly(mounted)) throw readOnly(place.folder);
    },

    async close() {
      if (!open) return;
      open = false;
      let turn: FileLock | undefined;
      try {
        turn = await lock("layers.lock", "exclusive");
        if (!held.tryExclusive() || mountAt(place.folder) === undefined) return;
        await unmount(native, place.folder);
        fault("layers.unmounted");
      } finally {
        held.release();
        turn?.release();
      }
    },
  };
}

interface Place {
  readonly store: string;
  readonly folder: string;
  readonly file: string;
}

const isOnBtrfs = ({ store, file }: Place): boolean => statfsSync(store).type === btrfsMagic && !existsSync(file);

function checkRoom(store: string, reserve: number): void {
  const { bavail, bsize } = statfsSync(store);
  if (bavail * bsize >= reserve) return;
  throw new RewindError("DISK_FULL", `Less than ${reserve >> 20} MiB are left on the disk of ${store}.`, {
    hint: "Free some space and try again; what was stored before is intact.",
  });
}

/** Of a store on a btrfs: a mount of its own all the same, since reading must not change anything. */
async function mountFolder(native: Native, { folder }: Place): Promise<void> {
  const target = bytes(folder);
  if (mountAt(folder) === undefined) await native.mount(target, target, none, flags.bind, none);
  await native.mount(none, target, none, flags.private, none);
  await native.mount(none, target, none, flags.remount | flags.bind | flags.noatime, none);
}

async function mountImage(options: ImageOptions, place: Place, reserve: number, users: FileLock): Promise<void> {
  const { native, mkfs } = options;
  if (!existsSync(place.file)) await makeImage(place, mkfs, reserve);
  const file = openForWriting(place.file, "r+");
  try {
    const found = mountAt(place.folder);
    if (found !== undefined && !isReadOnly(found) && found.source === (await native.findLoopDevice(file))) return;
    if (found !== undefined) {
      // It stopped writing, or its file was put in the place of another: it goes unless somebody works on it.
      if (!users.tryExclusive()) throw readOnly(place.folder);
      await unmount(native, place.folder);
      users.share();
    }
    await attachAndMount(native, file, place.folder);
  } finally {
    closeSync(file);
  }
}

async function attachAndMount(native: Native, file: number, folder: string): Promise<void> {
  // A device that another mount namespace still uses must not get a twin: both would write to the same file.
  const known = await native.findLoopDevice(file);
  const device = known === null ? await native.attachLoopDevice(file, 1) : { path: known, fd: -1 };
  try {
    fault("layers.attached");
    await native.mount(bytes(device.path), bytes(folder), bytes("btrfs"), flags.noatime, bytes("discard=async"));
    await native.mount(none, bytes(folder), none, flags.private, none);
  } catch (error) {
    if (systemCode(error) !== "ENODEV") throw error;
    throw unavailable("this kernel has no btrfs", error);
  } finally {
    if (device.fd >= 0) closeSync(device.fd);
  }
}

async function makeImage({ store, file }: Place, mkfs: readonly string[] | undefined, reserve: number): Promise<void> {
  const [command, ...args] = mkfs ?? [];
  if (command === undefined) throw unavailable("there is no mkfs.btrfs (package btrfs-progs)");
  checkRoom(store, reserve);
  const { blocks, bsize } = statfsSync(store);
  const fresh = `${file}.new`;
  const fd = openForWriting(fresh, "w");
  try {
    // Apparent size alone: it takes what is written.
    setLength(fd, Math.max(smallest, Math.floor((blocks * bsize) / (1 << 20)) * (1 << 20)));
  } finally {
    closeSync(fd);
  }
  try {
    // The store's disk keeps its own copies where it keeps any. Behind each snapshot a reference is added for every child of a node that is written again: in a tree of 1,000 small files
    // nodes of 16 KiB cost 1.4 MB at the 400th, and ever more, nodes of 4 KiB a sixth of it.
    const profile = ["-q", "-K", "-m", "single", "-d", "single", "-n", "4096"];
    await run(command, [...args, ...profile, fresh], { timeout: mkfsMs, killSignal: "SIGKILL" });
  } catch (error) {
    remove(fresh);
    throw unavailable(`mkfs.btrfs failed (${(error as Error).message.trim().split("\n").at(-1)})`, error);
  }
  await syncFile(fresh);
  fault("layers.image-made");
  rename(fresh, file);
  await syncFolder(store);
  fault("layers.image-placed");
}

/** What still lies open on it stays usable, and the kernel lets go of the device when that ends. */
async function unmount(native: Native, folder: string): Promise<void> {
  const detach = 2;
  try {
    await native.unmount(bytes(folder), 0);
  } catch (error) {
    if (systemCode(error) !== "EBUSY") throw error;
    await native.unmount(bytes(folder), detach);
  }
}

const isReadOnly = ({ options }: MountLine): boolean => options.includes("ro");

const readOnly = (folder: string): RewindError =>
  new RewindError("WRITE_FAILED", `The file system at ${folder} does not write any more.`, {
    hint: "A disk below it was full or failed: see `dmesg`, mend that, close every process that uses the store, and open it again.",
  });

const unmounted = (folder: string): RewindError =>
  new RewindError("WRITE_FAILED", `Somebody has unmounted ${folder}.`, {
    hint: "Close the workspace and open it again.",
  });

const unavailable = (reason: string, cause?: unknown): RewindError =>
  new RewindError("NOT_AVAILABLE", `Layers cannot be kept on a btrfs here: ${reason}.`, {
    hint: "`agentrewind doctor` says what is missing and how to get it.",
    cause,
  });

function refuseBusy(): never {
  throw new RewindError("ENVIRONMENT_BUSY", "Another process is mounting the store's layers and does not finish.", {
    hint: "End it, and try again.",
  });
}
