// What policies would have come to on turns that are known, and which one fits.
import { expect, test } from "vitest";
import type { PolicyClass } from "../../src/coordinator/policy/actions.ts";
import { fitOf, type PolicyOutcome, replayPolicies } from "../../src/observe/policies.ts";
import { observeReport } from "../../src/observe/report.ts";
import { observedTable } from "../../src/observe/table.ts";
import { recordedTurns, type TurnFacts } from "../../src/observe/turns.ts";
import type { Checkpoint } from "../../src/session/types.ts";

type Ran = readonly [classes: readonly PolicyClass[], changed: TurnFacts["changed"], bytes?: number];

/** A turn for each, behind one that begins; each is what ran before it. `gapMs`: how long the model takes. */
function line(ran: readonly Ran[], { gapMs = 1_000, exposedMs = 1, overlappedMs = 4, thread = "t" } = {}): TurnFacts[] {
  const call = (classes: readonly PolicyClass[]) =>
    classes.length === 0 ? [] : [{ name: classes.join("+"), classes }];
  return [[[], null, 1_000] as Ran, ...ran].map(([classes, changed, bytes = 0], n) => ({
    ...{ thread, turn: n + 1, at: n * gapMs, calls: call(classes), reply: call(ran[n]?.[0] ?? []) },
    ...{ changed, bytes, exposedMs, overlappedMs },
  }));
}

const outcome = (turns: readonly TurnFacts[], capture: string): Omit<PolicyOutcome, "capture"> => {
  const { capture: _, ...found } = replayPolicies(turns).find((one) => one.capture.includes(capture)) as PolicyOutcome;
  return found;
};

const run = line([
  [["read"], "none"],
  [["write"], "files", 10],
  [["read"], "none"],
  [["delete"], "both", 20],
  [["read"], "none"],
  [["overwrite"], "files", 30],
  [["read"], "none"],
]);

test("every turn is captured, those that found nothing changed with the state of the one before", () => {
  const found = { captured: 4, unchanged: 4, notCaptured: 0, bytes: 60, waitedMs: 8, worstLoss: 1 };
  expect(outcome(run, '"every"')).toEqual(found);
  expect(outcome(run, '"effects"')).toEqual(found);
});

test("before calls of a class: they wait for all of it, and what changed since counts at the next", () => {
  // c4 before the delete, with the write in it.
  expect(outcome(run, '{ before: ["delete", "git"')).toEqual({
    ...{ captured: 1, unchanged: 0, notCaptured: 7, bytes: 10, waitedMs: 5, worstLoss: 5 },
  });
  // And c6 before the overwrite, with the delete in it.
  expect(outcome(run, '{ before: ["delete", "overwrite"')).toEqual({
    ...{ captured: 2, unchanged: 0, notCaptured: 6, bytes: 30, waitedMs: 10, worstLoss: 3 },
  });
});

test("behind calls of a class: beside the model", () => {
  expect(outcome(run, "{ after: ")).toEqual({
    ...{ captured: 2, unchanged: 0, notCaptured: 6, bytes: 60, waitedMs: 2, worstLoss: 4 },
  });
});

test("by itself explicit captures nothing; what is owed is captured all the same, and what cannot be judged counts as every class", () => {
  expect(outcome(run, '"explicit"')).toMatchObject({ captured: 0, notCaptured: 8, bytes: 0, worstLoss: 8 });
  const owed = line([
    [["read"], "none"],
    [["irreversible"], "none"],
    [["unknown"], "files", 5],
    [["destructive", "unknown"], "none"],
  ]);
  expect(outcome(owed, '"explicit"')).toMatchObject({ captured: 2, notCaptured: 3, bytes: 5 });
  expect(outcome(owed, '{ before: ["delete", "git"')).toMatchObject({ captured: 2, unchanged: 1 });
  const [first, second, ...rest] = line([
    [[], "files", 5],
    [["read"], "none"],
  ]);
  // Tools ran of which nobody told.
  const untold = [{ ...(first as TurnFacts), reply: null }, second as TurnFacts, ...rest];
  expect(outcome(untold, "{ after: ")).toMatchObject({ captured: 1 });
  expect(outcome(untold, '{ before: ["delete", "git"')).toMatchObject({ captured: 1 });
});

test("what was not told counts as changed; threads are lines of their own", () => {
  const untold = run.map((one) => ({ ...one, changed: null }));
  expect(outcome(untold, '"every"')).toMatchObject({ captured: 8, unchanged: 0 });
  const two = [...run, ...line([[["write"], "files", 7]], { thread: "u" })];
  expect(outcome(two, '"every"')).toMatchObject({ captured: 6, unchanged: 4, bytes: 67, worstLoss: 1 });
  expect(outcome(two, '"explicit"')).toMatchObject({ notCaptured: 10, worstLoss: 8 });
});

test("what fits: what loses nothing where it costs nothing that matters, else what waits least", () => {
  const fitting = (turns: TurnFacts[]): string | undefined => fitOf(turns, replayPolicies(turns))?.capture;
  expect(fitting([])).toBeUndefined();
  expect(fitting(run)).toBe('"effects"');
  expect(
    fitting(
      line(
        run.slice(1).map((one) => [["read"], one.changed]),
        { exposedMs: 100 },
      ),
    ),
  ).toBe(
    // None of those that leave turns out comes below five turns.
    '"every"',
  );
  const slow = line(
    run.slice(1).map(({ calls, changed, bytes }) => [calls.flatMap((one) => one.classes), changed, bytes] as Ran),
    { exposedMs: 100 },
  );
  expect(fitting(slow)).toBe('{ before: ["delete", "git", "database"] }');
  // A night between two turns is nobody's work.
  const night = slow.map((one) => ({ ...one, at: one.at + (one.turn > 4 ? 36_000_000 : 0) }));
  expect(fitting(night)).toBe(fitting(slow));
  expect(fitting(slow.slice(0, 2))).toBe('"effects"');
});

test("a recorded thread gives the same facts, of the head's line", () => {
  const checkpoint = (n: number, files: string | null, input: string, over: Partial<Checkpoint> = {}): Checkpoint => ({
    ...{ id: `c${n}`, parent: n === 0 ? null : `c${n - 1}`, thread: "t", branch: null, partial: null, pruned: 0 },
    ...{ turn: n + 1, kind: "turn", state: files === null ? "not-restorable" : "durable", reason: null, label: null },
    ...{ createdAt: new Date(n * 1_000).toISOString(), anchor: null, messages: 1, changes: null, problems: [] },
    ...{ environment: { files, processes: null }, effects: [], head: false, active: true },
    activity: { said: "", actions: input === "" ? [] : [{ tool: "bash", input, output: "", failed: false }] },
    ...{ timings: { exposedMs: 2, overlappedMs: 3, bytes: 10 } },
    ...over,
  });
  const facts = recordedTurns([
    checkpoint(0, "a", ""),
    checkpoint(1, "b", '{"command":"rm -r dist"}'),
    checkpoint(2, "x", "left", { active: false }),
    checkpoint(3, null, "ls", { parent: "c1" }),
  ]);
  expect(facts.map(({ changed, calls, reply }) => [changed, calls[0]?.classes, reply?.[0]?.name])).toEqual([
    [null, undefined, "bash: rm"],
    ["files", ["delete"], "bash: ls"],
    [null, ["read"], undefined],
  ]);
  expect(facts[1]).toMatchObject({ turn: 2, at: 1_000, bytes: 10, exposedMs: 2, overlappedMs: 3 });
});

test("the report counts what writing would take, and says where that comes from", () => {
  const about = { source: "turns", pauseMs: null, workspaces: ["/w"], baseBytes: 0, notes: ["a note"] } as const;
  const report = observeReport({ ...about, turns: run, writeRate: 1_000 });
  expect(report).toMatchObject({ turns: 8, uncompared: 1, firstBytes: 1_000, bytes: { p50: 0, p95: 30 } });
  // 30 bytes are 30 ms.
  expect(report.waitedMs).toEqual({ p50: 1, p95: 31 });
  expect(report.classes.both).toMatchObject({ turns: 1, bytes: 20, exposedMs: { p50: 21, p95: 21 } });
  expect(report.causes.find(({ call }) => call === "delete")).toEqual({
    ...{ call: "delete", turns: 1, files: 1, processes: 1, bytes: 20 },
  });
  const table = observedTable(report);
  expect(table).toMatch(/^Observed 8 turns in \/w; nothing was captured\n/);
  expect(table).toContain("\na note\n");
  expect(table).toMatch(/\nnone +4 +57\.1 %/);
  expect(table).toContain("estimated at 1000 B/s");
  expect(table).toMatch(/\n"every" +4 +4 +0 +60 B /);
  expect(table).toContain(`\nFits: capture: ${report.fits?.capture} (`);
  const empty = observedTable(observeReport({ ...about, turns: [], writeRate: null }));
  expect(empty).toBe("Observed 0 turns in /w; nothing was captured\na note\n");
});
