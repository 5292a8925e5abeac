// LangGraph's own time travel brings the files along, wherever it goes, with every saver and durability; the files stand where LangGraph stands (F-47).
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { type BaseCheckpointSaver, MemorySaver } from "@langchain/langgraph";
import { afterEach, describe, expect, test } from "vitest";
import { z } from "zod";
import {
  calls,
  countRestores,
  durabilities,
  fileTool,
  history,
  lastText,
  makeGraph,
  onThread,
  openScene,
  pointAt,
  run,
  type Scene,
  type Snapshot,
  savers,
  slowDown,
  start,
  stateOf,
  texts,
  user,
  write,
} from "./harness.ts";

let scene: Scene;
let filesAtCall: string[][];
let app: ReturnType<typeof makeGraph>["app"];
let rg: ReturnType<typeof makeGraph>["rg"];
afterEach(() => scene.close());

const config = onThread("t");
const messages =
  (count: number, holds = "") =>
  ({ values }: Snapshot) =>
    values.messages.length === count && JSON.stringify(values.messages).includes(holds);

/** One file in the first two turns, two at once in the third; other names when there is a hint. */
const script = (all: string) => {
  const done = all.split("wrote ").length - 1;
  const letter = all.includes("a hint") ? "h" : "f";
  if (done >= 4) return { content: "end" };
  if (done === 2) return calls(write(`${letter}3`, "1"), write(`${letter}4`, "1"));
  return calls(write(`${letter}${done + 1}`, "1"));
};

async function begin(saver: BaseCheckpointSaver = new MemorySaver()) {
  filesAtCall = [];
  scene = await openScene((_request, all) => {
    filesAtCall.push(scene.files());
    return script(all);
  });
  ({ app, rg } = makeGraph(scene, { saver }));
}

/** The files are those of the checkpoint. */
async function expectOf(checkpoint: string): Promise<void> {
  const { files } = await scene.rewind.thread("t").diff(checkpoint);
  expect(Object.values(files).flat()).toEqual([]);
}

describe.each(savers)("%s", (_name, make) => {
  describe.each(durabilities)("durability %s", (durability) => {
    test.each([0, 30])("every way back, with files that take %i ms to look at", async (slow) => {
      await begin(make());
      if (slow > 0) slowDown(scene, slow);
      const on = (point: Snapshot) => ({ ...point.config, durability });
      await run(app, start, { ...config, durability });
      expect(scene.files()).toEqual(["f1", "f2", "f3", "f4"]);

      filesAtCall = [];
      const again = await run(app, null, on(await pointAt(app, config, "agent", messages(3))));
      expect(filesAtCall[0]).toEqual(["f1"]);
      expect(lastText(again)).toBe("end");
      expect(again.decisions).toBe(4);
      expect(scene.files()).toEqual(["f1", "f2", "f3", "f4"]);

      filesAtCall = [];
      const first = await pointAt(app, config, "agent", messages(3));
      const fork = await app.updateState(first.config, { messages: [new HumanMessage("a hint")] }, "tools");
      await run(app, null, { ...fork, durability });
      expect(filesAtCall[0]).toEqual(["f1"]);
      expect(scene.files()).toEqual(["f1", "h2", "h3", "h4"]);

      // Before tools, on the first branch: the reply is there, its tool runs again.
      filesAtCall = [];
      await run(app, null, on(await pointAt(app, config, "tools", messages(4, '"f2"'))));
      expect(filesAtCall[0]).toEqual(["f1", "f2"]);
      expect(scene.files()).toEqual(["f1", "f2", "f3", "f4"]);

      filesAtCall = [];
      await run(app, user("a hint"), on(await pointAt(app, config, "agent", messages(5, '"f2"'))));
      expect(filesAtCall[0]).toEqual(["f1", "f2"]);
      expect(scene.files()).toEqual(["f1", "f2", "h3", "h4"]);
    });
  });
});

test("to the end of the abandoned branch and to the very beginning", async () => {
  await begin();
  await run(app, start, config);
  const end = await stateOf(app, config);
  const first = await pointAt(app, config, "agent", messages(3));
  await run(app, null, await app.updateState(first.config, { messages: [new HumanMessage("a hint")] }, "tools"));
  expect(scene.files()).toEqual(["f1", "h2", "h3", "h4"]);
  await rg.checkout(end.config);
  expect(scene.files()).toEqual(["f1", "f2", "f3", "f4"]);
  const begun = (await history(app, config)).at(-1) as Snapshot;
  await rg.checkout(begun.config);
  expect(scene.files()).toEqual([]);
  await rg.checkout(end.config);
  expect(scene.files()).toEqual(["f1", "f2", "f3", "f4"]);
});

test("checkout brings the files at once, and the run from there moves nothing", async () => {
  await begin();
  await run(app, start, config);
  const point = await pointAt(app, config, "agent", messages(3));
  const checkpoint = await rg.checkout(point.config);
  expect(scene.files()).toEqual(["f1"]);
  expect(checkpoint.state).toMatch(/captured|durable/);
  const restores = countRestores(scene);
  filesAtCall = [];
  await run(app, null, point.config);
  expect(filesAtCall[0]).toEqual(["f1"]);
  expect(restores()).toBe(0);
});

test.each(["by its id", "as the thread's newest"])(
  "checkout of a state, %s, while a rewind from outside waits: it is passed over, and the files are there",
  async (how) => {
    await begin();
    await run(app, start, config);
    const end = await stateOf(app, config);
    await scene.rewind.thread("t").rewind({ to: "c1" });
    expect(scene.files()).toEqual(["f1"]);
    const checkpoint = await rg.checkout(how === "by its id" ? end.config : config);
    expect(scene.files()).toEqual(["f1", "f2", "f3", "f4"]);
    await expectOf(checkpoint.id);
    const state = await run(app, user("go on"), config);
    expect(texts(state).join("\n")).not.toContain("You are back at");
    expect(scene.files()).toEqual(["f1", "f2", "f3", "f4"]);
  },
);

test("checkout of a state that is not the newest, while a rewind waits", async () => {
  await begin();
  await run(app, start, config);
  const point = await pointAt(app, config, "agent", messages(5));
  await scene.rewind.thread("t").rewind({ to: "c1" });
  const checkpoint = await rg.checkout(point.config);
  expect(scene.files()).toEqual(["f1", "f2"]);
  await expectOf(checkpoint.id);
  const state = await run(app, user("go on"), config);
  expect(texts(state).join("\n")).not.toContain("You are back at");
  expect(scene.files()).toEqual(["f1", "f2", "f3", "f4"]);
});

test("checkout where the files stand: what a person changed stays for the newest, and goes where a state is named", async () => {
  await begin();
  await run(app, start, config);
  const end = await stateOf(app, config);
  writeFileSync(join(scene.workspace, "mine"), "x");
  await expectOf((await rg.checkout(config)).id);
  expect(scene.files()).toContain("mine");
  await expectOf((await rg.checkout(end.config)).id);
  expect(scene.files()).not.toContain("mine");
});

test("checkout behind a tool that was broken off: what it began stays for the newest, and goes where the state is named", async () => {
  filesAtCall = [];
  scene = await openScene((_request, all) => script(all));
  const breaking = tool(
    () => {
      writeFileSync(join(scene.workspace, "half"), "x");
      throw new Error("broken off");
    },
    { name: "write_file", description: "w", schema: z.object({ path: z.string(), text: z.string() }) },
  );
  ({ app, rg } = makeGraph(scene, { tools: [breaking], toolOptions: { handleToolErrors: false } }));
  await expect(run(app, start, config)).rejects.toThrow("broken off");
  const end = await stateOf(app, config);
  await expectOf((await rg.checkout(config)).id);
  expect(scene.files()).toEqual(["half"]);
  await expectOf((await rg.checkout(end.config)).id);
  expect(scene.files()).toEqual([]);
});

test("a state of which nothing is known", async () => {
  await begin();
  await run(app, start, config);
  await expect(rg.checkout(onThread("nobody"))).rejects.toMatchObject({ code: "UNKNOWN_CHECKPOINT" });
  const { rg: other, app: plain } = makeGraph(scene, { pair: false });
  await expect(other.checkout(config)).rejects.toMatchObject({ code: "NOT_ATTACHED" });
  expect(plain).toBeDefined();
});

test("reading the history touches no file", async () => {
  await begin();
  await run(app, start, config);
  const restores = countRestores(scene);
  const checkpoints = scene.rewind.thread("t").checkpoints({ all: true }).length;
  for (const state of await history(app, config)) await stateOf(app, state.config);
  expect(restores()).toBe(0);
  expect(scene.rewind.thread("t").checkpoints({ all: true })).toHaveLength(checkpoints);
  expect(scene.files()).toEqual(["f1", "f2", "f3", "f4"]);
});

test("a run that only goes on restores nothing and makes one checkpoint a decision", async () => {
  await begin();
  const restores = countRestores(scene);
  await run(app, start, config);
  await run(app, user("again"), config);
  expect(restores()).toBe(0);
  const all = scene.rewind.thread("t").checkpoints({ all: true });
  expect(all.map((one) => one.kind)).toEqual(["turn", "turn", "turn", "turn", "turn"]);
  expect(all.map((one) => one.id)).toEqual(["c0", "c1", "c2", "c3", "c4"]);
});

test("in a new process, and with what a person changed meanwhile", async () => {
  const saver = new MemorySaver();
  await begin(saver);
  await run(app, start, config);
  await scene.reopen();
  writeFileSync(join(scene.workspace, "mine.txt"), "x");
  ({ app, rg } = makeGraph(scene, { saver }));
  filesAtCall = [];
  await run(app, null, (await pointAt(app, config, "agent", messages(3))).config);
  expect(filesAtCall[0]).toEqual(["f1"]);
  // What was left, the person's file too, can be reached.
  const left = scene.rewind
    .thread("t")
    .checkpoints({ all: true })
    .find((one) => one.kind === "safety");
  await scene.rewind.thread("t").rewind({ to: left?.id ?? "", scope: "environment" });
  expect(scene.files()).toContain("mine.txt");
});

test("a fork is run again after its tool failed: the traces of the first try are gone", async () => {
  filesAtCall = [];
  scene = await openScene((_request, all) => {
    filesAtCall.push(scene.files());
    return script(all);
  });
  let failing = false;
  const seen: string[][] = [];
  const breaking = tool(
    async (given: { path: string; text: string }) => {
      seen.push(scene.files());
      if (failing) {
        writeFileSync(join(scene.workspace, "half"), "x");
        throw new Error("broken off");
      }
      return fileTool(scene).invoke(given);
    },
    { name: "write_file", description: "w", schema: z.object({ path: z.string(), text: z.string() }) },
  );
  ({ app, rg } = makeGraph(scene, { tools: [breaking], toolOptions: { handleToolErrors: false } }));
  await run(app, start, config);
  const point = await pointAt(app, config, "agent", messages(3));
  const fork = await app.updateState(
    point.config,
    {
      messages: [
        new AIMessage({ content: "", tool_calls: [{ id: "x", name: "write_file", args: { path: "g", text: "1" } }] }),
      ],
    },
    "agent",
  );
  failing = true;
  await expect(run(app, null, fork)).rejects.toThrow("broken off");
  expect(scene.files()).toEqual(["f1", "half"]);
  failing = false;
  await run(app, null, fork);
  expect(seen[5]).toEqual(["f1"]);
  expect(scene.files()).not.toContain("half");
});

test("two threads of the graph do not disturb each other's states", async () => {
  await begin();
  await run(app, start, onThread("b"));
  expect(scene.files()).toEqual(["f1", "f2", "f3", "f4"]);
  await run(app, start, onThread("a"));
  await run(app, null, (await pointAt(app, onThread("a"), "agent", messages(3))).config);
  expect(scene.files()).toEqual(["f1", "f2", "f3", "f4"]);
});

test("the saver's deleted thread is forgotten", async () => {
  await begin();
  await run(app, start, config);
  const end = await stateOf(app, config);
  await (app.checkpointer as { deleteThread(id: string): Promise<void> }).deleteThread("t");
  expect(scene.rewind.thread("t").knowsState(`${end.config.configurable.checkpoint_id}`)).toBe(false);
  expect(lastText(await run(app, start, config))).toBe("end");
});

test("pruned checkpoints: a state goes to another one with the same files, or is unknown (F-46)", async () => {
  await begin();
  await run(app, start, config);
  const point = await pointAt(app, config, "agent", messages(3));
  const end = await stateOf(app, config);
  await rg.checkout(end.config);
  await scene.rewind.prune({ keepLast: 1 });
  await rg.checkout(end.config);
  expect(scene.files()).toEqual(["f1", "f2", "f3", "f4"]);
  await expect(rg.checkout(point.config)).rejects.toMatchObject({ code: "UNKNOWN_CHECKPOINT" });
});

test.each(["agent", "tools"])(
  "to a state whose files were pruned, before %s: refused, and nothing moves",
  async (next) => {
    await begin();
    await run(app, start, config);
    const point = await pointAt(app, config, next, messages(next === "agent" ? 1 : 2));
    const before = scene.files();
    await scene.rewind.prune({ keepLast: 1 });
    await expect(run(app, null, point.config)).rejects.toThrow("No files are kept for the state");
    expect(scene.files()).toEqual(before);
  },
);
