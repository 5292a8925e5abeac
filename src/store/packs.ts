// Packs: files of object bytes laid end to end, and what of them survives (F-5, F-21, F-25).
import { createHash, randomBytes } from "node:crypto";
import { closeSync, openSync, readFileSync, readSync, statSync } from "node:fs";
import { join } from "node:path";
import { RewindError } from "../errors.ts";
import { fault } from "../faults.ts";
import type { Sql } from "./database.ts";
import type { RequireHolder } from "./holder.ts";
import { cutFile, openForWriting, writeAll } from "./io.ts";

/** A 32-byte SHA-256. */
export type Hash = Buffer;
export const nameLength = 32;

export const magic = Buffer.from("ARWPACK1");
export const packLimit = 256 << 20;

export function hashOf(bytes: Uint8Array): Hash {
  return createHash("sha256").update(bytes).digest();
}

/** Identifies this run of the machine; unsynced bytes of another one may be gone. */
export function bootId(): string {
  boot ??= readBootId();
  return boot;
}
let boot: string | undefined;

function readBootId(): string {
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

/** One batch writes to a pack at a time: `pack.length` never passes bytes that are still to be written, so a sync up to it is a whole one. */
export interface PackWriter {
  readonly id: number;
  readonly fd: number;
  /** Room for `size` bytes behind the last; the batch writes them. Returns where. */
  reserve(size: number): number;
  /** Everything up to `end` has its rows. */
  committed(end: number): void;
  /** The batch writes no more. What was not committed is given back to the disk. */
  leave(): void;
  /** It has reached its size: the next batch takes another. */
  isFull(): boolean;
  close(): void;
}

/** Opens the newest pack that has room, is not sealed and not `taken`, or a new one. */
export function openPackWriter(
  sql: Sql,
  folder: string,
  environment: string,
  taken: readonly PackWriter[] = [],
  guard: RequireHolder = () => {},
): PackWriter {
  const rows = sql
    .prepare(
      "SELECT id, name, length, synced FROM pack WHERE environment = ? AND sealed = 0 AND length < ? ORDER BY id DESC",
    )
    .all(environment, packLimit) as PackRow[];
  const row = rows.find(({ id }) => taken.every((one) => one.id !== id));
  const name = row?.name ?? `${randomBytes(8).toString("hex")}.pack`;
  const fd = openForWriting(join(folder, name), row === undefined ? "wx+" : "r+");
  let safe = row?.length ?? magic.length;
  let end = safe;
  let id = row?.id;
  if (id === undefined) {
    writeAll(fd, magic, 0);
    fault("pack.created");
    const added = sql
      .transaction(() => {
        guard();
        return sql
          .prepare("INSERT INTO pack (name, environment, length, synced, boot) VALUES (?, ?, ?, 0, ?)")
          .run(name, environment, magic.length, bootId());
      })
      .immediate();
    id = Number(added.lastInsertRowid);
  }
  return {
    id,
    fd,
    reserve(size) {
      end += size;
      return end - size;
    },
    committed(upTo) {
      safe = Math.max(safe, upTo);
    },
    leave() {
      end = safe;
      cutFile(fd, safe);
    },
    isFull: () => safe >= packLimit,
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
    const fd = openForWriting(path, "r+");
    try {
      cutFile(fd, row.length);
    } finally {
      closeSync(fd);
    }
  }
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

/** Writes what is not known to be on disk over itself, so that the next fsync has to see to it. @throws STORE_CORRUPT when bytes are lost already */
export function writeAgain(sql: Sql, folder: string, row: PackRow): void {
  const fd = openForWriting(join(folder, row.name), "r+");
  try {
    if (row.synced === 0) writeAll(fd, magic, 0);
    for (const at of unsyncedObjects(sql, row)) {
      const bytes = readAt(fd, at);
      if (bytes === undefined || !hashOf(bytes).equals(at.hash)) {
        throw new RewindError(
          "STORE_CORRUPT",
          `The disk lost bytes of the pack ${row.name} that were not yet safe on it.`,
          {
            hint: "Close the workspace and look at the disk; `agentrewind verify` shows which checkpoints are affected.",
            details: { pack: row.name },
          },
        );
      }
      writeAll(fd, bytes, at.offset);
    }
  } finally {
    closeSync(fd);
  }
}

function unsyncedObjects(sql: Sql, row: PackRow): (Place & { hash: Buffer })[] {
  return sql
    .prepare("SELECT hash, offset, length FROM object WHERE pack = ? AND offset + length > ?")
    .all(row.id, row.synced) as (Place & { hash: Buffer })[];
}

/** Drops rows of objects that did not survive a restart of the machine (F-25). Returns how many. */
export function dropLostObjects(sql: Sql, folder: string): number {
  const boot = bootId();
  const packs = sql
    .prepare("SELECT id, name, length, synced FROM pack WHERE synced < length AND boot <> ?")
    .all(boot) as PackRow[];
  let lost = 0;
  for (const row of packs) {
    const gone = unsyncedObjects(sql, row).filter((at) => !isWhole(join(folder, row.name), at));
    sql
      .transaction(() => {
        for (const at of gone) sql.prepare("DELETE FROM object WHERE hash = ? AND pack = ?").run(at.hash, row.id);
        if (gone.length > 0) sql.prepare("UPDATE environment SET suspect = 1").run();
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
