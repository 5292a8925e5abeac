// A folder of one observation: the conversation lies there while it is observed, so that adapters find it, and goes with it.
import {
  chmodSync,
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { tryLock } from "../store/lock.ts";
import { atExit } from "./at-exit.ts";

export interface Scratch {
  readonly folder: string;
  /** Bytes a second that this machine writes there. */
  readonly writeRate: number;
  /** Removes it. */
  remove(): void;
}

const prefix = "agentrewind-observe-";
const lockName = "observed";
/** A younger one may not be locked yet. */
const settledMs = 60_000;
const sampleBytes = 4 << 20;

export function openScratch(): Scratch {
  removeLeft();
  const folder = mkdtempSync(join(tmpdir(), prefix));
  chmodSync(folder, 0o700);
  const locks = join(folder, "locks");
  mkdirSync(locks, { mode: 0o700 });
  const lock = tryLock(locks, lockName);
  const remove = (): void => {
    forget();
    lock?.release();
    rmSync(folder, { recursive: true, force: true });
  };
  // Many programs end without closing what they opened.
  const forget = atExit(remove);
  return { folder, writeRate: measureWriting(join(folder, "sample")), remove };
}

/** Of processes that were killed: the kernel has given their locks back. */
function removeLeft(): void {
  for (const name of readdirSync(tmpdir()).filter((one) => one.startsWith(prefix))) {
    const folder = join(tmpdir(), name);
    try {
      if (Date.now() - statSync(folder).mtimeMs < settledMs) continue;
      const lock = tryLock(join(folder, "locks"), lockName);
      if (lock === undefined) continue;
      lock.release();
      rmSync(folder, { recursive: true, force: true });
    } catch {
      // Somebody else's, or gone meanwhile.
    }
  }
}

/** As a capture writes: into the page cache. */
function measureWriting(file: string): number {
  const bytes = Buffer.alloc(1 << 20, 1);
  const fd = openSync(file, "wx", 0o600);
  try {
    const start = performance.now();
    for (let written = 0; written < sampleBytes; ) written += writeSync(fd, bytes);
    return (sampleBytes / Math.max(0.1, performance.now() - start)) * 1000;
  } finally {
    closeSync(fd);
    rmSync(file, { force: true });
  }
}
