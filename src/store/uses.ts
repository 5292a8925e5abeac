// Who relies on what the store holds: a use pins everything that it saw until it ends, or its process does (F-32, F-33).
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import Database from "better-sqlite3";
import { asWriteFailure } from "../errors.ts";
import { fault } from "../faults.ts";
import type { Sql } from "./database.ts";
import { setMode } from "./io.ts";

/*
 * Uses of an even phase hold a shared lock on one file, uses of an odd phase on the other; gc raises the phase and waits until nobody holds the file of
 * the older one. So uses never wait for gc, and gc waits for those only that began before.
 */

export interface Uses {
  /** Begins a use; call the result when it ends. Not inside of a transaction. */
  enter(): () => void;
  phase(): number;
  close(): void;
}

/** gc holds the lock for an instant, to see whether others do. */
const patienceMs = 10_000;

export function openUses(sql: Sql, folder: string): Uses {
  const phase = phaseOf(sql);
  const gates = [makeGate(folder, 0), makeGate(folder, 1)] as const;
  return {
    enter() {
      for (;;) {
        const seen = phase();
        const gate = gates[parity(seen)];
        gate.enter();
        // Raised in between: whoever raised it may have looked before the lock was there.
        if (phase() === seen) return once(gate.leave);
        gate.leave();
      }
    },
    phase,
    close() {
      for (const gate of gates) gate.close();
    },
  };
}

/**
 * True when every use that had begun has ended, false when it took longer than `patience` milliseconds. What the uses after them find is what is
 * committed now.
 */
export async function waitForUses(sql: Sql, folder: string, patience: number, signal?: AbortSignal): Promise<boolean> {
  const deadline = Date.now() + patience;
  const now = phaseOf(sql)();
  // Whoever is left from two phases ago shares the file of the phase to come.
  if (!(await isFree(folder, parity(now + 1), deadline, signal))) return false;
  sql.prepare("UPDATE gc SET phase = phase + 1").run();
  const free = await isFree(folder, parity(now), deadline, signal);
  if (free) fault("gc.waited");
  return free;
}

const parity = (phase: number): 0 | 1 => (phase % 2 === 0 ? 0 : 1);

function phaseOf(sql: Sql): () => number {
  const statement = sql.prepare("SELECT phase FROM gc").pluck();
  return () => statement.get() as number;
}

function openLock(folder: string, which: 0 | 1, timeout: number): Sql {
  const path = join(folder, `use-${which}.lock`);
  const lock = new Database(path, { timeout });
  try {
    setMode(path, 0o600);
    lock.pragma("journal_mode = MEMORY");
  } catch (error) {
    lock.close();
    throw asWriteFailure(error, path);
  }
  return lock;
}

function makeGate(folder: string, which: 0 | 1) {
  let lock: Sql | undefined;
  let users = 0;
  return {
    enter(): void {
      if (users === 0) {
        lock ??= openLock(folder, which, patienceMs);
        lock.exec("BEGIN");
        try {
          lock.exec("SELECT 1 FROM sqlite_schema");
        } catch (error) {
          lock.exec("ROLLBACK");
          throw error;
        }
      }
      users++;
    },
    leave(): void {
      users--;
      if (users === 0 && lock?.open === true) lock.exec("COMMIT");
    },
    close(): void {
      lock?.close();
    },
  };
}

/** Nobody holds the lock at some moment before the deadline. */
async function isFree(folder: string, which: 0 | 1, deadline: number, signal?: AbortSignal): Promise<boolean> {
  const lock = openLock(folder, which, 0);
  try {
    for (;;) {
      signal?.throwIfAborted();
      if (tryExclusive(lock)) return true;
      if (Date.now() > deadline) return false;
      await sleep(2 + Math.random() * 8);
    }
  } finally {
    lock.close();
  }
}

function tryExclusive(lock: Sql): boolean {
  try {
    lock.exec("BEGIN EXCLUSIVE");
    lock.exec("COMMIT");
    return true;
  } catch (error) {
    if (String((error as { code?: unknown }).code).startsWith("SQLITE_BUSY")) return false;
    throw error;
  }
}

function once(work: () => void): () => void {
  let done = false;
  return () => {
    if (done) return;
    done = true;
    work();
  };
}
