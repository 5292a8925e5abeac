// LangGraph's own time travel: its state decides, and the files follow.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { tool } from "@langchain/core/tools";
import { MemorySaver } from "@langchain/langgraph";
import { afterEach, beforeEach, expect, test } from "vitest";
import { z } from "zod";
import {
  calls,
  fileTool,
  history,
  lastText,
  mainScript,
  makeAgent,
  onThread,
  openScene,
  run,
  type Scene,
  type State,
  start,
  texts,
  user,
  write,
} from "./harness.ts";

let scene: Scene;
let agent: ReturnType<typeof makeAgent>;
let filesAtCall: string[][];

const graph = () =>
  (agent as unknown as { graph: { updateState(config: unknown, values: unknown, node?: string): Promise<unknown> } })
    .graph;
const config = onThread("t");

beforeEach(async () => {
  filesAtCall = [];
  scene = await openScene((request, all) => {
    filesAtCall.push(scene.files());
    return mainScript()(request, all);
  });
  agent = makeAgent(scene, { checkpointer: new MemorySaver() });
  await run(agent, start, config);
  filesAtCall = [];
});
afterEach(() => scene.close());

async function pointAt(next: string, holds: (all: string[]) => boolean) {
  const point = (await history(agent, config)).find((one) => one.next[0] === next && holds(texts(one.values)));
  if (point === undefined) throw new Error("no such point");
  return point.config;
}

test("to before the model, on the line: the files are those of that moment", async () => {
  const point = await pointAt("model_request", (all) => all.length === 3);
  expect(lastText(await run(agent, null, point))).toBe("all done");
  expect(filesAtCall[0]).toEqual(["good.txt"]);
});

test("to before the model, on the abandoned branch: the files of that branch are back", async () => {
  const point = await pointAt("model_request", (all) => all.at(-1) === "wrote bad.txt");
  expect(lastText(await run(agent, null, point))).toBe("all done");
  expect(filesAtCall[0]).toEqual(["bad.txt", "good.txt"]);
  expect(scene.files()).toEqual(["better.txt", "good.txt"]);
});

test("to before the tools: they run on the files that their reply was made for", async () => {
  const point = await pointAt("tools", (all) => all.length === 4);
  expect(lastText(await run(agent, null, point))).toBe("all done");
  expect(filesAtCall[0]).toEqual(["bad.txt", "good.txt"]);
});

test("to before a rewind's own call: the same rewind again, without a second lesson", async () => {
  const point = await pointAt("tools", (all) => all.length === 8);
  expect(lastText(await run(agent, null, point))).toBe("all done");
  expect(filesAtCall[0]).toEqual(["good.txt"]);
  expect(scene.files()).toEqual(["better.txt", "good.txt"]);
  expect(scene.rewind.thread("t").lessons()).toHaveLength(1);
});

test("a fork by updateState: the files are those of the point that it starts from", async () => {
  const point = await pointAt("model_request", (all) => all.length === 3);
  const fork = await graph().updateState(point, { messages: [{ role: "user", content: "another way" }] }, "tools");
  const state = await run(agent, null, fork);
  expect(texts(state)).toContain("another way");
  expect(filesAtCall[0]).toEqual(["good.txt"]);
});

test("a new input at an earlier point", async () => {
  const point = (await pointAt("model_request", (all) => all.length === 3)) as { configurable: object };
  const state = await run(agent, user("and then"), point);
  expect(texts(state)).toContain("and then");
  expect(filesAtCall[0]).toEqual(["good.txt"]);
});

test("tools ran behind a point that is not the head: it stops and names both", async () => {
  const point = await pointAt("model_request", (all) => all.length === 3);
  const fork = await graph().updateState(
    point,
    {
      messages: [
        { role: "assistant", content: "", tool_calls: [{ id: "x", name: "write_file", args: {} }] },
        { role: "tool", tool_call_id: "x", content: "wrote by somebody" },
      ],
    },
    "tools",
  );
  const before = scene.files();
  await expect(run(agent, null, fork)).rejects.toThrow(
    /The conversation went on with tools from c1, but the environment is at c5/,
  );
  expect(scene.files()).toEqual(before);
});

test("back to the newest point after its tools ran and failed: their traces are gone first", async () => {
  await scene.close();
  let fail = true;
  scene = await openScene((_request, all) => {
    filesAtCall.push(scene.files());
    return all.includes("wrote b.txt")
      ? { content: "end" }
      : calls(write(all.includes("wrote a") ? "b.txt" : "a.txt", "x"));
  });
  const breaking = tool(
    (given: { path: string; text: string }) => {
      if (given.path === "b.txt" && fail) {
        writeFileSync(join(scene.workspace, "half.txt"), "x");
        throw new DOMException("stopped", "AbortError");
      }
      return fileTool(scene).invoke(given);
    },
    { name: "write_file", description: "w", schema: z.object({ path: z.string(), text: z.string() }) },
  );
  agent = makeAgent(scene, { checkpointer: new MemorySaver(), tools: [breaking], after: [fatal] });
  await expect(run(agent, start, config)).rejects.toThrow("stopped");
  expect(scene.files()).toEqual(["a.txt", "half.txt"]);
  fail = false;
  filesAtCall = [];
  const state: State = await run(agent, null, await pointAt("model_request", (all) => all.length === 3));
  expect(lastText(state)).toBe("end");
  expect(filesAtCall[0]).toEqual(["a.txt"]);
  expect(scene.files()).toEqual(["a.txt", "b.txt"]);
});

/** With a second middleware around tools LangChain lets what a tool throws end the run. */
const fatal = {
  name: "Fatal",
  wrapToolCall: (request: unknown, handler: (request: unknown) => unknown) => handler(request),
};

test.each(["model_request", "tools"])(
  "to a state whose files were pruned, before %s: refused, and nothing moves",
  async (next) => {
    const point = await pointAt(next, (all) => all.includes("go") && !all.some((text) => text.includes("wrote")));
    const before = scene.files();
    await scene.rewind.prune({ keepLast: 1 });
    await expect(run(agent, null, point)).rejects.toThrow(/No files are kept|were pruned/);
    expect(scene.files()).toEqual(before);
  },
);
