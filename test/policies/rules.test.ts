// What else holds of turns that were not captured: safety, refusals, labels, changes, retries, prune, bundles.
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { importBundle, isRewindError, type OpenOptions, openRewind, type Rewind } from "agentrewind";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { codeOf, makePlace, type Place, useRewind } from "../helpers/workspace.ts";

let place: Place;
let rewind: Rewind;
const write = (path: string, text: string): void => writeFileSync(join(place.workspace, path), text);
const read = (path: string): string => readFileSync(join(place.workspace, path), "utf8");
const thread = () => rewind.thread("t");

async function open(options: Partial<OpenOptions> = {}): Promise<void> {
  rewind = await useRewind(place, { capture: "explicit", ...options });
}

let count = 0;
/** One turn whose reply has these calls. */
async function turn(calls?: readonly { tool: string; input: unknown }[], anchor = `m${count++}`): Promise<string> {
  const begun = await thread().beginTurn({ messages: [anchor] }, { anchor });
  return (await begun.gate(calls === undefined ? {} : { calls, tools: calls.length > 0 })).id;
}
const states = (): string[] =>
  thread()
    .checkpoints()
    .map(({ id, state }) => `${id} ${state === "durable" ? "captured" : state}`);
const bash = (command: string) => [{ tool: "bash", input: { command } }];

beforeEach(() => {
  place = makePlace();
});
afterEach(() => vi.restoreAllMocks());

describe("explicit", () => {
  it("captures what is asked for: by the caller, and by the model's checkpoint tool", async () => {
    await open();
    await turn([]);
    write("a", "1");
    const asked = await thread().checkpoint({ label: "mine" });
    expect(asked.state).not.toBe("not-restorable");
    write("a", "2");
    const labelled = await turn([{ tool: "checkpoint", input: { label: "before the migration" } }, ...bash("rm a")]);
    write("a", "3");
    await turn(bash("ls"));
    expect(states()).toEqual(["c0 not-restorable", "c1 captured", "c2 captured", "c3 not-restorable"]);
    expect(thread().get(labelled).changes?.changed).toEqual(["a"]);
    await thread().rewind({ to: labelled });
    expect(read("a")).toBe("2");
    await thread().rewind({ to: asked.id });
    expect(read("a")).toBe("1");
  });

  it("captures what a rewind leaves, and undo brings it back, conversation included", async () => {
    await open();
    await turn([]);
    write("a", "1");
    const { id } = await thread().checkpoint();
    await turn(bash("x"));
    write("a", "2");
    await turn(bash("y"));
    write("a", "3");
    const { left } = await thread().rewind({ to: id });
    expect(read("a")).toBe("1");
    expect(left?.changes?.changed).toEqual(["a"]);
    const undone = await thread().undo();
    expect(read("a")).toBe("3");
    expect(undone.context.messages).toEqual((await thread().context("c3")).messages);
  });

  it("refuses to go to, fork and compare what was not captured, and names what is near", async () => {
    await open();
    await thread().checkpoint({ context: { messages: [] } });
    const missing = await turn([]);
    write("a", "1");
    const after = await thread().checkpoint();
    const error = await thread()
      .rewind({ to: missing })
      .catch((thrown: unknown) => thrown);
    if (!isRewindError(error, "NOT_RESTORABLE")) throw error;
    expect(error.message).toBe("c1 cannot be restored: not captured, as capture is set (explicit).");
    expect(error.hint).toBe("The nearest ones are c0 before it and c2 after it.");
    expect(error.details).toEqual({ checkpoint: "c1", nearest: "c0", after: "c2" });
    expect(thread().admissible(missing, "lesson")?.code).toBe("NOT_RESTORABLE");
    expect(await codeOf(rewind.fork(missing, { thread: "t" }))).toBe("NOT_RESTORABLE");
    expect(await codeOf(thread().diff(missing, after.id))).toBe("NOT_RESTORABLE");
    // The conversation alone can go there.
    const { context } = await thread().rewind({ to: missing, scope: "context" });
    expect(context.messages).toHaveLength(1);
    expect(read("a")).toBe("1");
  });

  it("tells changes against the newest before it that was captured", async () => {
    await open();
    write("a", "1");
    await thread().checkpoint({ context: { messages: [] } });
    await turn(bash("x"));
    write("b", "1");
    await turn(bash("y"));
    write("c", "1");
    expect((await thread().checkpoint()).changes?.added).toEqual(["b", "c"]);
  });

  it("goes on with the same turn where it is begun again", async () => {
    await open();
    await turn([], "same");
    await turn([{ tool: "checkpoint", input: {} }], "same");
    expect(states()).toEqual(["c0 captured"]);
  });

  it("keeps what else is there through prune, gc, verify and a bundle", async () => {
    await open();
    write("a", "1");
    await thread().checkpoint({ context: { messages: [] }, label: "base" });
    for (let n = 0; n < 5; n++) await turn(bash("x"));
    write("a", "2");
    const { id } = await thread().checkpoint();
    await turn([]);
    await rewind.prune({ keepLast: 2 });
    expect(await rewind.verify()).toEqual([]);
    expect(states()[0]).toBe("c0 captured");
    const bundle = join(place.base, "thread.bundle");
    await rewind.export({ thread: "t", to: bundle });
    const target = join(place.base, "elsewhere");
    const store = join(place.base, "store2");
    await importBundle(bundle, { into: target, store });
    const other = await openRewind({ workspace: target, store, capture: "explicit" });
    expect(
      other
        .thread("t")
        .checkpoints()
        .map(({ state }) => state === "not-restorable"),
    ).toEqual(
      thread()
        .checkpoints()
        .map(({ state }) => state === "not-restorable"),
    );
    await other.thread("t").rewind({ to: id });
    expect(readFileSync(join(target, "a"), "utf8")).toBe("2");
    expect(await other.verify()).toEqual([]);
    await other.close();
  });

  it("gives a fork of a captured checkpoint the same policy", async () => {
    await open();
    write("a", "1");
    const { id } = await thread().checkpoint({ context: { messages: [] } });
    await turn([]);
    const [branch] = await rewind.fork(id, { thread: "t" });
    const forked = branch?.thread("t");
    await (await forked?.beginTurn({ messages: ["b"] }))?.gate({ tools: false });
    expect(forked?.checkpoints().at(-1)?.state).toBe("not-restorable");
    writeFileSync(join(branch?.workspace as string, "a"), "branch");
    await branch?.adopt();
    expect(read("a")).toBe("branch");
  });
});

describe("what nothing takes back", () => {
  const effects = { mail: { class: "irreversible" }, note: { class: "reversible" } } as const;
  const ran = (): string[] =>
    existsSync(join(place.base, "sent")) ? readFileSync(join(place.base, "sent"), "utf8").split("\n") : [];
  const send = (tool: string) =>
    thread().runTool({ tool, args: {} }, () => {
      writeFileSync(join(place.base, "sent"), tool);
      return "sent";
    });

  it("has its turn captured and on disk before it runs, where the gate is told of it", async () => {
    await open({ effects, destructive: ["wipe"] });
    const id = await turn([{ tool: "mail", input: {} }]);
    expect(thread().get(id).state).not.toBe("not-restorable");
    await thread().runTool({ tool: "mail", args: {} }, () => expect(thread().get(id).state).toBe("durable"));
    expect(thread().get(await turn([{ tool: "wipe", input: {} }])).state).not.toBe("not-restorable");
    expect(thread().get(await turn([{ tool: "note", input: {} }])).state).toBe("not-restorable");
  });

  it("has a checkpoint of its own where nobody told", async () => {
    await open({ effects, destructive: ["wipe"] });
    await turn();
    write("a", "before");
    expect((await send("mail")).status).toBe("ran");
    expect(states()).toEqual(["c0 not-restorable", "c1 captured"]);
    write("a", "after");
    await turn();
    expect((await send("wipe")).status).toBe("ran");
    expect(states()).toEqual(["c0 not-restorable", "c1 captured", "c2 not-restorable", "c3 captured"]);
    await turn();
    expect((await send("note")).status).toBe("ran");
    expect(states()).toHaveLength(5);
    await thread().rewind({ to: "c1" });
    expect(read("a")).toBe("before");
  });

  it("waits for the disk where the gate does", async () => {
    await open({ gate: "durable", capture: { before: ["delete"] } });
    expect(thread().get(await turn(bash("rm a"))).state).toBe("durable");
    expect(thread().get(await turn(bash("ls"))).state).toBe("not-restorable");
  });

  it("is held where that cannot be captured", async () => {
    await open({ effects });
    await turn();
    const folder = place.workspace;
    const moved = `${folder}-gone`;
    renameSync(folder, moved);
    const outcome = await send("mail");
    expect(outcome.status).toBe("held");
    expect(ran()).toEqual([]);
    const told = await turn([{ tool: "mail", input: {} }]);
    expect(thread().get(told).reason).not.toMatch(/^not captured/);
    renameSync(moved, folder);
    expect((await send("mail")).status).toBe("ran");
  });

  it("stops the turn with onCaptureFailure stop, but only where a capture was tried", async () => {
    await open({ effects, onCaptureFailure: "stop" });
    await turn([]);
    renameSync(place.workspace, `${place.workspace}-gone`);
    await turn([]);
    expect(await codeOf(turn([{ tool: "mail", input: {} }]))).toBe("CAPTURE_FAILED");
    renameSync(`${place.workspace}-gone`, place.workspace);
  });
});

describe("options", () => {
  it("are refused where they say nothing, or what is not known", async () => {
    for (const capture of [
      {},
      { before: [] },
      { before: ["explode"] },
      { during: ["delete"] },
      "sometimes",
      7,
      { after: ["git"], tools: { a: [] } },
    ]) {
      expect(
        await codeOf(openRewind({ workspace: place.workspace, store: place.store, capture: capture as never })),
      ).toBe("BAD_ARGUMENT");
    }
  });

  it("say what tools do of which nothing else is known", async () => {
    await open({ capture: { before: ["delete"], tools: { search: "read", purge: ["delete", "network"] } } });
    expect(thread().get(await turn([{ tool: "search", input: {} }])).state).toBe("not-restorable");
    expect(thread().get(await turn([{ tool: "purge", input: {} }])).state).not.toBe("not-restorable");
    expect(thread().get(await turn([{ tool: "mystery", input: {} }])).state).not.toBe("not-restorable");
    expect(thread().get(await turn()).state).not.toBe("not-restorable");
    expect(thread().get(await turn([])).state).toBe("not-restorable");
  });

  it("take what effects and destructive say for classes", async () => {
    await open({
      capture: { after: ["compensable", "destructive"] },
      effects: { pay: { class: "compensable", compensate: () => {} } },
      destructive: ["wipe"],
    });
    const behind = async (tool: string): Promise<string> => {
      const action = { tool, input: "{}", output: "", failed: false };
      const begun = await thread().beginTurn({ messages: [tool] }, { activity: { said: "", actions: [action] } });
      return (await begun.gate({ tools: false })).state;
    };
    expect(await behind("read")).toBe("not-restorable");
    expect(await behind("pay")).not.toBe("not-restorable");
    expect(await behind("wipe")).not.toBe("not-restorable");
  });

  it("a function that fails, or answers late, captures", async () => {
    const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    const asked: unknown[] = [];
    const answers: (() => unknown)[] = [
      () => {
        throw new Error("no");
      },
      () => Promise.resolve(false),
      () => false,
      () => false,
    ];
    await open({
      capture: (about) => {
        asked.push([about.turn, about.moment, about.turnsSince, about.classes]);
        return answers.shift()?.() as boolean;
      },
    });
    const [first, second, third] = [await turn([]), await turn([]), await turn(bash("rm a"))];
    expect([first, second, third].map((id) => thread().get(id).state === "not-restorable")).toEqual([
      false,
      false,
      true,
    ]);
    expect(asked).toEqual([
      [1, "begin", null, []],
      [2, "begin", 1, []],
      [3, "begin", 1, []],
      [3, "reply", 1, ["delete"]],
    ]);
    expect(warned).toHaveBeenCalledWith("capture failed, so the turn is captured: no", "AgentRewindWarning");
  });
});

it("two threads: what an uncaptured turn of one did is not taken back by the other's framework", async () => {
  await open({ capture: { before: ["delete"] } });
  const [a, b] = [rewind.thread("a"), rewind.thread("b")];
  const begun = await a.beginTurn({ messages: ["m1"] }, { anchor: "a1" });
  await begun.gate({ calls: bash("rm x"), tools: true });
  const next = await a.beginTurn({ messages: ["m1", "m2"] }, { anchor: "a2" });
  await next.gate({ tools: false });
  const other = await b.beginTurn({ messages: ["n1"] }, { anchor: "b1" });
  await other.gate({ calls: [{ tool: "write", input: {} }], tools: true, look: "tool" });
  const leave = await b.enterTool([{ anchor: "b1", tool: false }]);
  write("of-b", "work");
  leave?.();
  // The framework of a went back to its first boundary.
  expect(await codeOf(a.align([{ anchor: "a1", tool: false }]))).toBe("SHARED_ENVIRONMENT");
  expect(read("of-b")).toBe("work");
});

it("a framework that goes back to a turn that was not captured is told, and nothing moves", async () => {
  await open();
  await turn([], "m1");
  write("a", "1");
  await turn([], "m2");
  write("a", "2");
  expect(await codeOf(thread().align([{ anchor: "m1", tool: false }]))).toBe("NOT_RESTORABLE");
  // Not even what would have been left was captured.
  expect(thread().checkpoints({ all: true })).toHaveLength(2);
  expect(read("a")).toBe("2");
  expect((await thread().align([{ anchor: "m2", tool: false }])).status).toBe("current");
});
