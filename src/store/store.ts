// A store as its users hold it: layout, catalog, objects, and the order in which they reach the disk.
import { existsSync } from "node:fs";
import { asWriteFailure } from "../errors.ts";
import { type Catalog, openCatalog } from "./catalog.ts";
import { openDatabase, type Sql } from "./database.ts";
import { syncFile } from "./io.ts";
import { type Layout, layoutOf, prepareLayout } from "./layout.ts";
import { openLogKeeper } from "./log-keeper.ts";
import { type Objects, openObjects } from "./objects.ts";
import { dropLostObjects } from "./packs.ts";
import { keepReserve } from "./reserve.ts";
import { together } from "./together.ts";
import { openUses } from "./uses.ts";

export interface Store {
  readonly layout: Layout;
  readonly sql: Sql;
  /** The rows and objects of one environment. Writing needs its lock. */
  open(environment: string): { catalog: Catalog; objects: Objects };
  /** Everything committed to the catalog so far is on disk when it resolves (F-21). */
  syncLog(): Promise<void>;
  /** Resolves when no thread of the store is at work. */
  settled(): Promise<void>;
  close(): void;
}

/** Opens the store at `path` and makes it when it is not there. @throws STORE_TOO_NEW, STORE_CORRUPT, DISK_FULL */
export function openStore(path: string): Store {
  const layout = layoutOf(path);
  try {
    prepareLayout(layout);
  } catch (error) {
    throw asWriteFailure(error, path);
  }
  const sql = openDatabase(layout.catalog);
  dropLostObjects(sql, layout.packs);
  keepReserve(layout);
  const uses = openUses(sql, layout.locks);
  const keeper = openLogKeeper(sql, layout.catalog);
  const opened: Objects[] = [];
  return {
    layout,
    sql,
    open(environment) {
      const catalog = openCatalog(sql, environment);
      const objects = openObjects(sql, layout.packs, environment, uses, catalog.requireHolder);
      opened.push(objects);
      return { catalog, objects };
    },
    async syncLog() {
      await syncLog(layout.catalog);
      keeper.poke();
    },
    settled: keeper.settled,
    close() {
      for (const objects of opened) objects.close();
      uses.close();
      sql.close();
    },
  };
}

/** Everything committed to the catalog so far is on disk when it resolves (F-21). */
export function syncLog(catalog: string): Promise<void> {
  return together(`log ${catalog}`, () => syncLogNow(catalog));
}

async function syncLogNow(catalog: string): Promise<void> {
  // Closing a descriptor of the log drops no lock: SQLite locks the -shm and the main file only.
  const log = `${catalog}-wal`;
  if (!existsSync(log)) return;
  try {
    await syncFile(log, "data");
  } catch (error) {
    throw asWriteFailure(error, "the store's catalog");
  }
}
