// Content-addressed objects in append-only packs (F-4 to F-6, F-21, F-25).
import { closeSync, openSync } from "node:fs";
import { join } from "node:path";
import { asWriteFailure, RewindError } from "../errors.ts";
import { fault } from "../faults.ts";
import { type Batch, openBatch, type PackPool } from "./batch.ts";
import type { Sql } from "./database.ts";
import { syncFile, syncFolder } from "./io.ts";
import {
  type Hash,
  hashOf,
  openPackWriter,
  type PackRow,
  type PackWriter,
  readAt,
  trimPacks,
  writeAgain,
} from "./packs.ts";

export { type Batch, type Hash, hashOf };

export interface ObjectReader {
  /** @throws STORE_CORRUPT when missing or damaged. */
  get(hash: Hash): Buffer;
  has(hash: Hash): boolean;
  /** Undefined where the bytes are whole; else what is wrong with them. */
  check(hash: Hash): string | undefined;
}

export interface Objects extends ObjectReader {
  batch(): Batch;
  /** Everything committed so far is on disk when it resolves (F-21). */
  sync(): Promise<void>;
  /** Resolves when no sync is under way. */
  settled(): Promise<void>;
  close(): void;
}

/** Names that were found in the store lately, so that a long conversation does not look each of its messages up again every turn. */
const rememberedLimit = 100_000;

/** Reads objects of any pack; writes to the pack of `environment`, whose lock the caller holds (null: read only). */
export function openObjects(sql: Sql, folder: string, environment: string | null): Objects {
  const find = sql.prepare("SELECT pack, offset, length FROM object WHERE hash = ?");
  const exists = sql.prepare("SELECT 1 FROM object WHERE hash = ?").pluck();
  const packName = sql.prepare("SELECT name FROM pack WHERE id = ?").pluck();
  const insert = sql.prepare("INSERT OR IGNORE INTO object (hash, pack, offset, length) VALUES (?, ?, ?, ?)");
  const unsynced = sql.prepare("SELECT id, name, length, synced FROM pack WHERE synced < length");
  const setSynced = sql.prepare("UPDATE pack SET synced = max(synced, ?) WHERE id = ?");
  if (environment !== null) trimPacks(sql, folder, environment);
  const readers = new Map<number, number>();
  const remembered = new Set<string>();
  const idle: PackWriter[] = [];
  const busy: PackWriter[] = [];
  let syncing = Promise.resolve();

  const pool: PackPool = {
    take() {
      if (environment === null) throw new Error("objects were opened for reading");
      const pack = idle.pop() ?? openPackWriter(sql, folder, environment, busy);
      busy.push(pack);
      return pack;
    },
    giveBack(pack) {
      busy.splice(busy.indexOf(pack), 1);
      if (pack.isFull()) pack.close();
      else idle.push(pack);
    },
  };

  /** Packs whose last fsync failed: the kernel then forgets which of their bytes are not on disk, and the next fsync would lie. */
  const doubtful = new Set<number>();

  async function syncPacks(): Promise<void> {
    for (const row of unsynced.all() as PackRow[]) {
      try {
        if (doubtful.has(row.id)) writeAgain(sql, folder, row);
        doubtful.add(row.id);
        await syncFile(join(folder, row.name));
        if (row.synced === 0) syncFolder(folder);
        setSynced.run(row.length, row.id);
        doubtful.delete(row.id);
      } catch (error) {
        throw asWriteFailure(error, "the store");
      }
    }
    fault("durable.packs-synced");
  }

  function isKnown(hash: Hash, key: string): boolean {
    if (remembered.has(key)) return true;
    if (exists.get(hash) === undefined) return false;
    if (remembered.size >= rememberedLimit) remembered.clear();
    remembered.add(key);
    return true;
  }

  function read(hash: Hash): Buffer | string {
    const row = find.get(hash) as { pack: number; offset: number; length: number } | undefined;
    if (row === undefined) return "it is missing";
    try {
      let fd = readers.get(row.pack);
      if (fd === undefined) {
        fd = openSync(join(folder, packName.get(row.pack) as string), "r");
        readers.set(row.pack, fd);
      }
      const bytes = readAt(fd, row);
      if (bytes === undefined) return "its pack is cut short";
      return hashOf(bytes).equals(hash) ? bytes : "its bytes are damaged";
    } catch (error) {
      return `its pack cannot be read (${(error as Error).message})`;
    }
  }

  return {
    batch: () => openBatch(sql, pool, isKnown, insert),

    get(hash) {
      const bytes = read(hash);
      if (typeof bytes !== "string") return bytes;
      throw new RewindError("STORE_CORRUPT", `Object ${hash.toString("hex")} cannot be read: ${bytes}.`, {
        hint: "Run `agentrewind verify` to see which checkpoints need it.",
        details: { object: hash.toString("hex") },
      });
    },

    has: (hash) => exists.get(hash) !== undefined,

    check(hash) {
      const bytes = read(hash);
      return typeof bytes === "string" ? bytes : undefined;
    },

    sync() {
      const next = syncing.then(syncPacks);
      syncing = next.catch(() => {});
      return next;
    },

    settled: () => syncing,

    close() {
      for (const pack of [...idle.splice(0), ...busy.splice(0)]) pack.close();
      for (const fd of readers.values()) closeSync(fd);
      readers.clear();
    },
  };
}
