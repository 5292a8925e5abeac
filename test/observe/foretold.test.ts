// What observing foretells is what recording then does: the recorded run of 60 turns, observed, recorded, and recorded under each policy.
import type { Checkpoint, ObserveReport, OpenOptions } from "agentrewind";
import { beforeAll, describe, expect, test } from "vitest";
import { replay } from "../../bench-mettle/policies/replay.ts";
import { prepare } from "../../bench-mettle/policies/trace.ts";
import { type PolicyOutcome, replayPolicies } from "../../src/observe/policies.ts";
import { recordedTurns } from "../../src/observe/turns.ts";
import { captureStats } from "../../src/session/capture-stats.ts";
import { turnClasses, turnStats } from "../../src/session/turn-stats.ts";
import { endSession, makePlace, useRewind } from "../helpers/workspace.ts";

type Capture = NonNullable<OpenOptions["capture"]>;

async function recorded(capture: Capture): Promise<readonly Checkpoint[]> {
  const place = makePlace();
  prepare(place.workspace);
  const rewind = await useRewind(place, { capture });
  await replay(rewind);
  const made = rewind.thread("trace").checkpoints({ all: true });
  await endSession(rewind);
  return made;
}

let observed: ObserveReport;
let all: readonly Checkpoint[];
beforeAll(async () => {
  const place = makePlace();
  prepare(place.workspace);
  const rewind = await useRewind(place, { inspector: { observe: true, report() {} } });
  await replay(rewind);
  await endSession(rewind);
  observed = rewind.observed() as ObserveReport;
  all = await recorded("every");
});

test("the same turns change the same halves, by the same calls", () => {
  const told = turnStats(all);
  for (const name of turnClasses)
    expect([name, observed.classes[name].turns]).toEqual([name, told.classes[name].turns]);
  const causes = ({ causes }: Pick<ObserveReport, "causes">) =>
    causes.map(({ call, turns, files, processes }) => [call, turns, files, processes]);
  expect(causes(observed)).toEqual(causes(told));
});

test("the bytes are those that were stored, but for the conversation's", () => {
  // Each turn's conversation adds some hundred bytes, and what the look before the tools found new is in another turn's.
  const stored = turnStats(all);
  const bytes = (classes: ObserveReport["classes"]) => turnClasses.reduce((sum, name) => sum + classes[name].bytes, 0);
  expect(bytes(observed.classes)).toBeGreaterThan(0);
  expect(bytes(observed.classes)).toBeLessThan(bytes(stored.classes));
  expect(bytes(stored.classes) - bytes(observed.classes)).toBeLessThan(60 * 4_096);
});

const options: readonly (readonly [capture: string, Capture])[] = [
  ['"every"', "every"],
  ['"effects"', "effects"],
  ['{ before: ["delete", "overwrite", "git", "database"] }', { before: ["delete", "overwrite", "git", "database"] }],
  ['{ before: ["delete", "git", "database"] }', { before: ["delete", "git", "database"] }],
  ['{ after: ["write", "overwrite", "packages"] }', { after: ["write", "overwrite", "packages"] }],
  ['"explicit"', "explicit"],
];

test("all of them are compared", () => {
  expect(observed.policies.map(({ capture }) => capture)).toEqual(options.map(([name]) => name));
});

describe.each(options)("capture: %s", (name, capture) => {
  const of = (outcomes: readonly PolicyOutcome[]) => {
    const { captured, unchanged, notCaptured, worstLoss } = outcomes.find(
      (one) => one.capture === name,
    ) as PolicyOutcome;
    return { captured, unchanged, notCaptured, worstLoss };
  };

  test("captures what was foretold by observing, and by another policy's record", async () => {
    const { captured, unchanged, notCaptured, worstLoss, failed } = captureStats(await recorded(capture));
    expect(failed).toBe(0);
    const done = { captured, unchanged, notCaptured, worstLoss };
    expect(of(observed.policies)).toEqual(done);
    expect(of(replayPolicies(recordedTurns(all)))).toEqual(done);
  });
});
