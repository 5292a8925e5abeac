// The parts of the crash suite that need no machine: its data, its choices, its list of work.
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parseOptions } from "../../bench-mettle/crash/options.ts";
import { killOf } from "../../bench-mettle/crash/plan.ts";
import { policies } from "../../bench-mettle/crash/policies.ts";
import { latencyOf } from "../../bench-mettle/crash/random.ts";
import { traces } from "../../bench-mettle/crash/traces/index.ts";
import { doAll, readLines } from "../../bench-mettle/crash/work.ts";
import { quantile } from "../../bench-mettle/perf/figures.ts";

test("there are enough traces of both kinds, with names of their own", () => {
  expect(new Set(traces.map(({ id }) => id)).size).toBe(traces.length);
  expect(traces.filter(({ kind }) => kind === "shell").length).toBeGreaterThanOrEqual(40);
  expect(traces.filter(({ kind }) => kind === "files").length).toBeGreaterThanOrEqual(20);
  expect(traces.filter(({ follows }) => follows !== undefined).length).toBeGreaterThanOrEqual(10);
  expect(policies.map(({ name }) => name)).toEqual(["restart", "chat", "chat+files", "full", "ours"]);
});

test("a kill is decided by trace and seed, behind the first turn, and seeds reach all moments and victims", () => {
  const seen = new Set<string>();
  for (const trace of traces) {
    for (let seed = 1; seed <= 20; seed++) {
      const kill = killOf(trace, seed);
      expect(killOf(trace, seed)).toEqual(kill);
      expect(kill.turn).toBeGreaterThan(0);
      expect(kill.turn).toBeLessThan(trace.turns.length);
      seen.add(`${kill.moment} ${kill.victim}`);
    }
  }
  expect(seen.size).toBe(6);
});

test("latencies are those of the distribution that is told", () => {
  const all = Array.from({ length: 20_000 }, (_, turn) => latencyOf("any", turn));
  expect(quantile(all, 0.5)).toBeGreaterThan(3_800);
  expect(quantile(all, 0.5)).toBeLessThan(4_200);
  expect(quantile(all, 0.95)).toBeGreaterThan(14_000);
  expect(quantile(all, 0.95)).toBeLessThan(16_000);
  expect(latencyOf("any", 7)).toBe(all[7]);
});

test("work that is written down is not done again, and a line that was cut off is", async () => {
  const folder = mkdtempSync(join(tmpdir(), "agentrewind-work-"));
  const file = join(folder, "lines.jsonl");
  const done: string[] = [];
  const pieces = ["a", "b", "c"].map((name) => ({
    name,
    about: name,
    run: async () => {
      done.push(name);
      return name.toUpperCase();
    },
  }));
  try {
    expect(await doAll(pieces.slice(0, 1), file, 2)).toEqual(["A"]);
    appendFileSync(file, '{"name":"b","resu');
    expect(await doAll(pieces, file, 2)).toEqual(["A", "B", "C"]);
    expect(done).toEqual(["a", "b", "c"]);
    expect([...readLines(file)]).toEqual([
      ["a", "A"],
      ["b", "B"],
      ["c", "C"],
    ]);
    expect(readFileSync(file, "utf8")).toContain('"resu\n');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("a wrong option is refused with a sentence", () => {
  for (const [option, value] of [
    ["--traces", "none-such"],
    ["--policies", "prayer"],
    ["--seeds", "0"],
    ["--latency-scale", "11"],
    ["--jobs", "many"],
    ["--turns", "0.5"],
  ] as const) {
    expect(() => parseOptions([option, value])).toThrow(`${option} ${value}: `);
  }
  expect(parseOptions(["--help"])).toBe("help");
});
