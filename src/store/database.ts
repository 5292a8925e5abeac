// Opens the catalog: refuses a newer format, migrates an older one, sets the durability that docs/format.md relies on.
import { existsSync } from "node:fs";
import Database from "better-sqlite3";
import { asWriteFailure, RewindError } from "../errors.ts";
import { setMode } from "./io.ts";
import { applicationId, formatVersion, migrations } from "./schema.ts";

export type Sql = Database.Database;
export type Statement = Database.Statement<unknown[]>;

/**
 * Opens the catalog at `path` and brings it to this version's format (F-1).
 * Commits are in the log when they return and reach the disk with `syncLog` (store.ts) or at the next SQLite checkpoint.
 */
export function openDatabase(path: string): Sql {
  let sql: Sql;
  try {
    sql = new Database(path, { timeout: patienceMs });
  } catch (error) {
    throw asWriteFailure(error, path);
  }
  try {
    // F-38. On a catalog that is there it would change nothing and take the write lock.
    if (sql.pragma("page_count", { simple: true }) === 0) sql.pragma("auto_vacuum = INCREMENTAL");
    useLog(sql);
    sql.pragma("synchronous = NORMAL");
    sql.pragma(`wal_autocheckpoint = ${backstopPages}`);
    // A migration may make a table anew, to which others refer.
    sql.pragma("foreign_keys = OFF");
    migrate(sql, path);
    sql.pragma("foreign_keys = ON");
    for (const suffix of ["", "-wal", "-shm"]) if (existsSync(path + suffix)) setMode(path + suffix, 0o600);
  } catch (error) {
    sql.close();
    throw asDamaged(asWriteFailure(error, path), path);
  }
  return sql;
}

const patienceMs = 10_000;
/** SQLite moves the log to the main file in whoever commits only where the log's keeper (log-keeper.ts) does not keep up. */
const backstopPages = 16_000;

/**
 * Of two that switch a new catalog to its log at once, SQLite 3.53 fails one with SQLITE_BUSY without asking the busy handler:
 * each holds the shared lock that the other waits for.
 */
function useLog(sql: Sql): void {
  const deadline = Date.now() + patienceMs;
  for (;;) {
    try {
      sql.pragma("journal_mode = WAL");
      return;
    } catch (error) {
      if ((error as { code?: unknown }).code !== "SQLITE_BUSY" || Date.now() > deadline) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5 + Math.random() * 10);
    }
  }
}

function asDamaged(error: unknown, path: string): unknown {
  const code = String((error as { code?: unknown } | null)?.code);
  if (!/^SQLITE_(NOTADB|CORRUPT)/.test(code)) return error;
  return new RewindError(
    "STORE_CORRUPT",
    `${path} is damaged, or no catalog of AgentRewind: ${(error as Error).message}.`,
    {
      hint: "Restore it from a backup, or point --store (or `store`) at another folder.",
      cause: error,
    },
  );
}

function migrate(sql: Sql, path: string): void {
  const version = (): number => sql.pragma("user_version", { simple: true }) as number;
  // One transaction: another process may be making the catalog just now.
  const read = sql.transaction(() => ({
    application: sql.pragma("application_id", { simple: true }),
    found: version(),
  }));
  const { application, found } = read();
  if (application !== applicationId && (found !== 0 || application !== 0)) {
    throw new RewindError("STORE_CORRUPT", `${path} is not an AgentRewind catalog.`, {
      hint: "Point --store (or `store`) at an empty folder or at a store made by AgentRewind.",
    });
  }
  if (found > formatVersion) {
    throw new RewindError(
      "STORE_TOO_NEW",
      `The store has format ${found}, this version of AgentRewind reads up to ${formatVersion}.`,
      { hint: "Update AgentRewind; nothing in the store was changed.", details: { path } },
    );
  }
  if (found === formatVersion) return;
  sql
    .transaction(() => {
      for (let from = version(); from < formatVersion; from++) sql.exec(migrations[from] as string);
      sql.pragma(`user_version = ${formatVersion}`);
      sql.pragma(`application_id = ${applicationId}`);
    })
    .immediate();
}
