// What is counted of a policy on a recorded thread.
import { expect, test } from "vitest";
import { captureStats } from "../../src/session/capture-stats.ts";
import type { Checkpoint } from "../../src/session/types.ts";

type Made = readonly [turn: number, files: string | null, kind?: Checkpoint["kind"], reason?: string];

const line = (...made: readonly Made[]): Checkpoint[] =>
  made.map(([turn, files, kind = "turn", reason = "not captured, as capture is set (explicit)"], n) => ({
    ...{ id: `c${n}`, parent: n === 0 ? null : `c${n - 1}`, thread: "t", branch: null, partial: null, pruned: 0 },
    ...{ turn, kind, state: files === null ? "not-restorable" : "durable", reason: files === null ? reason : null },
    ...{ label: null, createdAt: "", anchor: null, messages: 1, changes: null, problems: [], effects: [] },
    ...{ environment: { files, processes: null }, activity: { said: "", actions: [] } },
    ...{ timings: { exposedMs: 2, overlappedMs: 0, bytes: 10 }, head: false, active: true },
  }));

test("turns are captured, as the one before that can be restored, left out, or failed", () => {
  const made = line(
    [1, "a"],
    [2, null],
    [3, "a"],
    [4, "b"],
    [5, null, "turn", "the disk is full"],
    [5, "c", "explicit"],
  );
  expect(captureStats(made)).toEqual({
    ...{ turns: 5, captured: 2, unchanged: 1, notCaptured: 1, failed: 1, bytes: 50, exposedMs: 10 },
    worstLoss: 2,
  });
});

test("the worst loss counts the beginning, the present, and what was asked for", () => {
  const worst = (...made: readonly Made[]): number => captureStats(line(...made)).worstLoss;
  expect(worst()).toBe(0);
  expect(worst([1, "a"])).toBe(1);
  expect(worst([1, "a"], [2, "a"], [3, "b"])).toBe(1);
  expect(worst([1, null], [2, null], [3, null])).toBe(3);
  expect(worst([1, null], [2, null], [3, "a"])).toBe(2);
  expect(worst([1, "a"], [2, null], [3, null], [4, null])).toBe(4);
  expect(worst([1, null], [2, null], [2, "a", "explicit"], [3, null], [4, null])).toBe(3);
});

test("an abandoned branch is counted, but no work on it is lost", () => {
  const made = line([1, "a"], [2, null], [3, null]);
  const left = made.map((one, n) => (n === 0 ? one : { ...one, active: false }));
  expect(captureStats(left)).toMatchObject({ turns: 3, notCaptured: 2, worstLoss: 1 });
});
