// Rules of rewinding: shared environments, external changes, budgets, lessons, undo, dry runs and scopes.
import { type RewindError, refusalText } from "agentrewind";
import { describe, expect, test } from "vitest";
import { codeOf, makePlace, useRewind } from "../helpers/workspace.ts";
import { catalogRows, context, did, digest, has, read, turn, twoTurns, write } from "./scene.ts";

const lessonsOf = (message: string): string[] =>
  message.split("\n").flatMap((line) => /^\d+\. (.*)$/.exec(line)?.slice(1) ?? []);

describe("two threads in one workspace", () => {
  test("SHARED_ENVIRONMENT: a rewind over another thread's turns is refused and names it; the context alone may go back", async () => {
    const place = makePlace();
    const rewind = await useRewind(place);
    const [alice, bob] = [rewind.thread("alice"), rewind.thread("bob")];
    write(place, "a.txt", "v0");
    await turn(alice, context("a0"), { tools: () => write(place, "a.txt", "alice's") });
    await turn(bob, context("b0"), { tools: () => write(place, "b.txt", "bob's") });
    await turn(alice, context("a0", "a1"), { tools: () => {} });
    const before = digest(place);
    const refusal = { code: "SHARED_ENVIRONMENT", details: { threads: ["bob"], checkpoints: ["bob/c0"] } };
    await expect(alice.rewind({ to: "c0" })).rejects.toMatchObject(refusal);
    await expect(alice.rewind({ to: "c0", scope: "environment" })).rejects.toThrow('"bob"');
    const refused = alice.admissible("c0", "lesson") as RewindError;
    expect(refused).toMatchObject(refusal);
    expect(refusalText(refused), "a model can do what it is told").toMatch(/can return to is c1\.$/);
    await expect(bob.rewind({ to: "c0" })).rejects.toMatchObject({ details: { threads: ["alice"] } });
    expect(digest(place)).toEqual(before);
    expect([alice.head, bob.head]).toEqual(["c1", "c0"]);

    const result = await alice.rewind({ to: "c0", scope: "context" });
    expect(result.context.messages).toEqual(["a0"]);
    expect(digest(place)).toEqual(before);
  });

  test("case 23: a rewind of one's own turns leaves the other thread's work", async () => {
    const place = makePlace();
    const rewind = await useRewind(place);
    await turn(rewind.thread("alice"), context("a0"), { tools: () => write(place, "a.txt", "alice's") });
    const bob = rewind.thread("bob");
    await turn(bob, context("b0"), { tools: () => write(place, "b.txt", "bob's") });
    await turn(bob, context("b0", "b1"), { tools: () => {} });
    await bob.rewind({ to: "c0" });
    expect(read(place, "a.txt")).toBe("alice's");
    expect(has(place, "b.txt")).toBe(false);
    expect(rewind.thread("alice").head).toBe("c0");
  });
});

describe("external changes", () => {
  /** c0: the agent edits a.txt and makes b.txt; c1: somebody makes out/data.jsonl while the model thinks. */
  async function withOutsider() {
    const place = makePlace();
    const thread = (await useRewind(place)).thread("t");
    write(place, "a.txt", "v0");
    write(place, "early.txt", "there before");
    const v0 = digest(place);
    await turn(thread, context("m0"), {
      tools: () => {
        write(place, "a.txt", "agent's");
        write(place, "b.txt", "agent's");
      },
    });
    const outsider = (): void => write(place, "out/data.jsonl", "somebody's\n");
    await turn(thread, context("m0", "m1"), { meanwhile: outsider, tools: () => {} });
    return { place, thread, v0, v1: digest(place) };
  }

  test("cases 10 and 18, keep: what somebody else made stays, what the agent made goes", async () => {
    const { place, thread } = await withOutsider();
    const result = await thread.rewind({ to: "c0", by: "agent", lesson: "no", external: "keep" });
    expect(result.external).toEqual(["out", "out/data.jsonl"]);
    expect(result.conflicts).toEqual([]);
    expect(result.message).toContain("Kept, because somebody else changed them: out, out/data.jsonl.");
    expect([read(place, "out/data.jsonl"), read(place, "early.txt")]).toEqual(["somebody's\n", "there before"]);
    expect([read(place, "a.txt"), has(place, "b.txt")]).toEqual(["v0", false]);
  });

  test("case 10, restore: by default a caller's rewind is exact, names them, and undo brings them back exactly", async () => {
    const { place, thread, v0, v1 } = await withOutsider();
    const planned = await thread.rewind({ to: "c0", dryRun: true });
    const result = await thread.rewind({ to: "c0" });
    expect(digest(place)).toEqual(v0);
    expect([planned.external, result.external]).toEqual(Array(2).fill(["out", "out/data.jsonl"]));
    await thread.undo();
    expect(digest(place)).toEqual(v1);
  });

  test("case 13: a file that the agent only failed to read, and a person added, stays", async () => {
    const place = makePlace();
    const thread = (await useRewind(place)).thread("t");
    await turn(thread, context("m0"), { tools: () => expect(has(place, "data.csv")).toBe(false) });
    await turn(thread, context("m0", "m1"), { activity: did("read", "data.csv") });
    write(place, "data.csv", "a person's");
    await turn(thread, context("m0", "m1", "m2"), { tools: () => {} });
    const result = await thread.rewind({ to: "c0", by: "agent", lesson: "ask first", external: "keep" });
    expect(result.external).toEqual(["data.csv"]);
    expect(read(place, "data.csv")).toBe("a person's");
  });

  test("case 27: a file of both goes back, is named a conflict, and its newer version is in `left` and behind undo", async () => {
    const place = makePlace();
    const thread = (await useRewind(place)).thread("t");
    write(place, "e.txt", "line 1\n");
    await turn(thread, context("m0"), { tools: () => write(place, "e.txt", "line 1\nx\n") });
    await turn(thread, context("m0", "m1"));
    write(place, "e.txt", "a person's line\nx\n");
    const newest = digest(place);
    const result = await thread.rewind({ to: "c0", by: "agent", lesson: "no", external: "keep" });
    expect(result).toMatchObject({ conflicts: ["e.txt"], external: [] });
    expect(result.message).toContain("Changed by you and by somebody else, taken back to c0: e.txt.");
    expect(read(place, "e.txt")).toBe("line 1\n");
    await thread.undo();
    expect(digest(place)).toEqual(newest);
    await thread.rewind({ to: "c0" });
    await thread.rewind({ to: result.left?.id as string });
    expect(digest(place)).toEqual(newest);
  });

  test("case 28: a rewind over a hand edit is undone exactly, the chat too", async () => {
    const place = makePlace();
    const thread = (await useRewind(place)).thread("t");
    const { v0 } = await twoTurns(thread, place);
    write(place, "a.txt", "v3 by hand");
    const v3 = digest(place);
    await thread.rewind({ to: "c0" });
    expect(digest(place)).toEqual(v0);
    const redone = await thread.undo();
    expect(digest(place)).toEqual(v3);
    expect(redone.context.messages).toEqual(["m0", "m1"]);
  });
});

describe("what the agent may not do", () => {
  const own = { by: "agent", delivery: "returned" } as const;

  test("BUDGET_SPENT: rewinds of the thread; a caller's do not count", async () => {
    const place = makePlace();
    const thread = (await useRewind(place, { budget: { rewinds: 2, perCheckpoint: 9 } })).thread("t");
    const work = async (): Promise<unknown> =>
      turn(thread, context("m0", "more"), { activity: did("shell", "make"), tools: () => {} });
    await twoTurns(thread, place);
    await thread.rewind({ to: "c0", delivery: "returned" });
    for (const lesson of ["one", "two"]) {
      await work();
      await thread.rewind({ ...own, to: "c0", lesson });
    }
    await work();
    expect(thread.admissible("c0", "three")?.code).toBe("BUDGET_SPENT");
    expect(await codeOf(thread.rewind({ ...own, to: "c0", lesson: "three" }))).toBe("BUDGET_SPENT");
    expect(thread.lessons().map((one) => one.text)).toEqual(["two", "one"]);
    await thread.rewind({ to: "c0" });
    expect(thread.head).toBe("c0");
  });

  test("BUDGET_SPENT: perCheckpoint counts the same moment, also under a new id", async () => {
    const place = makePlace();
    const thread = (await useRewind(place, { budget: { perCheckpoint: 2 } })).thread("t");
    write(place, "a.txt", "0");
    await turn(thread, context("first"), { tools: () => write(place, "a.txt", "1") });
    let at = await turn(thread, context("m"), {
      activity: did("shell", "make"),
      tools: () => write(place, "a.txt", "x"),
    });
    for (const lesson of ["one", "two"]) {
      await turn(thread, context("m", lesson), { activity: did("shell", lesson), tools: () => {} });
      await thread.rewind({ ...own, to: at.id, lesson });
      at = await turn(thread, context("m", `after ${lesson}`), { tools: () => write(place, "a.txt", lesson) });
    }
    expect(at.id).not.toBe("c1");
    await turn(thread, context("m", "three"), { activity: did("shell", "three"), tools: () => {} });
    for (const to of ["c1", at.id]) {
      expect(await codeOf(thread.rewind({ ...own, to, lesson: "three" })), to).toBe("BUDGET_SPENT");
    }
    await thread.rewind({ ...own, to: "c0", lesson: "farther back" });
    expect(read(place, "a.txt")).toBe("0");
  });

  test("NOTHING_TO_REWIND: to where it already is, also when only our own tools ran since", async () => {
    const place = makePlace();
    const thread = (await useRewind(place)).thread("t");
    await twoTurns(thread, place);
    expect(await codeOf(thread.rewind({ ...own, to: "c1", lesson: "x" }))).toBe("NOTHING_TO_REWIND");
    await turn(thread, context("m0", "m1", "list"), { activity: did("list_checkpoints"), tools: () => {} });
    expect(await codeOf(thread.rewind({ ...own, to: "c1", lesson: "x" }))).toBe("NOTHING_TO_REWIND");
    expect(thread.lessons()).toEqual([]);
    await thread.rewind({ ...own, to: "c0", lesson: "x" });
  });

  test("LESSON_EMPTY: the agent must give one, and blanks are none", async () => {
    const place = makePlace();
    const thread = (await useRewind(place)).thread("t");
    const { v1 } = await twoTurns(thread, place);
    expect(await codeOf(thread.rewind({ ...own, to: "c0" }))).toBe("LESSON_EMPTY");
    expect(await codeOf(thread.rewind({ ...own, to: "c0", lesson: " \n" }))).toBe("LESSON_EMPTY");
    expect(await codeOf(thread.rewind({ to: "c0", lesson: " " }))).toBe("LESSON_EMPTY");
    expect(thread.admissible("c0", "")?.code).toBe("LESSON_EMPTY");
    expect(digest(place)).toEqual(v1);
    expect(thread.head).toBe("c1");
  });
});

describe("lessons", () => {
  test("secrets are masked and the length is bounded, in the store and in the message", async () => {
    const place = makePlace();
    const thread = (await useRewind(place)).thread("t");
    await twoTurns(thread, place);
    const secret = "sk-abcdefghijklmnopqrstuvwxyz";
    const result = await thread.rewind({ to: "c0", lesson: `used ${secret} and it failed; ${"long ".repeat(1000)}` });
    const [lesson] = thread.lessons();
    expect(lesson?.text).toMatch(/^used \[masked\] and it failed; long .*…$/);
    expect(lesson?.text.length).toBeLessThanOrEqual(2000);
    expect(lessonsOf(result.message)).toEqual([lesson?.text]);
    expect(JSON.stringify(catalogRows(place.store))).not.toContain(secret);
  });

  test("all of them in one message are bounded, and what is left out is counted", async () => {
    const place = makePlace();
    const thread = (await useRewind(place)).thread("t");
    await twoTurns(thread, place);
    let message = "";
    for (let n = 0; n < 6; n++) ({ message } = await thread.rewind({ to: "c0", lesson: `${n} ${"w".repeat(1990)}` }));
    expect(lessonsOf(message).map((text) => text[0])).toEqual(["5", "4", "3", "2"]);
    expect(message).toContain("(2 older ones are not shown)");
  });

  test("are told newest first and once: neither twice in a message nor again in a context that holds them", async () => {
    const place = makePlace();
    const thread = (await useRewind(place)).thread("t");
    await twoTurns(thread, place);
    const to = (id: string, lesson: string) => thread.rewind({ to: id, lesson, delivery: "returned" });
    expect(lessonsOf((await to("c0", "first")).message)).toEqual(["first"]);
    const holds = await turn(thread, context("m0", "told first"), { tools: () => write(place, "a.txt", "again") });
    expect(lessonsOf((await to(holds.id, "second")).message)).toEqual(["second"]);
    expect(lessonsOf((await to("c0", "third")).message)).toEqual(["third", "second", "first"]);
    expect(lessonsOf((await to("c0", "first")).message)).toEqual(["first", "third", "second"]);
  });
});

describe("undo", () => {
  test("takes back the last rewind, then the one before it, then there is none", async () => {
    const place = makePlace();
    const thread = (await useRewind(place)).thread("t");
    const { v0, v1 } = await twoTurns(thread, place);
    write(place, "a.txt", "v2");
    const v2 = digest(place);
    await thread.rewind({ to: "c1" });
    expect(digest(place)).toEqual(v1);
    await thread.rewind({ to: "c0" });
    expect(digest(place)).toEqual(v0);
    expect((await thread.undo()).checkpoint.id).toBe("c1");
    expect(digest(place)).toEqual(v1);
    expect((await thread.undo()).checkpoint).toMatchObject({ id: "c2", kind: "safety" });
    expect(digest(place)).toEqual(v2);
    expect(await codeOf(thread.undo())).toBe("NOTHING_TO_UNDO");
    expect(digest(place)).toEqual(v2);
  });

  test("keeps what was done after the rewind reachable", async () => {
    const place = makePlace();
    const thread = (await useRewind(place)).thread("t");
    const { v1 } = await twoTurns(thread, place);
    await thread.rewind({ to: "c0" });
    write(place, "since.txt", "after the rewind");
    const since = digest(place);
    const undone = await thread.undo();
    expect(digest(place)).toEqual(v1);
    await thread.rewind({ to: undone.left?.id as string });
    expect(digest(place)).toEqual(since);
  });
});

test("a dry run changes nothing, neither files nor list nor the store's rows, and tells what the rewind then does", async () => {
  const place = makePlace();
  const thread = (await useRewind(place, { gate: "durable" })).thread("t");
  await twoTurns(thread, place);
  write(place, "unsaved.txt", "x");
  const look = () => [digest(place), thread.listText(), thread.checkpoints({ all: true }), catalogRows(place.store)];
  const before = look();
  const planned = await thread.rewind({ to: "c0", lesson: "planned", dryRun: true });
  expect(look()).toEqual(before);
  expect(planned).toMatchObject({ left: null, lessons: [], checkpoint: { id: "c0" }, epoch: thread.epoch });
  const done = await thread.rewind({ to: "c0", lesson: "planned" });
  expect(done.restored).toEqual(planned.restored);
  expect(done.context).toEqual(planned.context);
});

describe("scope", () => {
  test("environment: the files go back, the conversation stays and is told so", async () => {
    const place = makePlace();
    const thread = (await useRewind(place)).thread("t");
    const { v0, v1 } = await twoTurns(thread, place);
    const result = await thread.rewind({ to: "c0", scope: "environment" });
    expect(digest(place)).toEqual(v0);
    expect(thread.head).toBe("c1");
    expect(result.context.messages).toEqual(["m0", "m1"]);
    expect(result.message).toMatch(/^The files are back at c0/);
    expect(result.message).toContain("Only the files were taken back");
    await thread.undo();
    expect(digest(place)).toEqual(v1);
    expect(thread.head).toBe("c1");
  });

  test("context: the conversation goes back, the files stay and are told so", async () => {
    const place = makePlace();
    const thread = (await useRewind(place)).thread("t");
    const { v1 } = await twoTurns(thread, place);
    const result = await thread.rewind({ to: "c0", scope: "context" });
    expect(digest(place)).toEqual(v1);
    expect(thread.head).toBe("c0");
    expect(result.context.messages).toEqual(["m0"]);
    expect(result.message).toMatch(/^The conversation is back at c0/);
    expect(result.message).toContain("the files still hold the later work");
    expect(result.message).not.toContain("Files restored");
    const undone = await thread.undo();
    expect(digest(place)).toEqual(v1);
    expect(undone.context.messages).toEqual(["m0", "m1"]);
  });
});
