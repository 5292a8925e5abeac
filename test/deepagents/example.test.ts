// The example: a subagent's damage is taken back by the main agent, and the task ends well.
import { expect, test } from "vitest";
import { runExample } from "../../examples/deepagents/run.ts";

test("the call of the subagent is taken back, and the file ends as it should", async () => {
  const run = await runExample();
  expect(run.answer).toContain("The duplicates are removed");
  expect(run.after).toBe("day;pieces\n2026-01-05;2\n2026-01-03;7\n2026-01-04;1\n");
  expect(run.lessons).toHaveLength(1);
  expect(run.checkpoints.some(({ active }) => !active)).toBe(true);
  expect(run.findings).toEqual([]);
  expect(run.errors).toEqual([]);
});
