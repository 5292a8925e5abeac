// Invariants 1 to 9 of the design: the pair, the rewind, the epoch, and where the framework stands.
import * as fs from "node:fs";
import { join } from "node:path";
import { setImmediate as tick } from "node:timers/promises";
import type { Boundary, Serializer } from "agentrewind";
import { describe, expect, test } from "vitest";
import { runSteps } from "../helpers/steps.ts";
import { codeOf, endSession, makePlace, useRewind } from "../helpers/workspace.ts";
import { context, did, digest, read, remove, rows, sh, turn, twoTurns, write } from "./scene.ts";

const m = (anchor: string, tool = false): Boundary => ({ anchor, tool });

describe("invariant 1: no half pair is ever listed", () => {
  test("F-16: a reader beside the writer sees a checkpoint only when both halves are stored", async () => {
    const place = makePlace();
    const thread = (await useRewind(place)).thread("t");
    await thread.checkpoint({ context: context("start") });
    let polls = 0;
    for (let round = 1; round <= 5; round++) {
      for (let file = 0; file < 100; file++) write(place, `d${round}/${file}`, `${round}/${file}`);
      const begun = await thread.beginTurn(context("start", `m${round}`));
      expect(thread.checkpoints().length, "not listed before it is captured").toBe(round);
      let settled = false;
      const gate = begun.gate().finally(() => {
        settled = true;
      });
      while (!settled) {
        const listed = rows(
          place.store,
          `SELECT hex(c.hash) AS context, hex(f.hash) AS files FROM checkpoint p JOIN manifest m ON m.id = p.manifest
           LEFT JOIN object c ON lower(hex(c.hash)) = p.context LEFT JOIN object f ON lower(hex(f.hash)) = m.files`,
        );
        for (const row of listed) expect([row.context, row.files]).not.toContain("");
        polls++;
        await tick();
      }
      await gate;
      expect(thread.checkpoints().length).toBe(round + 1);
    }
    expect(polls).toBeGreaterThan(5);
  });

  test("killed before the transaction, nothing of the pair is listed", async () => {
    const place = makePlace();
    write(place, "a.txt", "1");
    const ran = runSteps({ ...place, env: { AGENTREWIND_FAULT: "checkpoint.before-commit:2" } }, [
      { op: "open" },
      { op: "turn", context: context("m0"), durable: true },
      { op: "turn", context: context("m0", "m1") },
    ]);
    expect(ran.signal).toBe("SIGKILL");
    const thread = (await useRewind(place)).thread("t");
    expect(thread.checkpoints({ all: true }).map((one) => one.id)).toEqual(["c0"]);
    const next = await thread.checkpoint({ context: context("m0", "m1") });
    expect(next.id, "F-17: its number is not given again").toBe("c2");
  });
});

test("invariant 2: a killed rewind is finished or undone, never a mix", async () => {
  for (const [point, head] of [
    ["rewind.safety", "c1"],
    ["rewind.intent", "c0"],
    ["restore.placed-one", "c0"],
    ["rewind.committed", "c0"],
  ] as const) {
    const place = makePlace();
    const first = await useRewind(place);
    const { v0, v1 } = await twoTurns(first.thread("t"), place);
    await endSession(first);
    const ran = runSteps({ ...place, env: { AGENTREWIND_FAULT: point } }, [{ op: "open" }, { op: "rewind", to: "c0" }]);
    expect(ran.signal, point).toBe("SIGKILL");
    const rewind = await useRewind(place);
    const thread = rewind.thread("t");
    expect(thread.head, point).toBe(head);
    expect(digest(place), point).toEqual(head === "c0" ? v0 : v1);
    expect((await thread.context(head)).messages, point).toEqual(head === "c0" ? ["m0"] : ["m0", "m1"]);
    await endSession(rewind);
  }
});

test("invariant 3: the state that is left is captured first, unless it is the head's", async () => {
  const place = makePlace();
  const thread = (await useRewind(place)).thread("t");
  await twoTurns(thread, place);
  const unchanged = await thread.rewind({ to: "c0" });
  expect(unchanged.left?.id).toBe("c1");
  expect(thread.checkpoints({ all: true }).length).toBe(2);
  await thread.rewind({ to: "c1" });

  write(place, "unsaved.txt", "never captured");
  const v2 = digest(place);
  const changed = await thread.rewind({ to: "c0", current: context("m0", "m1", "half a thought") });
  expect(changed.left).toMatchObject({ kind: "safety", state: "durable", parent: "c1" });
  const back = await thread.rewind({ to: changed.left?.id as string });
  expect(digest(place)).toEqual(v2);
  expect(back.context.messages).toEqual(["m0", "m1", "half a thought"]);
});

describe("invariant 4: unknown means changed", () => {
  test("a file with its old size and time is still seen as changed", async () => {
    const place = makePlace();
    const thread = (await useRewind(place)).thread("t");
    write(place, "a.txt", "one");
    sh(place.workspace, "touch -d '2020-01-01' a.txt");
    await thread.checkpoint();
    sh(place.workspace, "printf two > a.txt; touch -d '2020-01-01' a.txt");
    expect((await thread.checkpoint()).changes?.changed).toEqual(["a.txt"]);
    await thread.rewind({ to: "c0" });
    expect(read(place, "a.txt")).toBe("one");
  });

  for (const [what, damage] of [
    ["lost", (file: string) => fs.rmSync(file)],
    ["not readable", (file: string) => fs.writeFileSync(file, "{ not json")],
  ] as const) {
    test(`a stat cache that is ${what} costs no change`, async () => {
      const place = makePlace();
      const first = await useRewind(place);
      write(place, "a.txt", "one");
      write(place, "b.txt", "same");
      await first.thread("t").checkpoint();
      await endSession(first);
      const cache = join(place.store, "cache");
      const files = fs.readdirSync(cache);
      expect(files.length).toBe(1);
      for (const file of files) damage(join(cache, file));
      write(place, "a.txt", "two");
      const thread = (await useRewind(place)).thread("t");
      expect((await thread.checkpoint()).changes).toMatchObject({ changed: ["a.txt"], added: [], removed: [] });
    });
  }
});

describe("invariant 5: what was issued before a rewind is never delivered after it", () => {
  test("F-19: the gate of a turn that a rewind overtook is refused", async () => {
    const place = makePlace();
    const thread = (await useRewind(place)).thread("t");
    const { v0 } = await twoTurns(thread, place);
    const begun = await thread.beginTurn(context("m0", "m1", "m2"), { anchor: "m2" });
    await begun.durable;
    await thread.rewind({ to: "c0", delivery: "returned" });
    expect(await codeOf(begun.gate())).toBe("STALE_EPOCH");
    expect(thread.head).toBe("c0");
    expect(digest(place)).toEqual(v0);
  });

  test("F-19: a pair that would be published after the rewind is refused by the store, and nothing is listed", async () => {
    const place = makePlace();
    const thread = (await useRewind(place)).thread("t");
    await twoTurns(thread, place);
    const rewound = thread.rewind({ to: "c0", delivery: "returned" });
    const stale = await thread.beginTurn(context("m0", "m1", "stale"), { anchor: "stale" });
    const explicit = codeOf(thread.checkpoint({ context: context("stale too") }));
    expect(await codeOf(stale.gate())).toBe("STALE_EPOCH");
    expect(await codeOf(stale.durable)).toBe("STALE_EPOCH");
    expect(await explicit).toBe("STALE_EPOCH");
    await rewound;
    expect(thread.checkpoints({ all: true }).map((one) => one.id)).toEqual(["c0", "c1"]);
    expect(thread.head).toBe("c0");
    expect((await turn(thread, context("m0", "again"), {})).id, "F-17").toBe("c4");
  });

  test("a context that was read in an older epoch begins no turn", async () => {
    const place = makePlace();
    const thread = (await useRewind(place)).thread("t");
    await twoTurns(thread, place);
    const { epoch } = thread;
    await thread.rewind({ to: "c0", delivery: "returned" });
    expect(thread.epoch).toBe(epoch + 1);
    expect(await codeOf(thread.beginTurn(context("m0", "m1", "m2"), { epoch }))).toBe("STALE_EPOCH");
    expect(thread.checkpoints({ all: true }).length).toBe(2);
  });
});

test("invariant 6, F-15: the restored prefix is the stored bytes, and nothing is made anew", async () => {
  let encoded = 0;
  const bytesSerializer: Serializer = {
    name: "bytes@1",
    encode(item) {
      encoded++;
      return item as Uint8Array;
    },
    decode: (bytes) => Buffer.from(bytes),
  };
  const place = makePlace();
  const messages = Array.from({ length: 700 }, (_, index) =>
    Buffer.from([index % 256, 0, 255, 0xc3, 0x28, ...Buffer.from(` ${index}\r\n`)]),
  );
  const channels = { "päth\n": Buffer.from([0, 1, 2]), empty: Buffer.alloc(0) };
  const first = await useRewind(place);
  const writer = first.thread("t", { serializer: bytesSerializer });
  await writer.checkpoint({ context: { messages, channels } });
  write(place, "a.txt", "1");
  await writer.checkpoint({ context: { messages: [...messages, Buffer.from("more")] } });
  await endSession(first);

  encoded = 0;
  const thread = (await useRewind(place)).thread("t", { serializer: bytesSerializer });
  const result = await thread.rewind({ to: "c0" });
  expect(result.context.messages).toEqual(messages);
  expect(result.context.channels).toEqual(channels);
  expect(encoded).toBe(0);
});

test("invariant 7: lessons outlive the rewind, a rewind to before them, and undo", async () => {
  const place = makePlace();
  const first = await useRewind(place);
  await twoTurns(first.thread("t"), place);
  await first.thread("t").rewind({ to: "c1", lesson: "the first" });
  await first.thread("t").rewind({ to: "c0", lesson: "the second" });
  const undone = await first.thread("t").undo();
  expect(undone.lessons.map((one) => one.text)).toEqual(["the second", "the first"]);
  await endSession(first);
  const thread = (await useRewind(place)).thread("t");
  expect(thread.lessons().map((one) => one.text)).toEqual(["the second", "the first"]);
  expect((await thread.rewind({ to: "c0" })).message).toContain("1. the second\n2. the first");
});

test("invariant 8, F-3: the store lies outside the workspace and outlives what an agent deletes there", async () => {
  const place = makePlace();
  for (const [workspace, store] of [
    [place.workspace, join(place.workspace, ".store")],
    [join(place.store, "inside"), place.store],
  ] as const) {
    fs.mkdirSync(workspace, { recursive: true });
    expect(await codeOf(useRewind(place, { workspace, store }))).toBe("STORE_INSIDE_WORKSPACE");
  }
  const thread = (await useRewind(place)).thread("t");
  const { v1 } = await twoTurns(thread, place);
  sh(place.workspace, "rm -rf -- * .[!.]*");
  await thread.rewind({ to: "c1" });
  expect(digest(place)).toEqual(v1);
});

describe("invariant 9: the framework's own state decides the context", () => {
  test("a conversation that is not known is new, one at the head is current", async () => {
    const place = makePlace();
    const thread = (await useRewind(place)).thread("t");
    expect(await thread.align([m("m0")])).toMatchObject({ status: "new" });
    const { v1 } = await twoTurns(thread, place);
    expect(await thread.align([m("other", true)])).toMatchObject({ status: "new" });
    expect(await thread.align([m("m1"), m("m0")])).toMatchObject({ status: "current", checkpoint: "c1" });
    expect(await thread.align([m("tool result", true), m("m1"), m("m0")])).toMatchObject({ status: "current" });
    expect(digest(place)).toEqual(v1);
    expect(thread.epoch).toBe(0);
  });

  test("the environment is brought to the context, and what is left stays reachable", async () => {
    const place = makePlace();
    const thread = (await useRewind(place)).thread("t");
    const { v0, v1 } = await twoTurns(thread, place);
    expect(await thread.align([m("edited"), m("m0")])).toMatchObject({ status: "moved", checkpoint: "c0" });
    expect(digest(place)).toEqual(v0);
    expect(thread.head).toBe("c0");
    await thread.rewind({ to: "c1" });
    expect(digest(place)).toEqual(v1);
  });

  test("where it cannot be brought there, PAIR_DIVERGED names both candidates", async () => {
    const place = makePlace();
    const thread = (await useRewind(place)).thread("t");
    const { v1 } = await twoTurns(thread, place);
    const boundaries = [m("tool result", true), m("m0")];
    const expected = { code: "PAIR_DIVERGED", details: { conversation: "c0", environment: "c1" } };
    await expect(thread.align(boundaries)).rejects.toMatchObject(expected);
    await expect(thread.enterTool(boundaries)).rejects.toMatchObject(expected);
    await expect(thread.align(boundaries)).rejects.toThrow(/c0.*c1/);
    expect(thread.head).toBe("c1");
    expect(digest(place)).toEqual(v1);
  });

  test("a rewind from outside is delivered until the framework shows it, and tools do not run before", async () => {
    const place = makePlace();
    const thread = (await useRewind(place)).thread("t");
    await twoTurns(thread, place);
    const old = [m("m1"), m("m0")];
    const leave = await thread.enterTool(old);
    expect(leave).toBeTypeOf("function");
    leave?.();
    const result = await thread.rewind({ to: "c0", lesson: "from outside" });
    for (let time = 0; time < 2; time++) {
      const given = await thread.align(old);
      expect(given).toMatchObject({ status: "deliver", epoch: result.epoch });
      expect(given.status === "deliver" && given.results.map((one) => one.message)).toEqual([result.message]);
      expect(await thread.enterTool(old)).toBeUndefined();
    }
    const shown = [{ anchor: "message", tool: false, returnedTo: "c0" }, m("m0")];
    expect(await thread.align(shown)).toMatchObject({ status: "current", checkpoint: "c0" });
    expect(thread.lessons().length).toBe(1);
  });

  test("a keyed rewind run again is a no-op: no second lesson, budget unit or safety checkpoint", async () => {
    const place = makePlace();
    const options = { gate: "durable", budget: { rewinds: 2 } } as const;
    const first = await useRewind(place, options);
    const { v0 } = await twoTurns(first.thread("t"), place);
    write(place, "unsaved.txt", "x");
    const request = { to: "c0", lesson: "once", by: "agent", key: "call-1", delivery: "returned" } as const;
    const result = await first.thread("t").rewind(request);
    const listed = first.thread("t").checkpoints({ all: true });
    expect(listed.length, "with a safety checkpoint").toBe(3);
    expect(await first.thread("t").rewind(request)).toEqual(result);
    await endSession(first);

    const thread = (await useRewind(place, options)).thread("t");
    expect(await thread.rewind(request)).toEqual(result);
    expect(await thread.rewind({ ...request, to: "c1", lesson: "other words" })).toEqual(result);
    expect(thread.checkpoints({ all: true })).toEqual(listed);
    expect(thread.lessons().map((one) => one.text)).toEqual(["once"]);
    expect(digest(place)).toEqual(v0);
    expect(rows(place.store, "SELECT id FROM rewind").length).toBe(1);

    remove(place, "a.txt");
    await turn(thread, context("m0", "more"), { activity: did("shell", "rm a.txt"), tools: () => {} });
    await thread.rewind({ ...request, key: "call-2", lesson: "second" });
    await turn(thread, context("m0", "more"), { activity: did("shell", "rm b.txt"), tools: () => {} });
    expect(await codeOf(thread.rewind({ ...request, key: "call-3", lesson: "third" }))).toBe("BUDGET_SPENT");
  });
});
