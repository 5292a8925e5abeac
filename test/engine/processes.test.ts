// Processes that share an engine: who grants, and what happens when one of them is killed or stopped.
import * as fs from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { EngineProcess } from "../helpers/engine-process.ts";
import { makePlace } from "../helpers/workspace.ts";

const newFolder = (): string => {
  const folder = join(makePlace().base, "locks");
  fs.mkdirSync(folder);
  return folder;
};

/** Long enough that a grant which must not come would have come. */
const aWhile = (): Promise<void> => sleep(100);

/** Where something is to be found silent. */
const silenceMs = 800;

async function start(perDevice: number, count: number, patience: { silenceMs?: number } = {}) {
  const folder = newFolder();
  const holder = new EngineProcess({ folder, perDevice, ...patience });
  await holder.until({ role: "grants" });
  const others = Array.from({ length: count - 1 }, () => new EngineProcess({ folder, perDevice, ...patience }));
  await Promise.all(others.map((one) => one.until({ role: "asks" })));
  return { folder, holder, others, all: [holder, ...others] };
}

const busy = (all: readonly EngineProcess[]): number => all.reduce((sum, one) => sum + one.busy, 0);

test("three processes keep the limit of the one that grants, and all get their turn", async () => {
  const { all } = await start(2, 3);
  for (const [n, one] of all.entries()) for (const name of [`${n}1`, `${n}2`, `${n}3`]) one.run(name);
  let done = 0;
  for (; done < 9; done++) {
    await expect.poll(() => busy(all), { interval: 5 }).toBe(Math.min(2, 9 - done));
    await sleep(10);
    expect(busy(all)).toBeLessThanOrEqual(2);
    const [one] = all.filter((each) => each.busy > 0);
    const ended = new Set(one?.said.flatMap(({ ended: name }) => name ?? []));
    await one?.end(one.granted.find((name) => !ended.has(name)) as string);
  }
  expect(all.map((one) => one.granted.length)).toEqual([3, 3, 3]);
});

test("an environment of another process has its turn beside one that asks for much", async () => {
  const { holder, others } = await start(1, 2);
  const [other] = others as [EngineProcess];
  for (let n = 0; n < 10; n++) holder.run(`a${n}`);
  await holder.until({ granted: "a0" });
  other.run("b0");
  await aWhile();
  await holder.end("a0");
  await holder.until({ granted: "a1" });
  await holder.end("a1");
  await other.until({ granted: "b0" });
  expect(holder.granted).toEqual(["a0", "a1"]);
});

test("what somebody waits for comes first, whichever process it is in", async () => {
  const { holder, others } = await start(1, 3);
  const [first, second] = others as [EngineProcess, EngineProcess];
  holder.run("a0");
  await holder.until({ granted: "a0" });
  first.run("b0");
  await aWhile();
  second.run("c0");
  second.promote("c0");
  await aWhile();
  await holder.end("a0");
  await second.until({ granted: "c0" });
  expect(first.granted).toEqual([]);
  await second.end("c0");
  await first.until({ granted: "b0" });
});

test("when the process that grants is killed another grants: what waits is asked for again, what runs counts", async () => {
  const { holder, others } = await start(2, 3);
  const [first, second] = others as [EngineProcess, EngineProcess];
  holder.run("a0");
  await holder.until({ granted: "a0" });
  first.run("b0");
  await first.until({ granted: "b0" });
  first.run("b1");
  second.run("c0");
  second.run("c1");
  await aWhile();
  expect(busy(others)).toBe(1);
  const from = others.map(({ said }) => said.length);
  await holder.kill();
  const roles = (role: string) => others.map((one, n) => one.until({ role }, from[n]));
  await Promise.race(roles("grants"));
  await Promise.race(roles("asks"));
  // Until the other one has told what runs there, one more than the limit says may have begun.
  await expect.poll(() => busy(others), { interval: 5 }).toBeGreaterThanOrEqual(2);
  await aWhile();
  expect(busy(others)).toBeLessThanOrEqual(3);
  const done = new Set<string>();
  for (const left of [3, 2, 1, 0]) {
    const running = others.flatMap((one) => one.granted.map((name) => ({ one, name })));
    // The one that has run since before comes last.
    const next = running.findLast(({ name }) => !done.has(name) && (name !== "b0" || left === 0));
    done.add(next?.name as string);
    await next?.one.end(next.name);
    await expect.poll(() => busy(others), { interval: 5 }).toBe(Math.min(2, left));
    await aWhile();
    expect(busy(others)).toBe(Math.min(2, left));
  }
  expect(others.map((one) => one.granted.length)).toEqual([2, 2]);
});

test("one that closes its engine hands over as well", async () => {
  const { holder, others } = await start(1, 2);
  const [other] = others as [EngineProcess];
  await holder.close();
  await other.until({ role: "grants" });
  other.run("b0");
  await other.until({ granted: "b0" });
});

test("what a killed process had is free for the others", async () => {
  const { holder, others } = await start(1, 2);
  const [other] = others as [EngineProcess];
  other.run("b0");
  await other.until({ granted: "b0" });
  holder.run("a0");
  await aWhile();
  expect(holder.granted).toEqual([]);
  await other.kill();
  await holder.until({ granted: "a0" });
});

test("a process that grants and is stopped holds nobody up for ever, and is asked again when it goes on", async () => {
  const { holder, others } = await start(1, 3, { silenceMs });
  const [first, second] = others as [EngineProcess, EngineProcess];
  holder.run("a0");
  await holder.until({ granted: "a0" });
  first.run("b0");
  first.run("b1");
  await aWhile();
  expect(first.granted).toEqual([]);
  holder.signal("SIGSTOP");
  await first.until({ role: "alone", reason: "silent" });
  await first.until({ granted: "b0" });
  await aWhile();
  // It keeps the limit for itself.
  expect(first.granted).toEqual(["b0"]);
  // Who has asked for nothing yet finds out when it does.
  second.run("c0");
  await second.until({ role: "alone", reason: "silent" });
  await second.until({ granted: "c0" });
  const [from, fromSecond] = [first.said.length, second.said.length];
  holder.signal("SIGCONT");
  await first.until({ role: "asks" }, from);
  await second.until({ role: "asks" }, fromSecond);
  await first.end("b0");
  await second.end("c0");
  await aWhile();
  expect(first.granted).toEqual(["b0"]);
  await holder.end("a0");
  await first.until({ granted: "b1" });
});

test("a process that grants, is stopped and then killed is replaced by one of those that went on alone", async () => {
  const { holder, others } = await start(1, 2, { silenceMs });
  const [other] = others as [EngineProcess];
  holder.run("a0");
  await holder.until({ granted: "a0" });
  holder.signal("SIGSTOP");
  other.run("b0");
  await other.until({ granted: "b0" });
  await holder.kill();
  await other.until({ role: "grants" });
});

test("a stopped process that has what others wait for is let go of, and asks again when it goes on", async () => {
  const { holder, others } = await start(1, 3, { silenceMs });
  const [first, second] = others as [EngineProcess, EngineProcess];
  first.run("b0");
  await first.until({ granted: "b0" });
  first.signal("SIGSTOP");
  second.run("c0");
  await second.until({ granted: "c0" });
  const from = first.said.length;
  first.signal("SIGCONT");
  await first.until({ role: "asks" }, from);
  await second.end("c0");
  // What it still does counts again.
  holder.run("a0");
  await aWhile();
  expect(holder.granted).toEqual([]);
  await first.end("b0");
  await holder.until({ granted: "a0" });
});

test("a restore waits for nobody, also when the process that grants is stopped", async () => {
  const { holder, others } = await start(1, 2, { silenceMs });
  const [other] = others as [EngineProcess];
  holder.run("a0");
  await holder.until({ granted: "a0" });
  holder.signal("SIGSTOP");
  other.run("b0", { kind: "restore" });
  await other.until({ granted: "b0" });
  expect(other.said.map(({ role }) => role)).not.toContain("alone");
});
