// Opens the catalog: refuses a newer format, migrates an older one, sets the durability that docs/format.md relies on.
import { chmodSync, existsSync } from "node:fs";
import Database from "better-sqlite3";
import { asDiskFull, RewindError } from "../errors.ts";
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
    sql = new Database(path, { timeout: 10_000 });
  } catch (error) {
    throw asDiskFull(error, path);
  }
  try {
    sql.pragma("journal_mode = WAL");
    sql.pragma("synchronous = NORMAL");
    sql.pragma("foreign_keys = ON");
    migrate(sql, path);
    for (const suffix of ["", "-wal", "-shm"]) if (existsSync(path + suffix)) chmodSync(path + suffix, 0o600);
  } catch (error) {
    sql.close();
    throw asDamaged(asDiskFull(error, path), path);
  }
  return sql;
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
  const application = sql.pragma("application_id", { simple: true });
  if (application !== applicationId && (version() !== 0 || application !== 0)) {
    throw new RewindError("STORE_CORRUPT", `${path} is not an AgentRewind catalog.`, {
      hint: "Point --store (or `store`) at an empty folder or at a store made by AgentRewind.",
    });
  }
  if (version() > formatVersion) {
    throw new RewindError(
      "STORE_TOO_NEW",
      `The store has format ${version()}, this version of AgentRewind reads up to ${formatVersion}.`,
      { hint: "Update AgentRewind; nothing in the store was changed.", details: { path } },
    );
  }
  if (version() === formatVersion) return;
  sql
    .transaction(() => {
      for (let from = version(); from < formatVersion; from++) sql.exec(migrations[from] as string);
      sql.pragma(`user_version = ${formatVersion}`);
      sql.pragma(`application_id = ${applicationId}`);
    })
    .immediate();
}
