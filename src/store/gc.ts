// Garbage collection: what no checkpoint needs is taken out of the store and its room given back to the disk (F-32 to F-37).
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { type Breathe, makeBreather } from "../breathe.ts";
import { asWriteFailure, isRewindError, RewindError } from "../errors.ts";
import { type FaultPoint, fault } from "../faults.ts";
import { Census, stepsPerBreath } from "./census.ts";
import { openDatabase, type Sql } from "./database.ts";
import { freeDeadRanges, packsWithDeadRanges } from "./dead-ranges.ts";
import { giveBackPages, rebuildCatalog } from "./give-back.ts";
import { allocatedBytes, type PunchHole, remove, removeLarge } from "./io.ts";
import type { Layout } from "./layout.ts";
import { type Lock, takeLock, tryLock } from "./lock.ts";
import { openLogKeeper } from "./log-keeper.ts";
import { type ObjectReader, openObjects } from "./objects.ts";
import { dropLostObjects } from "./packs.ts";
import type { Kind } from "./reach.ts";
import { giveReserve, keepReserve } from "./reserve.ts";
import { countRows, dropPacks, type Pack, packsToGiveBack, rewritePacks, sealPacks } from "./rewrite.ts";
import { markReachable } from "./roots.ts";
import { type Catalog, writeSlice } from "./slices.ts";
import { syncLog } from "./store.ts";
import { openUses, waitForUses } from "./uses.ts";

export interface GcOptions {
  readonly layout: Layout;
  /** How the snapshots of a directory are walked. */
  readonly snapshots: Kind;
  /** A pack is rewritten when less than this part of it is alive. Default 0.5. */
  readonly liveRatio?: number;
  /** Null where the system has no such call. */
  readonly punchHole: PunchHole | null;
  /** How long uses that began before are waited for, in milliseconds. Default 60 s. */
  readonly patienceMs?: number;
  /** Makes the holder of an environment write to a new pack from now on; false when it does not. */
  readonly askToSeal: (environment: string) => Promise<boolean>;
  /** Nothing else waits for this process: it may hold its event loop to make a catalog anew (F-38). */
  readonly mayBlock?: boolean;
  readonly signal?: AbortSignal;
}

export interface Collected {
  /** Objects that nothing needed any more. */
  readonly objects: number;
  /** Bytes that the packs and left-over files take less than before. */
  readonly bytes: number;
  /** Bytes that the catalog takes less than before. */
  readonly catalog: number;
  readonly packs: { readonly deleted: number; readonly rewritten: number };
  /** Left-over files of killed processes. */
  readonly leftOver: number;
  /** What could not be done now and why, in words. */
  readonly postponed: readonly string[];
}

const defaultPatienceMs = 60_000;

/** @throws GC_RUNNING, STORE_CORRUPT when what is needed cannot be told: nothing is deleted then, DISK_FULL */
export async function collect(options: GcOptions): Promise<Collected> {
  const { layout } = options;
  const lock = takeGcLock(layout.locks);
  try {
    giveReserve(layout);
    const sql = openDatabase(layout.catalog);
    // The rows of a pack are gone before it: no need to look through a million objects for one that names it.
    sql.pragma("foreign_keys = OFF");
    dropLostObjects(sql, layout.packs);
    const uses = openUses(sql, layout.locks);
    const keeper = openLogKeeper(sql, layout.catalog);
    const objects = openObjects(sql, layout.packs, null, uses);
    try {
      return await run(options, { sql, keeper }, objects);
    } catch (error) {
      throw asWriteFailure(error, "the store");
    } finally {
      await keeper.settled();
      objects.close();
      uses.close();
      sql.close();
    }
  } finally {
    keepReserve(layout);
    lock.release();
  }
}

async function run(options: GcOptions, catalog: Catalog, objects: ObjectReader): Promise<Collected> {
  const { sql } = catalog;
  const { layout, signal, patienceMs = defaultPatienceMs, liveRatio: ratio = 0.5 } = options;
  const breathe = makeBreather(signal);
  const before = packBytes(layout);
  const postponed: string[] = [];
  const leftOver = removeTemporaries(layout);
  // Listed before the wait: a file that still has no row behind it belongs to nobody, for a pack is begun inside of a use.
  const files = readdirSync(layout.packs);

  const census = await Census.take(sql, breathe);
  const mark = (): Promise<void> => markReachable(sql, objects, census, options.snapshots, breathe);
  await mark();
  fault("gc.marked");
  await setCondemned(catalog, census, breathe);
  const reached = await census.reachedBytes(breathe);
  const wanted = packsToGiveBack(sql, reached, ratio);
  const partly = packsWithDeadRanges(sql, layout, reached, wanted);
  const sealed = await sealPacks(sql, layout, [...wanted, ...partly], options.askToSeal);
  const packs = wanted.filter(({ id }) => sealed.has(id));
  const orphans = orphansAmong(sql, files);
  const result = { objects: 0, deleted: 0, rewritten: 0, orphans: 0 };
  if (census.condemned > 0 || sealed.size > 0 || orphans.length > 0) {
    if (await waitForUses(sql, layout.locks, patienceMs, signal)) {
      // What was committed by the uses that began before may need what is condemned.
      await mark();
      await setCondemned(catalog, census, breathe);
      result.objects = await deleteCondemned(catalog, census, breathe);
      result.orphans = await removeOrphans(sql, layout, orphans);
      const { dead, thin } = await countRows(sql, census, packs, ratio, breathe);
      result.deleted = await dropPacks(sql, layout, dead);
      const rewritten = await rewritePacks({
        catalog,
        layout,
        objects,
        census,
        packs: thin,
        patienceMs,
        breathe,
        signal,
      });
      result.rewritten = rewritten.packs;
      postponed.push(...rewritten.postponed);
      const kept = partly.filter(({ id }) => sealed.has(id));
      postponed.push(...(await freeRanges(options, sql, kept, rewritten.left, breathe)));
    } else {
      postponed.push("another process uses the store since before; run gc again when it is done");
    }
  }
  const given = await giveBackCatalog(options, catalog, breathe, postponed);
  return {
    objects: result.objects,
    bytes: Math.max(0, before - packBytes(layout)) + leftOver.bytes,
    catalog: given,
    packs: { deleted: result.deleted, rewritten: result.rewritten },
    leftOver: leftOver.count + result.orphans,
    postponed,
  };
}

/** Returns what could not be done. */
async function freeRanges(
  { layout, punchHole, patienceMs = defaultPatienceMs, signal }: GcOptions,
  sql: Sql,
  kept: readonly Pack[],
  left: readonly Pack[],
  breathe: Breathe,
): Promise<string[]> {
  const packs = [...kept, ...left];
  if (packs.length === 0) return [];
  const count = packs.length === 1 ? "1 pack is" : `${packs.length} packs are`;
  try {
    // Rows may have been moved out of these before the disk was full, and what they named be read there.
    if (left.length > 0 && !(await waitForUses(sql, layout.locks, patienceMs, signal)))
      return [`${count} dead in part, and another process reads there; run gc again when it is done`];
    if (punchHole !== null && (await freeDeadRanges(sql, layout, packs, punchHole, breathe))) return [];
  } catch (error) {
    if (!isRewindError(asWriteFailure(error, "the store"), "DISK_FULL")) throw error;
    return [`${count} dead in part, and there is no room on the disk to free that`];
  }
  return [`${count} dead in part, and a part of a file cannot be freed here`];
}

/** A disk that has no room for it keeps the pages for now: everything else is done. */
async function giveBackCatalog(
  { layout, mayBlock = false }: GcOptions,
  catalog: Catalog,
  breathe: Breathe,
  postponed: string[],
): Promise<number> {
  try {
    return (mayBlock ? rebuildCatalog(catalog.sql, layout) : 0) + (await giveBackPages(catalog, breathe));
  } catch (error) {
    if (!isRewindError(asWriteFailure(error, layout.catalog), "DISK_FULL")) throw error;
    postponed.push("no room on the disk to make the catalog smaller");
    return 0;
  }
}

function takeGcLock(folder: string): Lock {
  try {
    return takeLock(folder, "gc");
  } catch (error) {
    if (!isRewindError(error, "ENVIRONMENT_BUSY")) throw error;
    throw new RewindError("GC_RUNNING", "Another process is cleaning up this store.", {
      hint: "Nothing is wrong; run it again later if there is still something to give back.",
    });
  }
}

/** Objects that cannot be reached are condemned: who writes from now on stores them anew. The others are no longer. */
async function setCondemned(catalog: Catalog, census: Census, breathe: Breathe): Promise<void> {
  const set = catalog.sql.prepare("UPDATE object SET condemned = ? WHERE hash = ?");
  const isDue = (index: number): boolean => census.isCondemned(index) === census.isReached(index);
  await changeRows(catalog, census, "gc.condemned", breathe, isDue, (index) => {
    const condemned = !census.isReached(index);
    set.run(condemned ? 1 : 0, census.hash(index));
    census.setCondemned(index, condemned);
  });
}

/** Those that a writer stored anew meanwhile are condemned no more, and stay. */
async function deleteCondemned(catalog: Catalog, census: Census, breathe: Breathe): Promise<number> {
  const drop = catalog.sql.prepare("DELETE FROM object WHERE hash = ? AND condemned = 1");
  const isDue = (index: number): boolean => census.isCondemned(index);
  let deleted = 0;
  await changeRows(catalog, census, "gc.deleted", breathe, isDue, (index) => {
    deleted += drop.run(census.hash(index)).changes;
  });
  return deleted;
}

async function changeRows(
  catalog: Catalog,
  census: Census,
  behind: FaultPoint,
  breathe: Breathe,
  isDue: (index: number) => boolean,
  change: (index: number) => void,
): Promise<void> {
  for (let at = 0; ; ) {
    for (; at < census.count && !isDue(at); at++) if (at % stepsPerBreath === 0) await breathe();
    if (at === census.count) return;
    at = await writeSlice(catalog, behind, (isOver) => {
      let next = at;
      for (; next < census.count && !isOver(); next++) if (isDue(next)) change(next);
      return next;
    });
    await breathe();
  }
}

/** Files of packs that no row names: their maker was killed, or gc was before it deleted them. */
function orphansAmong(sql: Sql, files: readonly string[]): string[] {
  const names = new Set(sql.prepare("SELECT name FROM pack").pluck().all() as string[]);
  return files.filter((name) => !names.has(name));
}

async function removeOrphans(sql: Sql, layout: Layout, files: readonly string[]): Promise<number> {
  const orphans = orphansAmong(sql, files);
  if (orphans.length === 0) return 0;
  await syncLog(layout.catalog);
  for (const name of orphans) await removeLarge(join(layout.packs, name));
  return orphans.length;
}

/** Stat caches that their writer did not finish: it holds the environment's lock while it writes. */
function removeTemporaries(layout: Layout): { count: number; bytes: number } {
  const removed = { count: 0, bytes: 0 };
  for (const name of readdirSync(layout.cache)) {
    const environment = /^(\w+)\.tree\.\w+$/.exec(name)?.[1];
    const lock = environment === undefined ? undefined : tryLock(layout.locks, environment);
    if (lock === undefined) continue;
    removed.bytes += statSync(join(layout.cache, name), { throwIfNoEntry: false })?.size ?? 0;
    removed.count++;
    remove(join(layout.cache, name));
    lock.release();
  }
  return removed;
}

function packBytes(layout: Layout): number {
  return readdirSync(layout.packs)
    .map((name) => allocatedBytes(join(layout.packs, name)))
    .reduce((sum, size) => sum + size, 0);
}
