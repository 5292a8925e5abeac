// The catalog's free pages, given back to the disk (F-38).
import type { Breathe } from "../breathe.ts";
import type { Sql } from "./database.ts";
import type { Layout } from "./layout.ts";
import { tryLock } from "./lock.ts";
import { type Catalog, writeSlice } from "./slices.ts";

const pagesPerStep = 4;
/** A catalog without a page map is made anew when it has so many free bytes, and they are this part of it. */
const freeWanted = 4 << 20;
const partWanted = 0.25;
/** Others who write wait as long as it takes to copy this. */
const copyLimit = 256 << 20;

const number = (sql: Sql, pragma: string): number => sql.pragma(pragma, { simple: true }) as number;

/** Returns the bytes that the catalog takes less. The file itself shrinks when its log is moved. */
export async function giveBackPages(catalog: Catalog, breathe: Breathe): Promise<number> {
  const { sql, keeper } = catalog;
  if (number(sql, "auto_vacuum") === 0) return 0;
  const before = number(sql, "page_count");
  for (let left = number(sql, "freelist_count"); left > 0; ) {
    const now = await writeSlice(catalog, "gc.pages-cut", (isOver) => {
      while (!isOver() && number(sql, "freelist_count") > 0) sql.pragma(`incremental_vacuum(${pagesPerStep})`);
      return number(sql, "freelist_count");
    });
    await breathe();
    if (now >= left) break;
    left = now;
  }
  if (number(sql, "page_count") < before) await keeper.move();
  return Math.max(0, before - number(sql, "page_count")) * number(sql, "page_size");
}

/**
 * Makes a catalog without a page map anew, with one, where that gives much back and no session is open that would wait for it. It is one transaction,
 * which blocks the event loop. Returns the bytes that the catalog takes less.
 */
export function rebuildCatalog(sql: Sql, layout: Layout): number {
  const [pages, free, size] = [number(sql, "page_count"), number(sql, "freelist_count"), number(sql, "page_size")];
  if (number(sql, "auto_vacuum") !== 0 || free * size < freeWanted || free < partWanted * pages) return 0;
  if ((pages - free) * size > copyLimit || !isUnused(sql, layout)) return 0;
  sql.pragma("auto_vacuum = INCREMENTAL");
  sql.exec("VACUUM");
  sql.pragma("wal_checkpoint(PASSIVE)");
  return (pages - number(sql, "page_count")) * size;
}

function isUnused(sql: Sql, layout: Layout): boolean {
  const environments = sql.prepare("SELECT id FROM environment").pluck().all() as string[];
  return environments.every((environment) => {
    const lock = tryLock(layout.locks, environment);
    lock?.release();
    return lock !== undefined;
  });
}
