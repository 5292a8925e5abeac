// Moves what is committed from the catalog's log to its main file in a thread of its own: that ends with fsyncs, which must not hold the event loop.
import { createRequire } from "node:module";
import { Worker } from "node:worker_threads";
import type { Sql } from "./database.ts";

/** Pages of the log that wait, from which on it is done. */
const pagesFrom = 1000;

const program = `
  const { workerData } = require("node:worker_threads");
  const Database = require(workerData.library);
  const sql = new Database(workerData.catalog, { fileMustExist: true });
  sql.pragma("synchronous = NORMAL");
  // The log begins anew only in a transaction that finds all of it moved when it begins: until that has happened, or nobody writes.
  let before = -1;
  for (let tries = 0; tries < 50; tries++) {
    const [{ log }] = sql.pragma("wal_checkpoint(PASSIVE)");
    if (log <= before) break;
    before = log;
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3);
  }
  sql.close();
`;

export interface LogKeeper {
  /** Looks whether there is enough to do, and has it done. */
  poke(): void;
  /** Has everything moved that is committed and that no reader holds; resolves when that was tried. */
  move(): Promise<void>;
  /** Resolves when nothing is under way. */
  settled(): Promise<void>;
}

export function openLogKeeper(sql: Sql, catalog: string): LogKeeper {
  const library = createRequire(import.meta.url).resolve("better-sqlite3");
  const waiting = sql.prepare("PRAGMA wal_checkpoint(NOOP)");
  let running: Promise<void> | undefined;
  let worker: Worker | undefined;

  function start(): Promise<void> {
    const started = new Worker(program, {
      eval: true,
      workerData: { library, catalog },
      execArgv: [],
      // Else the constructor opens this process's own, which takes the event loop longer than the rest of it.
      stdout: true,
      stderr: true,
      resourceLimits: { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 2 },
    });
    started.unref();
    worker = started;
    return new Promise((resolve) => {
      // What fails here is done by the backstop, or by the next one.
      started.once("error", () => {});
      started.once("exit", () => resolve());
    });
  }

  function begin(): Promise<void> {
    const begun = start().then(() => {
      running = undefined;
      worker = undefined;
    });
    running = begun;
    return begun;
  }

  /** Who waits for it keeps the process alive. */
  function settled(): Promise<void> {
    worker?.ref();
    return running ?? Promise.resolve();
  }

  return {
    async move() {
      await settled();
      void begin();
      await settled();
    },
    poke() {
      if (running !== undefined || !sql.open) return;
      const { log, checkpointed } = waiting.get() as { log: number; checkpointed: number };
      if (log - checkpointed < pagesFrom) return;
      void begin();
    },
    settled,
  };
}
