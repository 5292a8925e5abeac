// The benchmark's command in its quick form: every arm works and leaves numbers, a table and a plot. No time is asserted.
import { execFile, execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { operations } from "../bench-mettle/perf/arm.ts";
import { quantile } from "../bench-mettle/perf/figures.ts";
import { parseOptions } from "../bench-mettle/perf/options.ts";
import type { Result } from "../bench-mettle/perf/result.ts";
import { operationTitle } from "../bench-mettle/perf/table.ts";

const root = resolve(import.meta.dirname, "..");
const out = mkdtempSync(join(tmpdir(), "agentrewind-bench-test-"));
let result: Result;
let printed: string;

const bench = (...args: string[]): Promise<{ stdout: string; stderr: string }> =>
  promisify(execFile)("npm", ["run", "--silent", "bench:perf", "--", ...args], { cwd: root });

beforeAll(async () => {
  const { stdout } = await bench("--quick", "--out", out);
  printed = stdout;
  result = JSON.parse(readFileSync(join(out, "perf.json"), "utf8"));
}, 300_000);

afterAll(() => rmSync(out, { recursive: true, force: true }));

test("every arm that is here gives sane numbers for every operation", () => {
  const here = result.arms.filter(({ missing }) => missing === null).map(({ name }) => name);
  expect(here).toEqual(expect.arrayContaining(["agentrewind", "scan", "cp", "git", "stash"]));
  expect(result.subjects).toHaveLength(2);
  for (const { rows } of result.subjects) {
    expect(rows.map(({ arm, operation }) => `${arm} ${operation}`).sort()).toEqual(
      here.flatMap((arm) => operations.map((operation) => `${arm} ${operation}`)).sort(),
    );
    for (const row of rows) {
      expect(row.ms.n).toBeGreaterThan(0);
      expect(row.ms.p50).toBeGreaterThan(0);
      expect(row.ms.p95).toBeGreaterThanOrEqual(row.ms.p50);
      expect(row.storedBytes).toBeGreaterThan(0);
      if (row.arm !== "cp") expect(row.timesCopy).toBeGreaterThan(0);
      expect(row.faults, `${row.arm} ${row.operation}`).toEqual([]);
    }
  }
});

test("an arm that is not here says why and how to get it", () => {
  for (const { name, missing } of result.arms) {
    if (missing !== null) expect(missing).toContain(`install the Debian package ${name}`);
  }
});

test("storage tells the arms apart: a copy stores everything again, AgentRewind what changed", () => {
  for (const { rows, census } of result.subjects) {
    const grown = (arm: string) => rows.find((row) => row.arm === arm && row.operation === "unchanged")?.grownBytes;
    expect(grown("cp")).toBeGreaterThanOrEqual(census.bytes);
    expect(grown("agentrewind")).toBeLessThan(census.bytes / 2);
  }
});

test("AgentRewind's process tells its memory, its event loop, and when a checkpoint is durable", () => {
  for (const { details } of result.subjects) {
    const of = (operation: string, mode: string) =>
      details.find((one) => one.arm === "agentrewind" && one.operation === operation && one.mode === mode);
    for (const operation of ["unchanged", "one", "hundred"]) {
      const turn = of(operation, "turn");
      expect(turn?.parts.exposedMs?.p50).toBeGreaterThanOrEqual(0);
      expect(turn?.parts.durableMs?.p50).toBeGreaterThanOrEqual(turn?.ms.p50 as number);
      expect(of(operation, "capture")?.parts.peakMB?.max).toBeGreaterThan(10);
      expect(of(operation, "session")?.parts.blockMs?.max).toBeGreaterThan(0);
    }
    expect(of("unchanged", "walk")?.ms.p50).toBeGreaterThan(0);
    expect(of("rewind-all", "restore")?.ms.p50).toBeGreaterThan(0);
  }
});

test("the table is printed and written, with a row for each operation of each arm and each goal", () => {
  expect(readFileSync(join(out, "perf.md"), "utf8")).toBe(printed);
  expect(result.command).toBe("npm run bench:perf -- --quick");
  for (const { arm } of result.subjects[0]?.rows ?? []) {
    const { title } = result.arms.find(({ name }) => name === arm) as { title: string };
    for (const operation of operations) {
      const rows = printed.split("\n").filter((line) => line.startsWith(`| ${operationTitle[operation]} | ${title} |`));
      expect(rows).toHaveLength(result.subjects.length);
    }
  }
  expect(result.goals).toHaveLength(10);
  for (const { goal, met } of result.goals) {
    expect(printed).toContain(`| ${goal} | -`);
    expect(met, "none of the goals is about a quick run's trees").toBeNull();
  }
});

test("the plot is well-formed XML with a dot for each row", () => {
  const count =
    "import sys, xml.etree.ElementTree as e; print(len(list(e.parse(sys.argv[1]).iter('{http://www.w3.org/2000/svg}circle'))))";
  const dots = Number(execFileSync("python3", ["-c", count, join(out, "perf.svg")], { encoding: "utf8" }));
  const rows = result.subjects.reduce((sum, subject) => sum + subject.rows.length, 0);
  const legend = result.arms.filter(({ missing }) => missing === null).length;
  expect(dots).toBe(rows + legend);
});

test("a wrong option is refused with a sentence", async () => {
  for (const [option, value] of [
    ["--only", "sometimes"],
    ["--sizes", "none"],
    ["--sizes", "sqlite:0"],
    ["--rounds", "0"],
  ] as const) {
    expect(() => parseOptions([option, value])).toThrow(`${option} ${value.replace("sqlite:", "")}: `);
  }
  await expect(bench("--arms", "tar")).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining("--arms tar: no such arm; there are agentrewind, scan, cp,"),
  });
});

test("quantiles are nearest ranks", () => {
  expect(quantile([3, 1, 2], 0.5)).toBe(2);
  expect(quantile([7], 0.95)).toBe(7);
  expect(
    quantile(
      Array.from({ length: 100 }, (_, index) => index + 1),
      0.95,
    ),
  ).toBe(95);
});
