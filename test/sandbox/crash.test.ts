// SIGKILL of a sandbox's owner at every step of its life: begun, captured, rewound, closed; the next owner has a pair, files and processes of one moment.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { type FaultPoint, faultPoints } from "../../src/faults.ts";
import { lacking } from "../capabilities.ts";
import { runSteps, type Step } from "../helpers/steps.ts";
import { endSession, makePlace, type Place, useRewind } from "../helpers/workspace.ts";
import { keeperOf } from "./keeper-of.ts";
import { needed, openMachine } from "./machine.ts";

const options = { environment: "sandbox", sandbox: { network: "own" } } as const;
const long = process.env.AGENTREWIND_LONG === "1";

/** The file, what is installed, a variable of the shell and a process in the background tell the same number. */
const toState = (n: number): string =>
  `echo ${n} > f; echo ${n} > /etc/agent; v=${n}; [ -z "$job" ] || kill $job; sleep 30${n} & job=$!`;
const steps: Step[] = [
  { op: "open" },
  { op: "exec", command: toState(1) },
  { op: "turn", context: { messages: ["m1"] }, durable: true },
  { op: "exec", command: toState(2) },
  { op: "turn", context: { messages: ["m1", "m2"] }, durable: true },
  { op: "exec", command: toState(3) },
  { op: "rewind", to: "c0", lesson: "learned" },
  { op: "turn", context: { messages: ["m1"] }, durable: true },
  { op: "close" },
];
const tell = "cat f /etc/agent; echo $v; pgrep -a sleep | cut -d' ' -f3";

async function expectPair(place: Place): Promise<void> {
  const rewind = await useRewind(place, options);
  expect(await rewind.verify()).toEqual([]);
  const thread = rewind.thread("t");
  const { stdout } = await rewind.environment.exec(tell);
  const [file, installed, variable, program] = stdout.trim().split("\n");
  // Before the first pair there is none to go back to: the files stay as they were left.
  if (thread.head === null) expect(["", "1\n1"]).toContain(stdout.trim());
  else {
    expect([installed, variable, program]).toEqual([file, file, `30${file}`]);
    const messages = (await thread.context(thread.head)).messages;
    expect(messages[0]).toBe("m1");
    if (thread.head === "c1") expect(file).toBe("2");
    else expect(file).toBe("1");
    await thread.rewind({ to: "c0" });
    expect((await rewind.environment.exec(tell)).stdout).toBe("1\n1\n1\n301\n");
  }
  await rewind.environment.exec(toState(4));
  const made = await thread.checkpoint({ context: { messages: ["m1", "m4"] } });
  expect(made.problems).toEqual([]);
  await endSession(rewind);
}

describe.skipIf(lacking(...needed))("the owner is killed", () => {
  const own = (Object.keys(faultPoints) as FaultPoint[]).filter((point) => /^(life|image|sandbox)\./.test(point));
  const hits = new Map<string, number>();

  test("nobody is killed", async () => {
    const place = makePlace();
    const log = join(place.base, "points");
    const { results } = runSteps({ ...place, options, env: { AGENTREWIND_FAULT_LOG: log } }, steps);
    expect(results.filter(({ error }) => error !== undefined)).toEqual([]);
    for (const point of readFileSync(log, "utf8").trim().split("\n")) hits.set(point, (hits.get(point) ?? 0) + 1);
    await expectPair(place);
  });

  test.each(own)("at %s", async (point) => {
    const count = hits.get(point) ?? 0;
    expect(count, "the point was hit").toBeGreaterThan(0);
    for (let nth = 1; nth <= count; nth++) {
      if (!long && nth > 1 && nth < count) continue;
      const place = makePlace();
      const { signal } = runSteps({ ...place, options, env: { AGENTREWIND_FAULT: `${point}:${nth}` } }, steps);
      expect(signal, `${point}:${nth}`).toBe("SIGKILL");
      await expectPair(place);
    }
  });
});

describe.skipIf(lacking(...needed))("the keeper is killed", () => {
  test("while a state is captured: it is refused, or whole", async () => {
    const outcomes = new Set<string>();
    for (const afterMs of [0, 5, 10, 20, 40, 60]) {
      const machine = await openMachine();
      await machine.exec("v=kept; sleep 301 & sleep 302 &");
      const first = await machine.environment.capture().captured;
      expect(first.problems).toEqual([]);
      await machine.exec("v=later");
      const capture = machine.environment.capture().captured;
      await sleep(afterMs);
      process.kill(keeperOf(process.pid), "SIGKILL");
      const outcome = await capture.then(
        ({ problems }) => (problems.length === 0 ? "whole" : JSON.stringify(problems)),
        (error) => error.code,
      );
      outcomes.add(outcome);
      await machine.end();
    }
    for (const outcome of outcomes) expect(["whole", "SANDBOX_FAILED"]).toContain(outcome);
    expect(outcomes).toContain("SANDBOX_FAILED");
  });
});
