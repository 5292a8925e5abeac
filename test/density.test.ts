// The density bench in its short form: every arm runs, every row is there, and checkpoints change nothing that agents do. No time is asserted.
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import type { blockLine, taskLine } from "../bench-mettle/density/lines.ts";
import { lacking } from "./capabilities.ts";
import { needed } from "./sandbox/machine.ts";

const root = resolve(import.meta.dirname, "..");
const base = mkdtempSync(join(tmpdir(), "agentrewind-density-test-"));
afterAll(() => rmSync(base, { recursive: true, force: true }));

const bench = ["run", "--silent", "bench:density", "--"];
const short = ["--sandboxes", "3", "--idle", "0", "--per-process", "2", "--turns", "6"];
/** Where the bench puts its agents, seen by nobody else. */
const place = (name: string) => {
  const [out, temporary] = [join(base, name, "out"), join(base, name, "tmp")];
  mkdirSync(temporary, { recursive: true });
  return { out, temporary, options: { cwd: root, env: { ...process.env, TMPDIR: temporary } } };
};
/** What lies below the folder and is mounted or behind a device. */
const held = (folder: string): string[] =>
  readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .filter((line) => line.includes(folder));

const names = ["none", "full", "full-memory", "ours"];
const cell = "3 sandboxes, 0.04 s";

type Lines = (
  | ReturnType<typeof blockLine>
  | ReturnType<typeof taskLine>
  | { type: "run"; command: string; seed: number }
)[];

test.skipIf(lacking(...needed))("every arm runs the same tasks, and all of it is told", async () => {
  const { out, temporary, options } = place("all");
  const arms = ["--arms", names.join(","), "--rounds", "1"];
  const args = [...bench, ...short, "--latency", "40", ...arms, "--out", out];
  const { stdout } = await promisify(execFile)("npm", args, options);
  expect(readFileSync(join(out, "density.md"), "utf8")).toBe(stdout);
  const lines: Lines = readFileSync(join(out, "density.jsonl"), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  const blocks = lines.flatMap((line) => (line.type === "block" ? [line as ReturnType<typeof blockLine>] : []));
  const tasks = lines.flatMap((line) => (line.type === "task" ? [line as ReturnType<typeof taskLine>] : []));
  expect(blocks.map(({ cell, arm }) => [cell, arm])).toEqual(names.map((arm) => [cell, arm]));
  for (const arm of names) {
    const own = tasks.filter((one) => one.arm === arm);
    expect(own.map(({ agent }) => agent)).toEqual([0, 1, 2]);
    for (const task of own) {
      const plain = tasks.find((one) => one.arm === "none" && one.agent === task.agent);
      expect([task.className, task.replies, task.modelMs]).toEqual([plain?.className, plain?.replies, plain?.modelMs]);
      expect(task.taskMs).toBeGreaterThan(task.modelMs);
      expect(task.replies).toMatch(/^[al]{5}l$/);
      expect(task.halves).toMatch(arm === "none" ? /^$/ : /^b[.fpb]{5}$/);
      expect(task.exposedMs).toHaveLength(task.halves.length);
    }
    expect(stdout).toContain(`| ${cell}: \`${arm}\` | 3 | 6 | `);
  }
  for (const block of blocks) {
    expect(block).toMatchObject({ sandboxes: 3, processes: 2, died: [] });
    expect(block.rssMiB.max).toBeGreaterThan(10);
    expect(block.disk === null || block.disk.written > 0).toBe(true);
  }
  // What is whole is dumped again and again; what nothing was written to is not.
  const bytes = (arm: string): number =>
    tasks
      .filter((one) => one.arm === arm)
      .reduce((sum, one) => sum + one.bytes.reduce((all, each) => all + each, 0), 0);
  expect(bytes("full-memory")).toBeGreaterThan(bytes("full"));
  expect(bytes("full")).toBeGreaterThan(bytes("ours"));
  expect(lines[0]).toMatchObject({ type: "run", seed: 1 });
  expect(stdout).toContain("every checkpoint can be restored.");
  expect(stdout.match(/^\| (turns skipped|exposed delay|`ours` at most)/gm)).toHaveLength(3);
  expect([readdirSync(temporary).filter((name) => name.startsWith("agentrewind-")), held(temporary)]).toEqual([[], []]);
});

test.skipIf(lacking(...needed)).each(["SIGINT", "SIGTERM"] as const)(
  "%s in the middle leaves nothing behind",
  async (signal) => {
    const { out, temporary, options } = place(signal);
    const args = ["--import", "tsx", "bench-mettle/density/main.ts", ...short, "--latency", "60000", "--out", out];
    const child = spawn(process.execPath, args, { ...options, stdio: "ignore" });
    const closed = once(child, "close");
    while (held(temporary).length === 0 && child.exitCode === null) await sleep(20);
    expect(held(temporary)).not.toEqual([]);
    child.kill(signal);
    expect(await closed).toEqual([signal === "SIGINT" ? 130 : 143, null]);
    expect([readdirSync(temporary).filter((name) => name.startsWith("agentrewind-")), held(temporary)]).toEqual([
      [],
      [],
    ]);
  },
);
