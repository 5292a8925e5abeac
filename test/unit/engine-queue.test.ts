// Who comes next in the engine's queue, without processes.
import { expect, test } from "vitest";
import type { JobKind, Place, Ticket } from "../../src/coordinator/engine/engine.ts";
import { Queue } from "../../src/coordinator/engine/queue.ts";

interface Asked extends Place {
  readonly name: string;
}

function makeQueue(perDevice: number, all = 100) {
  const queue = new Queue({ capture: { perDevice, all }, persist: { perDevice, all } });
  /** In the order in which they were granted. */
  const granted: string[] = [];
  const ask = (name: string, ticket: Partial<Ticket> = {}): Asked => {
    const given = { kind: "capture", environment: name[0] as string, device: "d", promoted: false, running: false };
    const place = queue.ask({ ...given, ...ticket } as Ticket, () => granted.push(name));
    return { name, ...place };
  };
  /** Ends what was granted and has not ended, one after the other. */
  const drain = (asked: readonly Asked[]): void => {
    for (let n = 0; n < granted.length; n++) asked.find(({ name }) => name === granted[n])?.end();
  };
  return { queue, granted, ask, drain };
}

test("as many run at once as the limit says, on each device", () => {
  const { queue, granted, ask } = makeQueue(2);
  const first = ask("a1");
  ask("b1");
  ask("c1");
  ask("d1", { device: "other" });
  expect(granted).toEqual(["a1", "b1", "d1"]);
  expect(queue.waiting).toBe(1);
  first.end();
  first.end();
  expect(granted).toEqual(["a1", "b1", "d1", "c1"]);
  expect(queue.waiting).toBe(0);
  ask("e1");
  expect(granted).not.toContain("e1");
});

test("as many run at once as the limit says, on all devices together and for each kind of work", () => {
  const { granted, ask } = makeQueue(2, 3);
  const asked = ["a1", "b1", "c1", "d1"].map((name, n) => ask(name, { device: `d${n}` }));
  expect(granted).toEqual(["a1", "b1", "c1"]);
  ask("p1", { kind: "persist" });
  expect(granted).toEqual(["a1", "b1", "c1", "p1"]);
  asked[1]?.end();
  expect(granted.at(-1)).toBe("d1");
});

test("what is behind a device that is busy waits for that device only", () => {
  const { granted, ask } = makeQueue(1);
  ask("a1");
  ask("a2");
  ask("a3", { device: "other" });
  expect(granted).toEqual(["a1", "a3"]);
});

test("what somebody waits for comes first, also when that begins later", () => {
  const { granted, ask, drain } = makeQueue(1);
  const asked = ["a1", "b1", "c1", "d1"].map((name) => ask(name));
  asked.push(ask("e1", { promoted: true }));
  asked[3]?.promote();
  asked[3]?.promote();
  drain(asked);
  expect(granted).toEqual(["a1", "e1", "d1", "b1", "c1"]);
});

test.each([false, true])("environments take turns (promoted: %s)", (promoted) => {
  const { granted, ask, drain } = makeQueue(1);
  const names = ["a1", "a2", "a3", "a4", "a5", "b1", "b2", "c1"];
  drain(names.map((name) => ask(name, { promoted })));
  expect(granted).toEqual(["a1", "a2", "b1", "c1", "a3", "b2", "a4", "a5"]);
});

test("one that asks again and again starves nobody", () => {
  const { granted, ask } = makeQueue(1);
  let running = ask("a0");
  ask("b1");
  for (let n = 1; n < 50 && !granted.includes("b1"); n++) {
    const next = ask(`a${n}`);
    running.end();
    running = next;
  }
  expect(granted.length).toBeLessThanOrEqual(3);
});

test("what is given up is not granted and frees nothing", () => {
  const { queue, granted, ask } = makeQueue(1);
  const first = ask("a1");
  const given = ask("b1");
  ask("c1");
  given.end();
  expect(granted).toEqual(["a1"]);
  given.promote();
  first.end();
  expect(granted).toEqual(["a1", "c1"]);
  expect(queue.waiting).toBe(0);
});

test("a restore never waits, and counts while it runs", () => {
  const { granted, ask } = makeQueue(1);
  const capture = ask("a1");
  const restore = ask("b1", { kind: "restore" });
  expect(granted).toEqual(["a1", "b1"]);
  ask("c1");
  capture.end();
  expect(granted).not.toContain("c1");
  restore.end();
  expect(granted).toContain("c1");
});

test("what runs already is counted and not granted again", () => {
  const { granted, ask } = makeQueue(1);
  const running = ask("a1", { running: true });
  ask("b1");
  expect(granted).toEqual([]);
  running.end();
  expect(granted).toEqual(["b1"]);
});

test("what makes durable and waits for one device goes together, as one", () => {
  const { granted, ask } = makeQueue(1);
  const kind: JobKind = "persist";
  const first = ask("a1", { kind });
  const pass = ["b1", "c1", "b2"].map((name) => ask(name, { kind }));
  ask("d1", { kind, device: "other" });
  expect(granted).toEqual(["a1", "d1"]);
  first.end();
  expect(granted.slice(2).sort()).toEqual(["b1", "b2", "c1"]);
  ask("e1", { kind });
  for (const one of pass.slice(1)) one.end();
  expect(granted).not.toContain("e1");
  pass[0]?.end();
  expect(granted).toContain("e1");
});

test("no more go together than are bounded", () => {
  const { queue, ask } = makeQueue(1);
  const kind: JobKind = "persist";
  const first = ask("a1", { kind });
  for (let n = 0; n < 100; n++) ask(`b${n}`, { kind, environment: `b${n}` });
  first.end();
  expect(queue.waiting).toBe(100 - 32);
});
