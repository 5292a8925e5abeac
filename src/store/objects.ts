// Content-addressed objects in append-only packs (F-4 to F-6, F-21, F-25).
import { closeSync, openSync } from "node:fs";
import { join } from "node:path";
import { asWriteFailure, RewindError, systemCode } from "../errors.ts";
import { fault } from "../faults.ts";
import { type Batch, type Known, openBatch, type PackPool } from "./batch.ts";
import type { Sql } from "./database.ts";
import type { RequireHolder } from "./holder.ts";
import { syncFile, syncFolder } from "./io.ts";
import {
  type Hash,
  hashOf,
  nameLength,
  openPackWriter,
  type PackRow,
  type PackWriter,
  type Place,
  readAt,
  trimPacks,
  writeAgain,
} from "./packs.ts";
import type { Uses } from "./uses.ts";

export { type Batch, type Hash, hashOf };

export interface ObjectReader {
  /** @throws STORE_CORRUPT when missing or damaged. */
  get(hash: Hash): Buffer;
  has(hash: Hash): boolean;
  /** Undefined where the bytes are whole; else what is wrong with them. */
  check(hash: Hash): string | undefined;
  /** Where the bytes lie; who reads them there compares them with the name (F-4). Undefined when missing. */
  locate(hash: Hash): Located | undefined;
}

/** A place in a pack whose descriptor stays open as long as the store is in use (F-32). */
export interface Located extends Place {
  readonly fd: number;
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
  /** Resolves when no sync is under way. */
  settled(): Promise<void>;
  close(): void;
}

interface PlaceRow {
  /** Its name: the number of a deleted pack may be given to another. */
  readonly pack: string;
  readonly offset: number;
  readonly length: number;
}

/** Names that were found in the store lately, so that a long conversation does not look each of its messages up again every turn. */
const rememberedLimit = 100_000;

/** Reads objects of any pack; writes to the pack of `environment`, whose lock the caller holds (null: read only) and `guard` confirms (F-41). */
export function openObjects(
  sql: Sql,
  folder: string,
  environment: string | null,
  uses: Uses,
  guard: RequireHolder = () => {},
): Objects {
  const find = sql.prepare(
    "SELECT p.name AS pack, o.offset, o.length FROM object o JOIN pack p ON p.id = o.pack WHERE o.hash = ?",
  );
  const exists = sql.prepare("SELECT 1 FROM object WHERE hash = ?").pluck();
  const holds = sql.prepare("SELECT 1 FROM object WHERE hash = ? AND condemned = 0").pluck();
  const holdsOf = sql
    .prepare(
      `WITH RECURSIVE wanted (i) AS (VALUES (0) UNION ALL SELECT i + 1 FROM wanted WHERE i + 1 < $count)
       SELECT i FROM wanted WHERE EXISTS (SELECT 1 FROM object WHERE hash = substr($names, i * 32 + 1, 32) AND condemned = 0)`,
    )
    .pluck();
  const isPack = sql.prepare("SELECT 1 FROM pack WHERE name = ?").pluck();
  const insert = sql.prepare(
    `INSERT INTO object (hash, pack, offset, length)
     SELECT substr($names, key * 32 + 1, 32), $pack, value ->> 0, value ->> 1 FROM json_each(CAST($places AS TEXT)) WHERE true
     ON CONFLICT DO UPDATE SET pack = excluded.pack, offset = excluded.offset, condemned = 0 WHERE condemned = 1`,
  );
  const seal = sql.prepare("UPDATE pack SET sealed = 1 WHERE environment = ?");
  const unsynced = sql.prepare("SELECT id, name, length, synced FROM pack WHERE synced < length");
  const setSynced = sql.prepare("UPDATE pack SET synced = max(synced, ?) WHERE id = ?");
  if (environment !== null) trimPacks(sql, folder, environment);
  const readers = new Map<string, number>();
  const remembered = new Set<string>();
  const idle: PackWriter[] = [];
  const busy: PackWriter[] = [];
  let syncing = Promise.resolve();
  let generation = uses.phase();

  let inUse = 0;
  let collected = false;

  function enter(): () => void {
    const leave = uses.enter();
    const now = uses.phase();
    if (now !== generation) {
      generation = now;
      remembered.clear();
      collected = true;
    }
    if (collected && inUse === 0) closeDeleted();
    inUse++;
    return () => {
      inUse--;
      leave();
    };
  }

  /** A descriptor keeps the bytes of a deleted pack on the disk; but who is in use may be reading from it. */
  function closeDeleted(): void {
    collected = false;
    for (const [pack, fd] of readers) {
      if (isPack.get(pack) !== undefined) continue;
      readers.delete(pack);
      closeSync(fd);
    }
  }

  const pool: PackPool = {
    take() {
      if (environment === null) throw new Error("objects were opened for reading");
      const pack = idle.pop() ?? openPackWriter(sql, folder, environment, busy, guard);
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
        if (row.synced === 0) await syncFolder(folder);
        setSynced.run(row.length, row.id);
        doubtful.delete(row.id);
      } catch (error) {
        // gc deleted it meanwhile: what was alive of it is on disk elsewhere.
        if (systemCode(error) === "ENOENT" && isPack.get(row.name) === undefined) continue;
        throw asWriteFailure(error, "the store");
      }
    }
    fault("durable.packs-synced");
  }

  const known: Known = {
    one(hash) {
      const key = hash.toString("latin1");
      if (remembered.has(key)) return true;
      if (holds.get(hash) === undefined) return false;
      if (remembered.size >= rememberedLimit) remembered.clear();
      remembered.add(key);
      return true;
    },
    // One statement for all: each by itself takes and gives back SQLite's locks.
    many: (names) => new Set(holdsOf.all({ names, count: names.length / nameLength }) as number[]),
  };

  const lookUp = (hash: Hash): PlaceRow | undefined => find.get(hash) as PlaceRow | undefined;

  function readerOf(pack: string): number {
    let fd = readers.get(pack);
    if (fd === undefined) {
      fd = openSync(join(folder, pack), "r");
      readers.set(pack, fd);
    }
    return fd;
  }

  function locate(hash: Hash): Located | undefined {
    const row = lookUp(hash);
    if (row === undefined) return undefined;
    try {
      return { fd: readerOf(row.pack), offset: row.offset, length: row.length };
    } catch (error) {
      // gc moved the object and deleted its pack after the look.
      const moved = lookUp(hash);
      if (systemCode(error) !== "ENOENT" || moved === undefined || moved.pack === row.pack) throw error;
      return { fd: readerOf(moved.pack), offset: moved.offset, length: moved.length };
    }
  }

  function read(hash: Hash): Buffer | string {
    try {
      const at = locate(hash);
      if (at === undefined) return "it is missing";
      const bytes = readAt(at.fd, at);
      if (bytes === undefined) return "its pack is cut short";
      return hashOf(bytes).equals(hash) ? bytes : "its bytes are damaged";
    } catch (error) {
      return `its pack cannot be read (${(error as Error).message})`;
    }
  }

  return {
    batch: () => openBatch(sql, pool, known, insert, enter, guard),

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
      if (environment === null || busy.length > 0) return false;
      for (const pack of idle.splice(0)) pack.close();
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

    locate,

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
