// Each policy on a recorded run: which turns are captured, and that every checkpoint that is offered restores exactly.
import { execFileSync } from "node:child_process";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { type Checkpoint, isRewindError, type OpenOptions, type Rewind } from "agentrewind";
import { describe, expect, it } from "vitest";
import { replay } from "../../bench-mettle/policies/replay.ts";
import { prepare, trace } from "../../bench-mettle/policies/trace.ts";
import { digestTree } from "../helpers/digest.ts";
import { commandFile } from "../helpers/library.ts";
import { endSession, makePlace, type Place, useRewind } from "../helpers/workspace.ts";

type Capture = NonNullable<OpenOptions["capture"]>;

const all = trace.map((_, index) => index + 1);

/** The turns whose checkpoints can be restored. */
const policies: readonly { name: string; capture: Capture; turns: readonly number[]; captures: number }[] = [
  { name: "every", capture: "every", turns: all, captures: 60 },
  // In a directory a look at all files is what tells whether anything changed.
  { name: "effects", capture: "effects", turns: all, captures: 60 },
  { name: "explicit", capture: "explicit", turns: [], captures: 0 },
  {
    name: "before what destroys",
    capture: { before: ["delete", "overwrite", "git", "permissions"] },
    // 8, 44 and 46 run scripts: nobody knows what these do.
    turns: [5, 7, 8, 12, 16, 17, 23, 25, 27, 29, 33, 35, 37, 41, 44, 46, 48, 51, 53, 55, 57],
    captures: 21,
  },
  { name: "after git", capture: { after: ["git"] }, turns: [9, 26, 28, 38, 45, 47, 52, 56], captures: 8 },
  {
    name: "before deletions and after commits",
    capture: { before: ["delete"], after: ["write"] },
    turns: [5, 8, 9, 10, 17, 21, 32, 38, 40, 41, 44, 45, 46, 47, 48, 50, 53],
    captures: 17,
  },
  {
    name: "a function: each tenth turn, and before each rm",
    capture: ({ turn, moment, calls }) =>
      moment === "begin" ? turn % 10 === 0 : calls.some(({ input }) => /\brm\b/.test(JSON.stringify(input))),
    turns: [10, 17, 20, 30, 37, 40, 41, 48, 50, 53, 60],
    captures: 11,
  },
];

describe.each(policies)("$name", ({ capture, turns, captures }) => {
  it("captures these turns, offers these, and restores each exactly", async () => {
    const place = makePlace();
    prepare(place.workspace);
    const rewind = await useRewind(place, { capture });
    const { told, stop } = countCaptures();
    const digests = new Map<string, string[]>();
    await replay(rewind, {
      onDecision: (_turn, id) => void digests.set(id, digestTree(place.workspace)),
      // Nothing but tools changes anything here: what is captured late is what was there at the decision.
      onGate: (_turn, { id }) => expect(digestTree(place.workspace)).toEqual(digests.get(id)),
    });
    stop();
    expect(told.count).toBe(captures);
    const thread = rewind.thread("trace");
    const made = thread.checkpoints();
    expect(made.map(({ turn }) => turn)).toEqual(all);
    expect(made.filter(({ state }) => state !== "not-restorable").map(({ turn }) => turn)).toEqual(turns);
    expectTold(rewind, made);
    await expectAllRestore(place, rewind, made, digests);
  });
});

function countCaptures() {
  const told = { count: 0 };
  const count = (): void => void told.count++;
  subscribe("agentrewind:capture:end", count);
  return { told, stop: () => unsubscribe("agentrewind:capture:end", count) };
}

/** What cannot be restored says so wherever it is shown, and its conversation is there. */
function expectTold(rewind: Rewind, made: readonly Checkpoint[]): void {
  const list = rewind.thread("trace").listText().split("\n");
  for (const { id, state, reason, messages } of made.slice(-20)) {
    const line = list.find((one) => one.startsWith(`${id} `));
    if (state === "not-restorable") {
      expect(reason).toMatch(/^not captured, as capture is set \(/);
      expect(line).toContain("(cannot be restored: not captured");
    } else expect(line).not.toContain("cannot be restored");
    expect(messages).toBeGreaterThan(0);
  }
}

async function expectAllRestore(
  { workspace }: Place,
  rewind: Rewind,
  made: readonly Checkpoint[],
  digests: ReadonlyMap<string, string[]>,
): Promise<void> {
  const thread = rewind.thread("trace");
  const offered = new Set(made.filter(({ state }) => state !== "not-restorable").map(({ id }) => id));
  // From the newest to the oldest, and to one in between.
  for (const one of [...made].reverse().concat(made[30] as Checkpoint)) {
    const before = digestTree(workspace);
    const asked = thread.rewind({ to: one.id });
    if (offered.has(one.id)) {
      await asked;
      expect(digestTree(workspace), one.id).toEqual(digests.get(one.id));
      continue;
    }
    const error = await asked.then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    if (!isRewindError(error, "NOT_RESTORABLE")) throw error ?? new Error(`${one.id} was restored`);
    expect(digestTree(workspace)).toEqual(before);
    for (const id of [error.details.nearest, error.details.after]) {
      if (id === null) continue;
      expect(error.hint).toContain(id as string);
      expect(thread.get(id as string).state).not.toBe("not-restorable");
    }
  }
}

it("stats tells of a recorded thread what its policy came to", async () => {
  const place = makePlace();
  prepare(place.workspace);
  const rewind = await useRewind(place, { capture: { before: ["delete", "git"] } });
  await replay(rewind);
  await endSession(rewind);
  const stats = (...more: readonly string[]): string =>
    execFileSync(
      process.execPath,
      [commandFile, "--workspace", place.workspace, "--store", place.store, "--thread", "trace", ...more, "stats"],
      { encoding: "utf8" },
    );
  const { captures, policies, fits } = JSON.parse(stats("--json"));
  expect(policies).toHaveLength(6);
  expect(policies.at(-1)).toMatchObject({ capture: '"explicit"', captured: 0, notCaptured: 60, worstLoss: 60 });
  expect(stats()).toContain(`\nFits: capture: ${fits.capture} (`);
  expect(captures).toMatchObject({
    ...{ turns: 60, captured: 11, unchanged: 1, notCaptured: 48, failed: 0, worstLoss: 10 },
  });
  expect(stats()).toMatch(
    /\nOf 60 turns 11 captured, 1 as the one before, 48 not captured, as it was set: .* stored, .* waited in all, at most 10 turns of work between two that can be restored\n/,
  );
});
