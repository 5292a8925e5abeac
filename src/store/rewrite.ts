// Packs that are dead or mostly dead: deleted, or what lives of them copied together (F-35, F-36).
import { randomBytes } from "node:crypto";
import { closeSync } from "node:fs";
import { join } from "node:path";
import type { Breathe } from "../breathe.ts";
import { asWriteFailure, isRewindError } from "../errors.ts";
import { fault } from "../faults.ts";
import { type Census, objectRows } from "./census.ts";
import type { Sql } from "./database.ts";
import { openForWriting, remove, removeLarge, syncFile, syncFolder, writeAll } from "./io.ts";
import type { Layout } from "./layout.ts";
import { tryLock } from "./lock.ts";
import type { ObjectReader } from "./objects.ts";
import { bootId, magic } from "./packs.ts";
import { type Catalog, writeSlice } from "./slices.ts";
import { syncLog } from "./store.ts";
import { waitForUses } from "./uses.ts";

export interface Pack {
  readonly id: number;
  readonly name: string;
  readonly environment: string;
  readonly length: number;
  readonly sealed: number;
}

export interface Candidate extends Pack {
  /** It is small, and there are many such. */
  readonly small: boolean;
}

export interface ThinPack extends Pack {
  /** What lives of it, as the census counts. */
  readonly live: readonly number[];
  readonly bytes: number;
}

/** Owner of the packs that gc writes; they are sealed from the first. */
const gcOwner = "gc";
/** Bytes that are copied before the first old pack is deleted: what a rewrite needs of the disk. */
const copyLimit = 64 << 20;
const bufferLimit = 256 << 10;
/** Small packs are joined when there are more than this many. */
const smallPacks = 8;
const smallPack = 8 << 20;

/** Those of which less than `ratio` is reached, and small ones when there are many. */
export function packsToGiveBack(sql: Sql, reachedBytes: ReadonlyMap<number, number>, ratio: number): Candidate[] {
  const packs = sql.prepare("SELECT id, name, environment, length, sealed FROM pack ORDER BY id").all() as Pack[];
  const small = packs.filter((pack) => pack.sealed === 1 && pack.length < smallPack);
  const joined = new Set(small.length > smallPacks ? small : []);
  return packs
    .map((pack) => ({ ...pack, small: joined.has(pack) }))
    .filter((pack) => isThin(pack, reachedBytes.get(pack.id) ?? 0, ratio));
}

const isThin = (pack: Candidate, bytes: number, ratio: number): boolean =>
  bytes === 0 || pack.small || bytes < ratio * (pack.length - magic.length);

/** Numbers of those packs that nobody writes to any more. A pack of an environment without a holder is sealed under its lock; a holder is asked (F-35). */
export async function sealPacks(
  sql: Sql,
  layout: Layout,
  packs: readonly Pack[],
  askToSeal: (environment: string) => Promise<boolean>,
): Promise<ReadonlySet<number>> {
  const open = new Set(packs.filter((pack) => pack.sealed === 0).map((pack) => pack.environment));
  for (const environment of open) {
    const lock = tryLock(layout.locks, environment);
    if (lock === undefined) {
      await askToSeal(environment);
      continue;
    }
    try {
      sql.prepare("UPDATE pack SET sealed = 1 WHERE environment = ?").run(environment);
    } finally {
      lock.release();
    }
  }
  const isSealed = sql.prepare("SELECT sealed FROM pack WHERE id = ?").pluck();
  return new Set(packs.map(({ id }) => id).filter((id) => isSealed.get(id) === 1));
}

/**
 * Sealed packs without rows, and those of which some rows live. One that has a row which the census does not know there, because it was stored after it, waits
 * for the next gc: comparing numbers would not tell it from one that lost as many rows to a writer that stored them anew elsewhere.
 */
export async function countRows(
  sql: Sql,
  census: Census,
  packs: readonly Candidate[],
  ratio: number,
  breathe: Breathe,
): Promise<{ dead: Pack[]; thin: ThinPack[] }> {
  const found = new Map(packs.map((pack) => [pack.id, { live: [] as number[], bytes: 0, isKnown: true }]));
  if (packs.length > 0) {
    for await (const row of objectRows(sql, breathe)) {
      const one = found.get(row.pack);
      if (one === undefined) continue;
      const index = census.indexOf(row.hash);
      one.isKnown &&= index >= 0 && census.isReached(index) && census.pack(index) === row.pack;
      one.live.push(index);
      one.bytes += row.length;
    }
  }
  const dead: Pack[] = [];
  const thin: ThinPack[] = [];
  for (const pack of packs) {
    const { live, bytes, isKnown } = found.get(pack.id) as { live: number[]; bytes: number; isKnown: boolean };
    if (live.length === 0) dead.push(pack);
    else if (isKnown && isThin(pack, bytes, ratio)) thin.push({ ...pack, live, bytes });
  }
  return { dead, thin };
}

/** Deletes packs that no row and no use names. The rows' end is on disk first: after a power loss none may name a file that is gone. */
export async function dropPacks(sql: Sql, layout: Layout, packs: readonly Pack[]): Promise<number> {
  if (packs.length === 0) return 0;
  const drop = sql.prepare("DELETE FROM pack WHERE id = ?");
  sql
    .transaction(() => {
      for (const pack of packs) drop.run(pack.id);
    })
    .immediate();
  await syncLog(layout.catalog);
  fault("gc.pack-dropped");
  for (const pack of packs) {
    await removeLarge(join(layout.packs, pack.name));
    fault("gc.pack-unlinked");
  }
  return packs.length;
}

export interface Rewrite {
  readonly catalog: Catalog;
  readonly layout: Layout;
  readonly objects: ObjectReader;
  readonly census: Census;
  readonly packs: readonly ThinPack[];
  readonly patienceMs: number;
  readonly breathe: Breathe;
  readonly signal: AbortSignal | undefined;
}

/** Copies what lives together, the smallest first, and deletes the old packs. Without room for a copy the rest is left for later (`left`). */
export async function rewritePacks(
  given: Rewrite,
): Promise<{ packs: number; left: readonly Pack[]; postponed: string[] }> {
  const { layout, patienceMs, signal } = given;
  const { sql } = given.catalog;
  const waiting = [...given.packs].sort((a, b) => a.bytes - b.bytes);
  const postponed: string[] = [];
  let packs = 0;
  let limit = copyLimit;
  while (waiting.length > 0) {
    const group = takeGroup(waiting, limit);
    try {
      await moveTogether(given, group);
    } catch (error) {
      const failure = asWriteFailure(error, "the store");
      if (isRewindError(failure, "DISK_FULL")) {
        waiting.unshift(...group);
        if (group.length === 1) {
          postponed.push(`no room on the disk to rewrite ${waiting.length} of the packs`);
          break;
        }
        limit = 0;
      } else if (isRewindError(failure, "STORE_CORRUPT")) {
        if (group.length === 1) postponed.push(`${group[0]?.name} holds damaged objects and was left as it is`);
        else {
          waiting.unshift(...group);
          limit = 0;
        }
      } else throw error;
      continue;
    }
    if (!(await waitForUses(sql, layout.locks, patienceMs, signal))) {
      postponed.push("another process reads packs that were rewritten; run gc again when it is done");
      break;
    }
    packs += await dropPacks(sql, layout, group);
  }
  return { packs, left: waiting, postponed };
}

/** At least one. */
function takeGroup(waiting: ThinPack[], limit: number): ThinPack[] {
  const group = [waiting.shift() as ThinPack];
  let bytes = group[0]?.bytes ?? 0;
  while (waiting.length > 0 && bytes + (waiting[0] as ThinPack).bytes <= limit) {
    const next = waiting.shift() as ThinPack;
    bytes += next.bytes;
    group.push(next);
  }
  return group;
}

/** Bytes on disk, then the new pack's row, then the objects' rows, some in each transaction: at every moment each row names whole bytes. */
async function moveTogether(given: Rewrite, group: readonly ThinPack[]): Promise<void> {
  const { catalog, layout, census, breathe } = given;
  const { sql } = catalog;
  const name = `${randomBytes(8).toString("hex")}.pack`;
  const path = join(layout.packs, name);
  const fd = openForWriting(path, "wx+");
  let end: number;
  try {
    end = await copyLive(given, group, fd);
    await syncFile(path);
    await syncFolder(layout.packs);
  } catch (error) {
    remove(path);
    throw error;
  } finally {
    closeSync(fd);
  }
  fault("gc.pack-copied");
  const id = addPack(sql, name, end, () => remove(path));
  const move = sql.prepare("UPDATE object SET pack = ?, offset = ? WHERE hash = ? AND pack = ?");
  let offset = magic.length;
  for (const pack of group) {
    for (let at = 0; at < pack.live.length; ) {
      at = await writeSlice(catalog, "gc.rows-moved", (isOver) => {
        let next = at;
        for (; next < pack.live.length && !isOver(); next++) {
          const index = pack.live[next] as number;
          move.run(id, offset, census.hash(index), pack.id);
          offset += census.length(index);
        }
        return next;
      });
      await breathe();
    }
  }
}

/** Writes what lives of the packs to a new one, in order. Returns its length. */
async function copyLive(
  { objects, census, breathe }: Rewrite,
  group: readonly ThinPack[],
  fd: number,
): Promise<number> {
  const buffer = Buffer.allocUnsafe(bufferLimit);
  let size = magic.copy(buffer);
  let end = 0;
  const flush = (): void => {
    writeAll(fd, buffer.subarray(0, size), end);
    end += size;
    size = 0;
  };
  for (const pack of group) {
    for (const index of pack.live) {
      const bytes = objects.get(census.hash(index));
      if (size + bytes.length > bufferLimit) flush();
      if (bytes.length > bufferLimit) {
        writeAll(fd, bytes, end);
        end += bytes.length;
      } else size += bytes.copy(buffer, size);
      await breathe();
    }
  }
  flush();
  return end;
}

function addPack(sql: Sql, name: string, length: number, takeBack: () => void): number | bigint {
  try {
    return sql
      .prepare("INSERT INTO pack (name, environment, length, synced, boot, sealed) VALUES (?, ?, ?, ?, ?, 1)")
      .run(name, gcOwner, length, length, bootId()).lastInsertRowid;
  } catch (error) {
    takeBack();
    throw error;
  }
}
