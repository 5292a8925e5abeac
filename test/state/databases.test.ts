// Files that change together: databases that another process writes while checkpoints are taken.
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import * as fs from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import type { Readable, Writable } from "node:stream";
import type { Checkpoint } from "agentrewind";
import Database from "better-sqlite3";
import { afterEach, expect, test } from "vitest";
import { makePlace, useRewind } from "../helpers/workspace.ts";

const script = resolve(import.meta.dirname, "../fixtures/rows.mjs");
const writers: Writer[] = [];

/** Commits rows 1, 2, 3, … without a hole; knows the last one whose commit has returned. */
class Writer {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  committed = 0;

  constructor(file: string, mode: string) {
    const library = createRequire(import.meta.url).resolve("better-sqlite3");
    this.#child = spawn(process.execPath, [script, file, mode, "200", library], { stdio: ["pipe", "pipe", "inherit"] });
    this.#child.stdout.on("data", (text: Buffer) => {
      this.committed = Number(text.toString().trimEnd().split("\n").at(-1));
    });
    writers.push(this);
  }

  async reaches(row: number): Promise<void> {
    while (this.committed < row) {
      if (this.#child.exitCode !== null) throw new Error("the writer ended");
      await once(this.#child.stdout, "data");
    }
  }

  /** Stops it where it is, be it within a commit. */
  freeze(): void {
    this.#child.kill("SIGSTOP");
  }

  thaw(): void {
    this.#child.kill("SIGCONT");
  }

  async end(signal?: "SIGKILL"): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, "close");
    if (signal === undefined) this.#child.stdin.end();
    else this.#child.kill(signal);
    await ended;
  }
}
afterEach(async () => {
  for (const writer of writers.splice(0)) await writer.end("SIGKILL");
});

interface Taken {
  readonly checkpoint: Checkpoint;
  /** The last row whose commit had returned when the capture began. */
  readonly committed: number;
  readonly frozen: boolean;
}

/** Opens a copy, as another program would: the log and the journal are taken in. */
function rowsOf(folder: string, copy: string): number {
  fs.cpSync(folder, copy, { recursive: true });
  const db = new Database(join(copy, "db"));
  try {
    expect(db.pragma("integrity_check", { simple: true })).toBe("ok");
    const { rows, top } = db.prepare("SELECT count(*) AS rows, coalesce(max(id), 0) AS top FROM row").get() as {
      rows: number;
      top: number;
    };
    expect(rows, "no holes").toBe(top);
    return top;
  } finally {
    db.close();
  }
}

/** Every restored set is sound and holds what had been committed, or the checkpoint names its files. */
async function checkpointsBeside(mode: string, count: number): Promise<void> {
  const place = makePlace();
  const folder = join(place.workspace, "data");
  fs.mkdirSync(folder);
  // Sorts between the database and its log, and is read anew each time: a reader that takes one file after the other finds them of different moments.
  const between = join(folder, "db-between");
  fs.writeFileSync(between, randomBytes(16 << 20));
  const writer = new Writer(join(folder, "db"), mode);
  await writer.reaches(20);
  const thread = (await useRewind(place)).thread("t");
  const taken: Taken[] = [];
  for (let i = 0; i < count; i++) {
    await writer.reaches(writer.committed + 15);
    const { committed } = writer;
    fs.utimesSync(between, i, i);
    const frozen = i % 3 === 2;
    if (frozen) writer.freeze();
    taken.push({ checkpoint: await thread.checkpoint(), committed, frozen });
    writer.thaw();
  }
  await writer.end();

  for (const { checkpoint, committed, frozen } of taken) {
    await thread.rewind({ to: checkpoint.id });
    const named = checkpoint.problems.some((one) => /^data\/db(-wal|-shm|-journal)?$/.test(one.path));
    if (frozen) expect(checkpoint.problems, "nobody writes").toEqual([]);
    if (named) continue;
    const rows = rowsOf(folder, join(place.base, `copy-${checkpoint.id}`));
    expect(rows, `${checkpoint.id} holds what was committed before it`).toBeGreaterThanOrEqual(committed);
  }
}

test("a SQLite database in WAL mode at 200 commits a second", () => checkpointsBeside("WAL", 12));

test("a SQLite database with a rollback journal at 200 commits a second", () => checkpointsBeside("DELETE", 12));

test("a writer that was killed leaves a set that comes back as it is, log and all", async () => {
  const place = makePlace();
  const folder = join(place.workspace, "data");
  fs.mkdirSync(folder);
  const writer = new Writer(join(folder, "db"), "WAL");
  await writer.reaches(30);
  await writer.end("SIGKILL");
  const { committed } = writer;
  expect(fs.statSync(join(folder, "db-wal")).size).toBeGreaterThan(0);
  const thread = (await useRewind(place)).thread("t");
  expect((await thread.checkpoint()).problems).toEqual([]);
  // Read once by somebody, its log is folded in and removed.
  const reader = new Database(join(folder, "db"));
  reader.prepare("SELECT count(*) FROM row").get();
  reader.close();
  expect(fs.existsSync(join(folder, "db-wal"))).toBe(false);
  await thread.rewind({ to: "c0" });
  expect(fs.existsSync(join(folder, "db-wal"))).toBe(true);
  expect(rowsOf(folder, join(place.base, "copy"))).toBeGreaterThanOrEqual(committed);
});
