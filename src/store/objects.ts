// Content-addressed objects in append-only packs (F-4 to F-6, F-21, F-25).
import { closeSync, openSync } from "node:fs";
import { join } from "node:path";
import { RewindError, systemCode } from "../errors.ts";
import { fault } from "../faults.ts";
import { type Batch, openBatch } from "./batch.ts";
import type { Sql } from "./database.ts";
import {
  fsyncFile,
  type Hash,
  hashOf,
  openPackWriter,
  type PackRow,
  type PackWriter,
  readAt,
  syncFolder,
  trimPacks,
} from "./packs.ts";
import type { Uses } from "./uses.ts";

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
  /** While `work` runs, nothing that it finds in the store is taken away by gc (F-32). */
  use<T>(work: () => Promise<T>): Promise<T>;
  /** Raised by gc. Names remembered since an older one may be gone: look with `holds` before relying on them. Ask inside of a use. */
  generation(): number;
  /** True when the store has the object and gc does not mean to take it: what is committed now may rely on it. */
  holds(hash: Hash): boolean;
  /** The packs of this environment are written no more; false while a batch is under way (F-35). */
  seal(): boolean;
  /** Everything committed so far is on disk when it resolves (F-21). */
  sync(): Promise<void>;
  close(): void;
}

interface PlaceRow {
  readonly pack: number;
  readonly offset: number;
  readonly length: number;
}

/** Names that were found in the store lately, so that a long conversation does not look each of its messages up again every turn. */
const rememberedLimit = 100_000;

/** Reads objects of any pack; writes to the pack of `environment`, whose lock the caller holds (null: read only). */
export function openObjects(sql: Sql, folder: string, environment: string | null, uses: Uses): Objects {
  const find = sql.prepare("SELECT pack, offset, length FROM object WHERE hash = ?");
  const exists = sql.prepare("SELECT 1 FROM object WHERE hash = ?").pluck();
  const holds = sql.prepare("SELECT 1 FROM object WHERE hash = ? AND condemned = 0").pluck();
  const packName = sql.prepare("SELECT name FROM pack WHERE id = ?").pluck();
  const insert = sql.prepare(
    `INSERT INTO object (hash, pack, offset, length) VALUES (?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET pack = excluded.pack, offset = excluded.offset, condemned = 0 WHERE condemned = 1`,
  );
  const seal = sql.prepare("UPDATE pack SET sealed = 1 WHERE environment = ?");
  const unsynced = sql.prepare("SELECT id, name, length, synced FROM pack WHERE synced < length");
  const setSynced = sql.prepare("UPDATE pack SET synced = max(synced, ?) WHERE id = ?");
  if (environment !== null) trimPacks(sql, folder, environment);
  const readers = new Map<number, number>();
  const remembered = new Set<string>();
  let writer: PackWriter | undefined;
  let generation = uses.phase();

  function enter(): () => void {
    const leave = uses.enter();
    const now = uses.phase();
    if (now !== generation) {
      generation = now;
      remembered.clear();
      // A descriptor would keep the bytes of a deleted pack on the disk.
      for (const [pack, fd] of readers) {
        if (packName.get(pack) !== undefined) continue;
        readers.delete(pack);
        closeSync(fd);
      }
    }
    return leave;
  }

  function open(): PackWriter {
    if (environment === null) throw new Error("objects were opened for reading");
    if (writer?.isFull() === true) {
      writer.close();
      writer = undefined;
    }
    writer ??= openPackWriter(sql, folder, environment);
    return writer;
  }

  function isKnown(hash: Hash, key: string): boolean {
    if (remembered.has(key)) return true;
    if (holds.get(hash) === undefined) return false;
    if (remembered.size >= rememberedLimit) remembered.clear();
    remembered.add(key);
    return true;
  }

  const lookUp = (hash: Hash): PlaceRow | undefined => find.get(hash) as PlaceRow | undefined;

  function readerOf(pack: number): number {
    let fd = readers.get(pack);
    if (fd === undefined) {
      fd = openSync(join(folder, String(packName.get(pack))), "r");
      readers.set(pack, fd);
    }
    return fd;
  }

  function read(hash: Hash): Buffer | string {
    let row = lookUp(hash);
    if (row === undefined) return "it is missing";
    try {
      let fd: number;
      try {
        fd = readerOf(row.pack);
      } catch (error) {
        // gc moved the object and deleted its pack after the look.
        const moved = lookUp(hash);
        if (systemCode(error) !== "ENOENT" || moved === undefined || moved.pack === row.pack) throw error;
        row = moved;
        fd = readerOf(row.pack);
      }
      const bytes = readAt(fd, row);
      if (bytes === undefined) return "its pack is cut short";
      return hashOf(bytes).equals(hash) ? bytes : "its bytes are damaged";
    } catch (error) {
      return `its pack cannot be read (${(error as Error).message})`;
    }
  }

  /** Undefined for a pack that gc deleted meanwhile: what was alive of it is on disk elsewhere. */
  function openUnlessDropped(row: PackRow): number | undefined {
    try {
      return openSync(join(folder, row.name), "r");
    } catch (error) {
      if (systemCode(error) === "ENOENT" && packName.get(row.id) === undefined) return undefined;
      throw error;
    }
  }

  return {
    batch: () => openBatch(sql, open, isKnown, insert, enter),

    async use(work) {
      const leave = enter();
      try {
        return await work();
      } finally {
        leave();
      }
    },

    generation: uses.phase,

    holds: (hash) => holds.get(hash) !== undefined,

    seal() {
      if (environment === null || writer?.isIdle() === false) return false;
      writer?.close();
      writer = undefined;
      seal.run(environment);
      return true;
    },

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

    async sync() {
      for (const row of unsynced.all() as PackRow[]) {
        const fd = openUnlessDropped(row);
        if (fd === undefined) continue;
        try {
          await fsyncFile(fd);
        } finally {
          closeSync(fd);
        }
        if (row.synced === 0) syncFolder(folder);
        setSynced.run(row.length, row.id);
      }
      fault("durable.packs-synced");
    },

    close() {
      writer?.close();
      writer = undefined;
      for (const fd of readers.values()) closeSync(fd);
      readers.clear();
    },
  };
}
