// A process that is killed in the middle of a turn, or between the two halves of a late capture: what is offered behind it restores exactly, and the run goes on.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { OpenOptions, Rewind } from "agentrewind";
import { describe, expect, it } from "vitest";
import { replay } from "../../bench-mettle/policies/replay.ts";
import { prepare } from "../../bench-mettle/policies/trace.ts";
import { digestTree } from "../helpers/digest.ts";
import { codeOf, makePlace, type Place, useRewind } from "../helpers/workspace.ts";

const root = resolve(import.meta.dirname, "../..");

function runAgent({ base }: Place, capture: unknown, killAt: number, env: Record<string, string> = {}): string | null {
  const tsx = join(root, "node_modules/tsx/dist/esm/index.mjs");
  const agent = join(root, "test/policies/agent.ts");
  const args = ["-C", "agentrewind-source", "--import", tsx, agent, base, JSON.stringify(capture), `${killAt}`];
  const ran = spawnSync(process.execPath, args, { encoding: "utf8", env: { ...process.env, ...env } });
  if (ran.signal === null && ran.status !== 0) throw new Error(ran.stderr);
  return ran.signal;
}

const digestsOf = ({ base }: Place): Map<string, string[]> =>
  new Map(
    readFileSync(join(base, "digests"), "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as [string, string[]]),
  );

async function expectExact(place: Place, rewind: Rewind, digests: ReadonlyMap<string, string[]>): Promise<void> {
  const thread = rewind.thread("trace");
  for (const { id, state, kind } of thread.checkpoints({ all: true })) {
    if (kind !== "turn") continue;
    if (state === "not-restorable") expect(await codeOf(thread.rewind({ to: id }))).toBe("NOT_RESTORABLE");
    else {
      await thread.rewind({ to: id });
      expect(digestTree(place.workspace), id).toEqual(digests.get(id));
    }
  }
}

const cases: readonly { name: string; capture: NonNullable<OpenOptions["capture"]>; back: number }[] = [
  { name: "every", capture: "every", back: 36 },
  { name: "effects", capture: "effects", back: 36 },
  { name: "before", capture: { before: ["delete", "git"] }, back: 27 },
  { name: "after", capture: { after: ["git"] }, back: 28 },
];

describe("killed in the middle of turn 36", () => {
  it.each(cases)(
    "$name: the newest that is offered comes back, and the run goes on from there",
    async ({ capture, back }) => {
      const place = makePlace();
      prepare(place.workspace);
      expect(runAgent(place, capture, 36)).toBe("SIGKILL");
      const digests = digestsOf(place);
      const rewind = await useRewind(place, { capture });
      const thread = rewind.thread("trace");
      expect(await rewind.verify()).toEqual([]);
      const newest = thread.checkpoints().findLast(({ state }) => state !== "not-restorable");
      expect(newest?.turn).toBe(back);
      await thread.rewind({ to: newest?.id as string });
      expect(digestTree(place.workspace)).toEqual(digests.get(newest?.id as string));
      await replay(rewind, {
        from: back,
        onDecision: (_turn, id) => void digests.set(id, digestTree(place.workspace)),
      });
      await expectExact(place, rewind, digests);
    },
  );

  it("explicit: nothing is offered, and what is there stays", async () => {
    const place = makePlace();
    prepare(place.workspace);
    expect(runAgent(place, "explicit", 36)).toBe("SIGKILL");
    const before = digestTree(place.workspace);
    const rewind = await useRewind(place, { capture: "explicit" });
    expect(digestTree(place.workspace)).toEqual(before);
    expect(rewind.thread("trace").checkpoints()).toHaveLength(36);
    await expectExact(place, rewind, new Map());
    expect(digestTree(place.workspace)).toEqual(before);
  });
});

describe("F-18: killed in a late capture", () => {
  // Turn 5 is the first with an overwriting call: its conversation is the fifth row, its other half the sixth commit.
  it.each([
    ["checkpoint.before-commit", "not-restorable"],
    ["checkpoint.committed", "captured"],
  ])("at %s the turn is %s", async (point, state) => {
    const place = makePlace();
    prepare(place.workspace);
    const capture: OpenOptions["capture"] = { before: ["overwrite"] };
    expect(runAgent(place, capture, 0, { AGENTREWIND_FAULT: `${point}:6` })).toBe("SIGKILL");
    const rewind = await useRewind(place, { capture });
    expect(
      rewind
        .thread("trace")
        .checkpoints()
        .map((one) => one.state),
    ).toEqual([...Array(4).fill("not-restorable"), state]);
    await expectExact(place, rewind, digestsOf(place));
    // The same turn again: it is captured now, before its tools run.
    await replay(rewind, { from: 5, to: 6 });
    expect(
      rewind
        .thread("trace")
        .checkpoints()
        .find(({ turn }) => turn === 5)?.state,
    ).not.toBe("not-restorable");
  });
});
