// The writer's lock of an environment: an exclusive SQLite transaction, which the kernel drops with its holder (F-26).
import { statSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { asWriteFailure, RewindError } from "../errors.ts";
import { remove, rename, setMode } from "./io.ts";

export interface Lock {
  release(): void;
}

/** Of two that come at once each can see the other's half-taken lock: one that does not wait at all would let both fail. */
const patienceMs = 100;

const lockPath = (folder: string, environment: string): string => join(folder, `${environment}.lock`);
const inodeOf = (path: string): bigint | undefined => statSync(path, { bigint: true, throwIfNoEntry: false })?.ino;

/** Undefined when another holder lives. */
export function tryLock(folder: string, environment: string, patience = 0): Lock | undefined {
  const path = lockPath(folder, environment);
  for (;;) {
    const before = inodeOf(path);
    const lock = lockFile(path, patience);
    // A take-over may have put another file there while this one was opened: then the lock is on a file that decides nothing.
    if (lock === undefined || before === undefined || inodeOf(path) === before) return lock;
    lock.release();
  }
}

function lockFile(path: string, patience: number): Lock | undefined {
  const sql = new Database(path, { timeout: patience });
  try {
    setMode(path, 0o600);
    sql.pragma("journal_mode = MEMORY");
    sql.exec("BEGIN EXCLUSIVE");
  } catch (error) {
    sql.close();
    if (!String((error as { code?: unknown }).code).startsWith("SQLITE_BUSY")) throw asWriteFailure(error, path);
    return undefined;
  }
  return {
    release() {
      sql.close();
    },
  };
}

/** @throws ENVIRONMENT_BUSY when another holder lives. */
export function takeLock(folder: string, environment: string): Lock {
  const lock = tryLock(folder, environment, patienceMs);
  if (lock === undefined) throw busy(environment);
  return lock;
}

const busy = (environment: string): RewindError =>
  new RewindError("ENVIRONMENT_BUSY", "Another process is writing checkpoints of this workspace.", {
    hint: "Use the `agentrewind` command, which hands requests to that process, or close it first.",
    details: { environment },
  });

/** Names the holder's lock, so that who has found it silent takes it from no other. */
export const lockOf = (folder: string, environment: string): bigint | undefined =>
  inodeOf(lockPath(folder, environment));

/**
 * Takes the lock from a holder that lives and does not answer, by a new file in the place of the one that it has locked. `fence` must make sure before
 * that what the old holder writes is refused.
 * @param silent the lock of that holder (`lockOf`)
 * @throws ENVIRONMENT_BUSY when another process has done the same or is at it, and what `fence` throws: then the lock is as it was
 */
export function seizeLock(folder: string, environment: string, silent: bigint | undefined, fence: () => void): Lock {
  const turn = takeLock(folder, `${environment}.seize`);
  const fresh = `${lockPath(folder, environment)}.new`;
  let lock: Lock | undefined;
  try {
    if (lockOf(folder, environment) !== silent) throw busy(environment);
    remove(fresh);
    lock = lockFile(fresh, 0) as Lock;
    fence();
    rename(fresh, lockPath(folder, environment));
    return lock;
  } catch (error) {
    lock?.release();
    remove(fresh);
    throw error;
  } finally {
    turn.release();
  }
}
