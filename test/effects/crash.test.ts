// SIGKILL at every step of an effect, of a compensation and of a rewind's check: nothing is done twice, and no half is left.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Rewind } from "agentrewind";
import { afterAll, describe, expect, test } from "vitest";
import { type FaultPoint, faultPoints } from "../../src/faults.ts";
import { digestTree } from "../helpers/digest.ts";
import type { Step } from "../helpers/steps.ts";
import { endSession, makePlace, type Place, useRewind } from "../helpers/workspace.ts";
import { done, runWorld } from "./world.ts";

const hit = new Set<string>();

interface Scenario {
  readonly name: string;
  /** Rooms that were booked behind c1; null where there is no c1. */
  readonly booked: readonly string[] | null;
  readonly steps: readonly Step[];
  readonly points: RegExp;
  /** The same process again, and what must hold then. */
  readonly again: (place: Place, killedAt: string) => Promise<void>;
}

const open: Step = { op: "open" };
const call = (tool: string, args: object, callId: string): Step => ({ op: "call", tool, args, callId });

/** Once in the world, or not yet and then once. */
const mailed = async (place: Place, killedAt: string): Promise<void> => {
  const mail = call("send_mail", { to: "ann" }, "m1/c1");
  const again = runWorld(place, [open, mail, { ...mail, callId: "m2/c1" }, { op: "effects" }, { op: "verify" }]);
  const [, same, other, effects, findings] = again.results.map((one) => one.ok);
  const ended = killedAt.startsWith("effect.completed") || killedAt === "";
  expect(same).toMatchObject(ended ? { status: "replayed", result: "sent" } : { status: "held" });
  if (!ended) expect(same.message).toContain("not known whether this is done already");
  // Where it was begun only, an equivalent call is held as well; where it is known to be done it is the agent's own will.
  expect(other.status).toBe(ended ? "ran" : "held");
  expect(effects[0]).toMatchObject({ state: ended ? "completed" : "unknown", checkpoint: "c0" });
  expect(findings).toEqual([]);
  const times = killedAt.startsWith("effect.recorded") ? 0 : ended ? 2 : 1;
  expect(done(place).filter((line) => line === "mail ann")).toHaveLength(times);
};

const cancelled = async (place: Place, killedAt: string): Promise<void> => {
  const again = runWorld(place, [
    open,
    { op: "rewind", to: "c0", lesson: "l", key: "k" },
    { op: "effects" },
    { op: "verify" },
  ]);
  const [, result, effects, findings] = again.results.map((one) => one.ok);
  expect(findings).toEqual([]);
  const cancels = done(place).filter((line) => line.startsWith("cancel"));
  expect(new Set(cancels).size, "none is made up for twice").toBe(cancels.length);
  const states = Object.fromEntries(
    effects.map((one: { description: string; state: string }) => [one.description.slice(-3, -2), one.state]),
  );
  if (killedAt.startsWith("effect.compensating")) {
    // It was begun, and nobody knows whether it succeeded.
    const which = killedAt.endsWith(":2") ? "A" : "B";
    expect(states[which]).toBe("uncompensated");
    expect(result.uncompensated.join()).toContain("not known whether it succeeded");
    expect(result.message).toContain("still in force");
  } else {
    expect(cancels).toEqual(["cancel B booking of B", "cancel A booking of A"]);
    expect(states).toEqual({ A: "compensated", B: "compensated" });
  }
  expect(readFileSync(join(place.workspace, "f"), "utf8")).toBe("v0");
};

const verified = async (place: Place): Promise<void> => {
  const rewind: Rewind = await useRewind(place);
  const thread = rewind.thread("t");
  const text = readFileSync(join(place.workspace, "f"), "utf8");
  // Finished or undone, never a mix.
  expect([`${thread.head} ${text}`]).toEqual([thread.head === "c0" ? "c0 v0" : "c1 v2"]);
  await endSession(rewind);
  const again = runWorld(place, [
    open,
    { op: "rewind", to: "c0", lesson: "l", key: "k", verify: 'test "$(cat f)" = v0; touch junk' },
  ]);
  expect(again.results[1]?.error, again.results[1]?.message).toBeUndefined();
  expect(readFileSync(join(place.workspace, "f"), "utf8")).toBe("v0");
  const after = await useRewind(place);
  expect(
    after
      .thread("t")
      .lessons()
      .map((one) => one.text),
  ).toEqual(["l"]);
};

const scenarios: readonly Scenario[] = [
  {
    name: "F-44: an effect",
    booked: null,
    steps: [open, call("send_mail", { to: "ann" }, "m1/c1")],
    points: /^effect\.(recorded|called|completed)$/,
    again: mailed,
  },
  {
    name: "F-42: a rewind that makes up for two",
    booked: ["A", "B"],
    steps: [open, { op: "rewind", to: "c0", lesson: "l", key: "k" }],
    points: /^(effect\.|rewind\.)/,
    again: cancelled,
  },
  {
    name: "F-43: a rewind with a check that succeeds",
    booked: [],
    steps: [open, { op: "rewind", to: "c0", lesson: "l", key: "k", verify: "touch junk" }],
    points: /^(verify|rewind)\.|^restore\.(staged|placed-one|cleaned)$/,
    again: verified,
  },
  {
    name: "F-43: a rewind with a check that fails",
    booked: [],
    steps: [open, { op: "rewind", to: "c0", lesson: "l", key: "k", verify: "touch junk; false" }],
    points: /^verify\.|^restore\.(staged|placed-one|cleaned)$/,
    again: verified,
  },
];

/** f is v0 at c0, v1 at c1 and v2 afterwards. */
async function prepare({ booked }: Scenario): Promise<Place> {
  const place = makePlace();
  const rewind = await useRewind(place, { effects: { book: { class: "compensable", compensate: () => {} } } });
  const thread = rewind.thread("t");
  const messages: string[] = [];
  const take = async (text: string): Promise<void> => {
    writeFileSync(join(place.workspace, "f"), text);
    messages.push(`m${messages.length}`);
    await (await thread.beginTurn({ messages })).gate();
  };
  await take("v0");
  if (booked !== null) await take("v1");
  for (const room of booked ?? []) {
    await thread.runTool({ tool: "book", args: { room }, callId: room }, () => `booking of ${room}`);
    await take("v1");
  }
  writeFileSync(join(place.workspace, "f"), "v2");
  await endSession(rewind);
  return place;
}

describe("killed at every step", () => {
  for (const scenario of scenarios) {
    test(scenario.name, { timeout: 300_000 }, async () => {
      const counted = await prepare(scenario);
      const log = join(counted.base, "points");
      const whole = runWorld(counted, scenario.steps, { AGENTREWIND_FAULT_LOG: log });
      const fails = whole.results.find((one) => one.error !== undefined);
      expect(fails?.error).toBe(scenario.name.includes("fails") ? "VERIFY_FAILED" : undefined);
      await scenario.again(counted, "");
      const points = readFileSync(log, "utf8")
        .trim()
        .split("\n")
        .filter((point) => scenario.points.test(point));
      const seen = new Map<string, number>();
      for (const point of points) {
        const nth = (seen.get(point) ?? 0) + 1;
        seen.set(point, nth);
        if (nth > 2) continue;
        const place = await prepare(scenario);
        const at = `${point}:${nth}`;
        expect(runWorld(place, scenario.steps, { AGENTREWIND_FAULT: at }).signal, `${at} was reached`).toBe("SIGKILL");
        hit.add(point);
        try {
          await scenario.again(place, at);
        } catch (error) {
          (error as Error).message = `killed at ${at}: ${(error as Error).message}`;
          throw error;
        }
      }
    });
  }

  test("the process dies while the check runs", async () => {
    const scenario = scenarios[2] as Scenario;
    const place = await prepare(scenario);
    const before = digestTree(place.workspace);
    const killed = runWorld(place, [
      open,
      { op: "rewind", to: "c0", lesson: "l", key: "k", verify: "echo x > junk; kill -9 $PPID; sleep 1" },
    ]);
    expect(killed.signal).toBe("SIGKILL");
    const rewind = await useRewind(place);
    expect(digestTree(place.workspace), "it is undone").toEqual(before);
    expect(rewind.thread("t").head).toBe("c1");
    await endSession(rewind);
    await verified(place);
  });

  afterAll(() => {
    const own = (Object.keys(faultPoints) as FaultPoint[]).filter((point) => /^(effect|verify)\./.test(point));
    expect(own.filter((point) => !hit.has(point))).toEqual([]);
  });
});
