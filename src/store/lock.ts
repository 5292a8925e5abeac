// The writer's lock of an environment: an exclusive SQLite transaction, which the kernel drops with its holder (F-26).
import { join } from "node:path";
import Database from "better-sqlite3";
import { asWriteFailure, RewindError } from "../errors.ts";
import { setMode } from "./io.ts";

export interface Lock {
  release(): void;
}

/** Of two that come at once each can see the other's half-taken lock: one that does not wait at all would let both fail. */
const patienceMs = 100;

/** @throws ENVIRONMENT_BUSY when another holder lives. */
export function takeLock(folder: string, environment: string): Lock {
  const path = join(folder, `${environment}.lock`);
  const sql = new Database(path, { timeout: patienceMs });
  try {
    setMode(path, 0o600);
    sql.pragma("journal_mode = MEMORY");
    sql.exec("BEGIN EXCLUSIVE");
  } catch (error) {
    sql.close();
    if (!String((error as { code?: unknown }).code).startsWith("SQLITE_BUSY")) throw asWriteFailure(error, path);
    throw new RewindError("ENVIRONMENT_BUSY", "Another process is writing checkpoints of this workspace.", {
      hint: "Use the `agentrewind` command, which hands requests to that process, or close it first.",
      details: { environment },
    });
  }
  return {
    release() {
      sql.close();
    },
  };
}
