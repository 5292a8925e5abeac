// Content-addressed objects in append-only packs (F-4 to F-6, F-21, F-25).
import { closeSync, openSync } from "node:fs";
import { join } from "node:path";
import { asDiskFull, RewindError } from "../errors.ts";
import { fault } from "../faults.ts";
import type { Sql, Statement } from "./database.ts";
import {
  bootId,
  fsyncFile,
  type Hash,
  hashOf,
  openPackWriter,
  type PackRow,
  type PackWriter,
  type Place,
  readAt,
  syncFolder,
  trimPacks,
} from "./packs.ts";

export { type Hash, hashOf };

/** Objects on their way in. Nothing of a batch is visible before its `commit`; one that is dropped leaves only unused bytes. */
export interface Batch {
  /** Stores the bytes unless the store has them; they must not change before `commit`. @throws DISK_FULL */
  put(bytes: Uint8Array): Hash;
  /** Makes everything that was put visible (F-6). Returns the bytes written. @throws DISK_FULL */
  commit(): number;
  /** Gives up what was put and not committed. A batch that failed has done so. */
  discard(): void;
}

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
  close(): void;
}

const bufferLimit = 1 << 20;
const rowsPerCommit = 500;

/** Names that were found in the store lately, so that a long conversation does not look each of its messages up again every turn. */
const rememberedLimit = 100_000;

/** Reads objects of any pack; writes to the pack of `environment`, whose lock the caller holds (null: read only). */
export function openObjects(sql: Sql, folder: string, environment: string | null): Objects {
  const find = sql.prepare("SELECT pack, offset, length FROM object WHERE hash = ?");
  const packName = sql.prepare("SELECT name FROM pack WHERE id = ?").pluck();
  const insert = sql.prepare("INSERT OR IGNORE INTO object (hash, pack, offset, length) VALUES (?, ?, ?, ?)");
  const unsynced = sql.prepare("SELECT id, name, length, synced FROM pack WHERE synced < length");
  const setSynced = sql.prepare("UPDATE pack SET synced = max(synced, ?) WHERE id = ?");
  if (environment !== null) trimPacks(sql, folder, environment);
  const readers = new Map<number, number>();
  const remembered = new Set<string>();
  let writer: PackWriter | undefined;

  function open(): PackWriter {
    if (environment === null) throw new Error("objects were opened for reading");
    writer ??= openPackWriter(sql, folder, environment);
    return writer;
  }

  function isKnown(hash: Hash, key: string): boolean {
    if (remembered.has(key)) return true;
    if (find.get(hash) === undefined) return false;
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
    batch: () => openBatch(sql, open, isKnown, insert),

    get(hash) {
      const bytes = read(hash);
      if (typeof bytes !== "string") return bytes;
      throw new RewindError("STORE_CORRUPT", `Object ${hash.toString("hex")} cannot be read: ${bytes}.`, {
        hint: "Run `agentrewind verify` to see which checkpoints need it.",
        details: { object: hash.toString("hex") },
      });
    },

    has: (hash) => find.get(hash) !== undefined,

    check(hash) {
      const bytes = read(hash);
      return typeof bytes === "string" ? bytes : undefined;
    },

    async sync() {
      for (const row of unsynced.all() as PackRow[]) {
        const fd = openSync(join(folder, row.name), "r");
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

function openBatch(
  sql: Sql,
  open: () => PackWriter,
  known: (hash: Hash, key: string) => boolean,
  insert: Statement,
): Batch {
  const grow = sql.prepare("UPDATE pack SET length = max(length, ?), boot = ? WHERE id = ?");
  const seen = new Set<string>();
  let rows: (Place & { hash: Hash })[] = [];
  let buffered: { hash: Hash; bytes: Uint8Array }[] = [];
  let bufferedBytes = 0;
  let written = 0;

  const user = {};
  let wrote = false;

  function flush(): void {
    if (buffered.length === 0) return;
    wrote = true;
    let offset = open().append(
      user,
      buffered.map((one) => one.bytes),
      bufferedBytes,
    );
    for (const { hash, bytes } of buffered) {
      rows.push({ hash, offset, length: bytes.length });
      offset += bytes.length;
    }
    written += bufferedBytes;
    buffered = [];
    bufferedBytes = 0;
  }

  function leave(): void {
    seen.clear();
    rows = [];
    buffered = [];
    bufferedBytes = 0;
    written = 0;
    if (wrote) open().leave(user);
    wrote = false;
  }

  function failed(error: unknown): unknown {
    leave();
    return asDiskFull(error, "the store");
  }

  return {
    put(bytes) {
      const hash = hashOf(bytes);
      const key = hash.toString("latin1");
      if (seen.has(key) || known(hash, key)) return hash;
      try {
        seen.add(key);
        buffered.push({ hash, bytes });
        bufferedBytes += bytes.length;
        if (bufferedBytes >= bufferLimit) flush();
      } catch (error) {
        throw failed(error);
      }
      return hash;
    },

    commit() {
      try {
        flush();
        fault("objects.written");
        for (let from = 0; from < rows.length; from += rowsPerCommit) {
          const slice = rows.slice(from, from + rowsPerCommit);
          const last = slice.at(-1) as Place;
          sql
            .transaction(() => {
              const { id } = open();
              for (const row of slice) insert.run(row.hash, id, row.offset, row.length);
              grow.run(last.offset + last.length, bootId(), id);
            })
            .immediate();
          open().committed(last.offset + last.length);
        }
      } catch (error) {
        throw failed(error);
      }
      fault("objects.committed");
      const bytes = written;
      leave();
      return bytes;
    },

    discard: leave,
  };
}
