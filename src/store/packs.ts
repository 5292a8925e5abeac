// Packs: files of object bytes laid end to end, and what of them survives (F-5, F-21, F-25).
import { createHash, randomBytes } from "node:crypto";
import {
  closeSync,
  fstatSync,
  fsync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readFileSync,
  readSync,
  statSync,
  writeSync,
  writevSync,
} from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { fault } from "../faults.ts";
import type { Sql } from "./database.ts";

/** A 32-byte SHA-256. */
export type Hash = Buffer;

export const magic = Buffer.from("ARWPACK1");
export const packLimit = 256 << 20;

export function hashOf(bytes: Uint8Array): Hash {
  return createHash("sha256").update(bytes).digest();
}

/** Identifies this run of the machine; unsynced bytes of another one may be gone. */
export function bootId(): string {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    return "unknown";
  }
}

export interface Place {
  readonly offset: number;
  readonly length: number;
}

export interface PackRow {
  readonly id: number;
  readonly name: string;
  readonly length: number;
  readonly synced: number;
}

/** A batch that has written and not yet committed. */
export type PackUser = object;

export interface PackWriter {
  readonly id: number;
  readonly fd: number;
  /** Room for `size` bytes behind the last; the user writes them itself. Returns where. */
  reserve(user: PackUser, size: number): number;
  /** Writes behind the last byte and returns where. */
  append(user: PackUser, parts: readonly Uint8Array[], size: number): number;
  /** Everything up to `end` has its rows. */
  committed(end: number): void;
  /** The user writes no more. What nobody needs any more behind the committed length is given back to the disk. */
  leave(user: PackUser): void;
  /** Nobody writes to it and it has reached its size: the next writer takes another. */
  isFull(): boolean;
  /** No batch is under way. */
  isIdle(): boolean;
  close(): void;
}

export function openPackWriter(sql: Sql, folder: string, environment: string): PackWriter {
  const row = sql
    .prepare(
      "SELECT id, name, length, synced FROM pack WHERE environment = ? AND sealed = 0 AND length < ? ORDER BY id DESC LIMIT 1",
    )
    .get(environment, packLimit) as PackRow | undefined;
  const name = row?.name ?? `${randomBytes(8).toString("hex")}.pack`;
  const fd = openSync(join(folder, name), row === undefined ? "wx+" : "r+", 0o600);
  const users = new Set<PackUser>();
  let safe = row?.length ?? magic.length;
  let end = safe;
  let id = row?.id;
  if (id === undefined) {
    writeAll(fd, magic, 0);
    fault("pack.created");
    const added = sql
      .prepare("INSERT INTO pack (name, environment, length, synced, boot) VALUES (?, ?, ?, 0, ?)")
      .run(name, environment, magic.length, bootId());
    id = Number(added.lastInsertRowid);
  }
  function reserve(user: PackUser, size: number): number {
    users.add(user);
    end += size;
    return end - size;
  }
  return {
    id,
    fd,
    reserve,
    append(user, parts, size) {
      const offset = reserve(user, size);
      writeParts(fd, parts, size, offset);
      return offset;
    },
    committed(upTo) {
      safe = Math.max(safe, upTo);
    },
    leave(user) {
      users.delete(user);
      if (users.size > 0) return;
      end = safe;
      cutTo(fd, safe);
    },
    isIdle: () => users.size === 0,
    isFull: () => users.size === 0 && safe >= packLimit,
    close: () => closeSync(fd),
  };
}

/** Gives back what a killed or failed writer left behind the committed length. The caller holds the environment's lock. */
export function trimPacks(sql: Sql, folder: string, environment: string): void {
  for (const row of sql
    .prepare("SELECT id, name, length, synced FROM pack WHERE environment = ?")
    .all(environment) as PackRow[]) {
    const path = join(folder, row.name);
    const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
    if (size <= row.length) continue;
    const fd = openSync(path, "r+");
    try {
      cutTo(fd, row.length);
    } finally {
      closeSync(fd);
    }
  }
}

function cutTo(fd: number, length: number): void {
  if (fstatSync(fd).size > length) ftruncateSync(fd, length);
}

export function readAt(fd: number, at: Place): Buffer | undefined {
  const bytes = Buffer.allocUnsafe(at.length);
  for (let done = 0; done < bytes.length; ) {
    const n = readSync(fd, bytes, done, bytes.length - done, at.offset + done);
    if (n === 0) return undefined;
    done += n;
  }
  return bytes;
}

export const fsyncFile = promisify(fsync);

export function syncFolder(folder: string): void {
  const fd = openSync(folder, "r");
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

function writeAll(fd: number, bytes: Uint8Array, position: number): void {
  let done = 0;
  while (done < bytes.length) done += writeSync(fd, bytes, done, bytes.length - done, position + done);
}

function writeParts(fd: number, parts: readonly Uint8Array[], size: number, position: number): void {
  const written = writevSync(fd, parts as Uint8Array[], position);
  if (written < size) writeAll(fd, Buffer.concat(parts, size).subarray(written), position + written);
}

/** Drops rows of objects that did not survive a restart of the machine (F-25). Returns how many. */
export function dropLostObjects(sql: Sql, folder: string): number {
  const boot = bootId();
  const packs = sql
    .prepare("SELECT id, name, length, synced FROM pack WHERE synced < length AND boot <> ?")
    .all(boot) as PackRow[];
  let lost = 0;
  for (const row of packs) {
    const rows = sql
      .prepare("SELECT hash, offset, length FROM object WHERE pack = ? AND offset + length > ?")
      .all(row.id, row.synced) as (Place & { hash: Buffer })[];
    const gone = rows.filter((at) => !isWhole(join(folder, row.name), at));
    sql
      .transaction(() => {
        for (const at of gone) sql.prepare("DELETE FROM object WHERE hash = ? AND pack = ?").run(at.hash, row.id);
        sql.prepare("UPDATE pack SET boot = ? WHERE id = ?").run(boot, row.id);
      })
      .immediate();
    lost += gone.length;
  }
  return lost;
}

function isWhole(path: string, at: Place & { hash: Buffer }): boolean {
  try {
    const fd = openSync(path, "r");
    try {
      const bytes = readAt(fd, at);
      return bytes !== undefined && hashOf(bytes).equals(at.hash);
    } finally {
      closeSync(fd);
    }
  } catch {
    return false;
  }
}
