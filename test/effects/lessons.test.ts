// Lessons in parts, with where they come from, told once, summed up where they are too long, and reminded of where a framework lost them.
import { expect, test } from "vitest";
import { endSession, makePlace, useRewind } from "../helpers/workspace.ts";
import { context, did, turn } from "../invariants/scene.ts";

const parts = {
  attempted: "ran the migration on the live file",
  disproved: "that it keeps the header",
  evidence: "the first line was gone; API_KEY=zzzzzzzzzzzz was printed",
  consequence: "all tests failed.",
  instead: "migrate a copy first",
};
const text =
  "Tried: ran the migration on the live file. Proved false: that it keeps the header. Evidence: the first line was gone; API_KEY=[masked] was printed. " +
  "Consequence: all tests failed. Instead: migrate a copy first.";

async function scene(options = {}) {
  const place = makePlace();
  const rewind = await useRewind(place, options);
  const thread = rewind.thread("t");
  await turn(thread, context("m0"), { tools: () => {} });
  const work = async (n: number): Promise<void> => {
    await turn(thread, context("m0", `m${n}`), { activity: did("shell", `make ${n}`), tools: () => {} });
  };
  await work(1);
  return { place, rewind, thread, work };
}

test("parts are told as one text, masked and bounded, and kept as parts with where they come from", async () => {
  const { thread, work, rewind, place } = await scene();
  const result = await thread.rewind({ to: "c0", lesson: parts, by: "agent" });
  expect(result.message).toContain(`1. ${text}`);
  expect(thread.lessons()).toMatchObject([
    {
      text,
      parts: { ...parts, evidence: expect.stringContaining("[masked]") },
      rewind: 1,
      branch: null,
      from: "c1",
      to: "c0",
      covers: [],
    },
  ]);
  await work(2);
  const long = await thread.rewind({ to: "c0", lesson: { instead: "x".repeat(5_000) } });
  expect(long.lessons[0]?.text.length).toBeLessThan(420);
  await expect(thread.rewind({ to: "c0", lesson: { attempted: "  " }, by: "agent" })).rejects.toMatchObject({
    code: "LESSON_EMPTY",
  });
  expect(thread.admissible("c0", {})).toMatchObject({ code: "LESSON_EMPTY" });
  await endSession(rewind);
  expect((await useRewind(place)).thread("t").lessons()).toHaveLength(2);
});

test("a lesson of a branch names it", async () => {
  const { rewind, thread } = await scene();
  const [branch] = await rewind.fork("c0", { count: 1 });
  const inBranch = branch?.thread("t");
  await inBranch?.checkpoint({ context: context("m0", "b1") });
  await inBranch?.rewind({ to: "c0", lesson: "not in the branch either" });
  expect(inBranch?.lessons()).toMatchObject([{ branch: "b1", text: "not in the branch either" }]);
  await branch?.adopt();
  expect(thread.lessons()).toMatchObject([{ branch: "b1" }]);
});

test("the same said again, in other case and spaces, is one lesson", async () => {
  const { thread, work } = await scene();
  await thread.rewind({ to: "c0", lesson: "Migrate a copy first." });
  await work(2);
  const { message } = await thread.rewind({ to: "c0", lesson: "migrate  a copy FIRST" });
  expect(message.match(/migrate\s+a copy first/gi)).toHaveLength(1);
  expect(thread.lessons().map((one) => one.text)).toEqual(["migrate  a copy FIRST"]);
});

test("what the framework lost is reminded of once; what it still shows is not", async () => {
  const { thread, work } = await scene();
  expect(thread.reminder(["m0"])).toBeNull();
  const first = await thread.rewind({ to: "c0", lesson: "use a copy" });
  expect(thread.reminder(["m0", first.message])).toBeNull();
  await work(2);
  await thread.rewind({ to: "c0", lesson: "close the file" });
  expect(thread.reminder(["a summary"])).toBe(
    "Lessons from attempts of yours that were taken back, newest first. They still hold:\n1. close the file\n2. use a copy",
  );
  expect(thread.reminder(["a summary that says: use a copy"])).toMatch(/1\. close the file$/);
  expect(thread.reminder(["use a copy", "close the file"])).toBeNull();
});

test("lessons that are too long to tell are summed up by the program's hook, and the sum stands for them", async () => {
  const given: string[][] = [];
  const summarize = (lessons: readonly { text: string }[]): string => {
    given.push(lessons.map((one) => one.text.slice(0, 2)));
    return `the sum of ${lessons.length}; token=abcdefghijkl`;
  };
  const { thread, work } = await scene({ lessons: { summarize } });
  for (const n of [1, 2, 3, 4, 5]) {
    await work(n + 1);
    await thread.rewind({ to: "c0", lesson: `${n} ${"x".repeat(1_900)}` });
  }
  expect(given).toEqual([["4 ", "3 ", "2 ", "1 "]]);
  const [newest, sum, ...rest] = thread.lessons();
  expect([newest?.text[0], rest.length]).toEqual(["5", 0]);
  expect(sum).toMatchObject({ text: "the sum of 4; token=[masked]", covers: [1, 2, 3, 4] });
  await work(9);
  const { message } = await thread.rewind({ to: "c0", lesson: "short" });
  expect(message).toContain("the sum of 4");
  expect(message).not.toContain("1 xxx");
});

test("a hook that fails costs nothing but the older lessons", async () => {
  const { thread, work } = await scene({
    lessons: {
      summarize: () => {
        throw new Error("no model");
      },
    },
  });
  let message = "";
  for (const n of [1, 2, 3, 4, 5, 6]) {
    await work(n + 1);
    ({ message } = await thread.rewind({ to: "c0", lesson: `${n} ${"x".repeat(1_900)}` }));
  }
  expect(message).toMatch(/older ones are not shown/);
  expect(thread.lessons()).toHaveLength(6);
});
