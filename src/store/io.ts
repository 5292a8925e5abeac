// Every change that the store makes to its files goes through here, so that tests can fail each of them.
import {
  chmodSync,
  closeSync,
  constants,
  copyFileSync,
  fdatasync,
  fstatSync,
  fsync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
  writevSync,
} from "node:fs";
import { rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setImmediate as immediate } from "node:timers/promises";
import { promisify } from "node:util";
import { systemCode } from "../errors.ts";
import { beforeChange } from "../write-faults.ts";

const fsyncFile = promisify(fsync);
const fdatasyncFile = promisify(fdatasync);

/** @param flags "wx+" makes the file, "r+" opens the one that is there */
export function openForWriting(path: string, flags: "wx+" | "r+" | "w"): number {
  beforeChange("open");
  return openSync(path, flags, 0o600);
}

/** Writes all of `bytes` at `position`, or throws. */
export function writeAll(fd: number, bytes: Uint8Array, position: number): void {
  for (let done = 0; done < bytes.length; ) {
    const rest = bytes.length - done;
    const size = beforeChange("write") ? rest >> 1 : rest;
    done += writeSync(fd, bytes, done, size, position + done);
  }
}

/** Writes the parts end to end at `position`; `size` is their sum. */
export function writeParts(fd: number, parts: readonly Uint8Array[], size: number, position: number): void {
  const written = beforeChange("write")
    ? writeSync(fd, Buffer.concat(parts, size), 0, size >> 1, position)
    : writevSync(fd, parts as Uint8Array[], position);
  if (written < size) writeAll(fd, Buffer.concat(parts, size).subarray(written), position + written);
}

/** Cuts off what lies behind `length`. */
export function cutFile(fd: number, length: number): void {
  if (fstatSync(fd).size <= length) return;
  beforeChange("truncate");
  ftruncateSync(fd, length);
}

/** Bytes that the file takes of the disk: fewer than it is long where ranges of it are left out. 0 when it is not there. */
export function allocatedBytes(path: string): number {
  const found = statSync(path, { throwIfNoEntry: false });
  return found === undefined ? 0 : Math.min(found.size, found.blocks * 512);
}

/** Gives the room of a range back to the disk; it reads as zeros then. */
export type PunchHole = (fd: number, offset: number, length: number) => void;

export function freeRange(punchHole: PunchHole, fd: number, offset: number, length: number): void {
  beforeChange("truncate");
  punchHole(fd, offset, length);
}

/** Gives the file exactly `length` bytes. */
export function setLength(fd: number, length: number): void {
  beforeChange("truncate");
  ftruncateSync(fd, length);
}

/** Resolves when the bytes of the file and what is needed to find them are on disk. */
export async function syncFile(path: string, what: "all" | "data" = "all"): Promise<void> {
  // Writers of the same file share its dirty pages, whoever opened it.
  const fd = openSync(path, "r");
  try {
    beforeChange("fsync");
    await (what === "all" ? fsyncFile(fd) : fdatasyncFile(fd));
  } finally {
    closeSync(fd);
  }
}

/** The names in the folder are on disk when it resolves, where the file system can tell. */
export async function syncFolder(folder: string): Promise<void> {
  const fd = openSync(folder, "r");
  try {
    beforeChange("fsync");
    await fsyncFile(fd);
  } catch (error) {
    if (!cannotSync(error)) throw error;
  } finally {
    closeSync(fd);
  }
}

function syncFolderNow(folder: string): void {
  const fd = openSync(folder, "r");
  try {
    beforeChange("fsync");
    fsyncSync(fd);
  } catch (error) {
    if (!cannotSync(error)) throw error;
  } finally {
    closeSync(fd);
  }
}

const cannotSync = (error: unknown): boolean => ["EINVAL", "ENOTSUP"].includes(systemCode(error) ?? "");

/** What a write may take of the event loop's time at once. */
const pieceSize = 128 << 10;

/** As `writeAll`, without holding the event loop for long. */
export async function writeInPieces(fd: number, bytes: Uint8Array, position: number): Promise<void> {
  for (let at = 0; at < bytes.length; at += pieceSize) {
    writeAll(fd, bytes.subarray(at, at + pieceSize), position + at);
    await immediate();
  }
}

/**
 * Puts what `write` writes at `path`, all of it or nothing; it resolves to how many bytes that are. After a power loss the file may be cut short or
 * empty: its reader must be able to tell.
 */
export async function replaceFile(path: string, write: (fd: number) => Promise<number>): Promise<void> {
  const temporary = `${path}.${process.pid}`;
  try {
    const fd = openForWriting(temporary, "w");
    try {
      const size = await write(fd);
      if (fstatSync(fd).size !== size) throw new Error(`${temporary} was written in part`);
    } finally {
      closeSync(fd);
    }
    rename(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}

/** As `replaceFile`, of a few bytes. */
export function replaceFileNow(path: string, bytes: Uint8Array): void {
  const temporary = `${path}.${process.pid}`;
  try {
    const fd = openForWriting(temporary, "w");
    try {
      writeAll(fd, bytes, 0);
    } finally {
      closeSync(fd);
    }
    rename(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}

export function rename(from: string, to: string): void {
  beforeChange("rename");
  renameSync(from, to);
}

/** Fine when it is not there. */
export function remove(path: string): void {
  beforeChange("remove");
  rmSync(path, { force: true });
}

/** The same of a file whose blocks take the file system a while to free. */
export async function removeLarge(path: string): Promise<void> {
  beforeChange("remove");
  await rm(path, { force: true });
}

/** A folder with all that is in it, and whatever somebody who is about to end still puts into it; no error when it is not there. */
export async function removeTree(path: string): Promise<void> {
  beforeChange("remove");
  await rm(path, { recursive: true, force: true, maxRetries: 10, retryDelay: 20 });
}

/** Makes the folder and its parents where they are not there, and their names durable. Returns the outermost that it made. */
export function makeFolder(path: string, mode?: number): string | undefined {
  beforeChange("make");
  const first = mkdirSync(path, { recursive: true, mode });
  if (first === undefined) return undefined;
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    try {
      syncFolderNow(folder);
    } catch (error) {
      // A parent of another owner that may be passed through and not read, as /home can be.
      if (systemCode(error) !== "EACCES") throw error;
    }
    if (folder === dirname(first)) return first;
  }
}

export function setMode(path: string, mode: number): void {
  beforeChange("metadata");
  chmodSync(path, mode);
}

/** Of an empty folder. */
export function removeFolder(path: string): void {
  beforeChange("remove");
  rmdirSync(path);
}

/** Can the file system that holds the folder share a file's content with another file (FICLONE)? Leaves nothing behind. */
export function canShare(folder: string): boolean {
  const [from, to] = [join(folder, ".share-1"), join(folder, ".share-2")];
  try {
    beforeChange("write");
    writeFileSync(from, "shared", { flag: "wx" });
    copyFileSync(from, to, constants.COPYFILE_FICLONE_FORCE);
    return true;
  } catch {
    return false;
  } finally {
    remove(from);
    remove(to);
  }
}

/** @throws EEXIST where something is there */
export function makeNewFolder(path: string, mode: number): void {
  beforeChange("make");
  mkdirSync(path, { mode });
}
