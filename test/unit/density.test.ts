// The parts of the density bench that need no machine: its mixes, its latencies, its comparison, its figures.
import { expect, test } from "vitest";
import { randomOf } from "../../bench-mettle/crash/random.ts";
import { traces } from "../../bench-mettle/crash/traces/index.ts";
import type { TaskLine } from "../../bench-mettle/density/block.ts";
import { type Block, cellsOf, shapeOf } from "../../bench-mettle/density/cells.ts";
import { classes, mixedClass } from "../../bench-mettle/density/classes.ts";
import { differences } from "../../bench-mettle/density/compare.ts";
import { armFigures, turnsOf } from "../../bench-mettle/density/figures.ts";
import { judge } from "../../bench-mettle/density/goals.ts";
import { latenciesOf, meanLatency } from "../../bench-mettle/density/latency.ts";
import { type Options, parseOptions } from "../../bench-mettle/density/options.ts";
import type { TurnLine } from "../../bench-mettle/density/processes.ts";
import { taskOf } from "../../bench-mettle/density/task.ts";
import { quantile } from "../../bench-mettle/perf/figures.ts";

const of = (name: readonly (string | number)[], turns = 60) => ({ name, workspace: "/w", turns, medianMs: 4_000 });

test("a task is decided by its class and its name, and looks as often as its class says", () => {
  for (const one of classes) {
    for (const id of one.traces) expect(traces.map((trace) => trace.id)).toContain(id);
    expect(taskOf(one, of([1, "a"]))).toEqual(taskOf(one, of([1, "a"])));
    expect(taskOf(one, of([1, "a"]))).not.toEqual(taskOf(one, of([2, "a"])));
    const drawn = Array.from({ length: 40 }, (_, seed) => taskOf(one, of([seed])).turns.slice(0, -1)).flat();
    const looked = (100 * drawn.filter(({ looks }) => looks).length) / drawn.length;
    expect(Math.abs(looked - one.looking), one.name).toBeLessThan(4);
  }
});

test("a task begins in the repository of a trace and ends with a reply that calls nothing; what it finishes is verified", () => {
  for (const one of classes) {
    const { before, turns, finished } = taskOf(one, of(["x"], 300));
    expect(JSON.stringify(before)).toContain("git init");
    expect(turns.at(-1)?.calls).toEqual([]);
    expect(finished.length).toBeGreaterThan(1);
    expect(new Set(finished.map(({ folder }) => folder)).size).toBe(finished.length);
  }
});

test("of ten agents each class has some, and the first three differ", () => {
  const ten = Array.from({ length: 10 }, (_, agent) => mixedClass(agent).name);
  expect(new Set(ten)).toEqual(new Set(classes.map(({ name }) => name)));
  expect(new Set(ten.slice(0, 3)).size).toBe(3);
  expect(mixedClass(10)).toBe(mixedClass(0));
});

test("latencies are of the distribution that is told, also where a task has few", () => {
  const many = Array.from({ length: 2_000 }, (_, seed) => latenciesOf(randomOf(seed), 8, 4_000)).flat();
  expect(Math.abs(quantile(many, 0.5) - 4_000)).toBeLessThan(150);
  const one = latenciesOf(randomOf(1), 200, 800);
  expect(Math.abs(quantile(one, 0.95) - 3_000)).toBeLessThan(200);
  expect(Math.abs(one.reduce((sum, each) => sum + each, 0) / 200 - meanLatency(800))).toBeLessThan(60);
  expect(one).not.toEqual([...one].sort((a, b) => a - b));
});

test("cells and their shapes: loads or a number, the extra cell, and rather fewer rounds than tasks without turns", () => {
  const usual = parseOptions([]) as Options;
  expect(cellsOf(usual).map(({ name }) => name)).toEqual([
    ...["30 %, 4 s", "60 %, 4 s", "90 %, 4 s", "30 %, 0.8 s", "60 %, 0.8 s", "90 %, 0.8 s", "96 idle-heavy, 4 s"],
  ]);
  const [slow, , , quick] = cellsOf(usual) as [never, never, never, never];
  expect(shapeOf(usual, slow, 60).rounds).toBe(1);
  expect(shapeOf(usual, quick, 10).rounds).toBe(2);
  for (const [cell, sandboxes] of [[slow, 60] as const, [quick, 10] as const])
    expect(shapeOf(usual, cell, sandboxes).turns).toBeGreaterThanOrEqual(6);
  const few = parseOptions(["--sandboxes", "3", "--idle", "0", "--latency", "40", "--turns", "8"]) as Options;
  expect(cellsOf(few).map(({ name, sandboxes, load }) => [name, sandboxes, load])).toEqual([
    ["3 sandboxes, 0.04 s", 3, null],
  ]);
});

const turn = (more: Partial<TurnLine> = {}): TurnLine => ({
  ...{ exposedMs: 1, overlappedMs: 0, bytes: 10, waitedMs: 2, filesKept: true, processesKept: true, lost: false },
  problems: [],
  ...more,
});
const task = (more: Partial<TaskLine> = {}): TaskLine => ({
  ...{ agent: 0, className: "look-heavy", taskMs: 1_000, modelMs: 900, durableMs: 0, turns: [], failed: 0 },
  looked: [false, true, true],
  left: { sameLife: true, state: "f 644 a\n[0]", verdicts: [] },
  ...more,
});
const block = (arm: string, tasks: readonly TaskLine[]): Block => ({
  ...{ cell: "c", medianMs: 800, load: 30, arm, round: 0, sandboxes: 1, processes: 1, seconds: 1, used: 0.3 },
  ...{ disk: { read: 0, written: 100 }, layers: null, storeBytes: 0, rssMiB: { sum: 90, max: 90 }, memoryMiB: 1 },
  ...{ loopMs: { p99: 1, max: 2 }, died: [], tasks },
});

test("a task that left something else, failed its verifier or lost a checkpoint is named", () => {
  const plain = block("none", [task()]);
  const verdicts = [{ trace: "py-lru", pass: false, why: "the hidden test fails" }];
  expect(differences([plain, block("ours", [task({ turns: [turn()] })])])).toEqual([]);
  const left = (state: string, more = {}) => ({ sameLife: true, state, verdicts: [], ...more });
  for (const [other, said] of [
    [task({ left: left("f 600 a\n[0]") }), 'left "f 600 a", without checkpoints "f 644 a"'],
    [task({ left: left("f 644 a") }), 'left null, without checkpoints "[0]"'],
    [task({ failed: 1 }), "1 calls of tools failed, 0 did without checkpoints"],
    [task({ left: left("f 644 a\n[0]", { verdicts }) }), "py-lru: the hidden test fails"],
    [task({ turns: [turn({ lost: true, problems: ["a: b"] })] }), "the checkpoint of turn 0 cannot be restored: a: b"],
  ] as const)
    expect(differences([plain, block("ours", [other])])).toEqual([`c, ours, round 1, agent 0 (look-heavy): ${said}`]);
});

test("figures: skipped turns behind looks and acts, time against the same tasks, and the goals", () => {
  const turns = [turn({ filesKept: false }), turn({ filesKept: false }), turn()];
  expect(turnsOf([task({ turns })])).toEqual({
    ...{ all: 2, skipped: 1, filesKept: 1, processesKept: 2, behindLooks: 1, skippedBehindLooks: 1 },
  });
  const blocks = [
    block("none", [task()]),
    block("full", [task({ taskMs: 2_000, turns })]),
    block("ours", [task({ taskMs: 1_010, turns: [turn(), turn(), turn()] })]),
  ];
  expect(armFigures(blocks, "c", "full")).toMatchObject({
    slower: { all: 2, p50: 2, p95: 2 },
    exposed: { p50: 1, p95: 1, max: 1 },
    exposedShare: { p50: 0.0015, p95: 0.0015 },
    ...{ written: 100, layers: null, stored: 30 },
  });
  const arms = ["none", "full", "ours"].map((arm) => armFigures(blocks, "c", arm));
  expect(judge([{ cell: "c", arms }]).map(({ met, measured }) => [met, measured])).toEqual([
    [true, "100 %"],
    [true, "0.30 % at c, where it is most"],
    [true, "1.010x at c, where `full` takes 2.00x"],
  ]);
  expect(judge([{ cell: "c", arms: arms.slice(0, 1) }]).map(({ met }) => met)).toEqual([null, null, null]);
});

test("a wrong option is refused with a sentence", () => {
  for (const [option, value] of [
    ["--minutes", "0"],
    ["--loads", "96"],
    ["--latency", "fast"],
    ["--arms", "prayer"],
    ["--sandboxes", "0"],
    ["--idle", "some"],
    ["--turns", "3"],
    ["--seed", "x"],
  ] as const) {
    expect(() => parseOptions([option, value])).toThrow(`${option} ${value}: `);
  }
  expect(parseOptions(["--help"])).toBe("help");
});
