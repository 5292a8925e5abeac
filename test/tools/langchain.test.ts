// The tools in LangChain's form: in createAgent beside the middleware, and in LangGraph's ToolNode.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { AIMessage, type BaseMessage, ToolMessage } from "@langchain/core/messages";
import { MemorySaver } from "@langchain/langgraph";
import { ToolNode } from "@langchain/langgraph/prebuilt";
import { environmentTools } from "agentrewind/langchain";
import { afterEach, expect, test } from "vitest";
import { call, calls, lastText, makeAgent, onThread, openScene, run, type Scene, start } from "../langchain/harness.ts";

let scene: Scene;
afterEach(() => scene.close());

const put = (name: string, text: string): void => writeFileSync(join(scene.workspace, name), text);
const get = (name: string): string => readFileSync(join(scene.workspace, name), "utf8");

test("case 72 in an agent: what was read in abandoned turns must be read again, and comes in full", async () => {
  const edit = call("edit", { path: "f.txt", old: "two", new: "2" });
  scene = await openScene((_request, all) => {
    if (all.includes("You are back at")) {
      if (all.includes("Edited f.txt")) return { content: "end" };
      if (all.includes("1\tone\n2\ttwo")) return calls(edit);
      return calls(all.includes("You have not read f.txt") ? call("read", { path: "f.txt" }) : edit);
    }
    if (all.includes("Edited f.txt")) return calls(call("rewind", { checkpoint: "c1", lesson: "change two, not one" }));
    if (all.includes("1\tone")) return calls(call("edit", { path: "f.txt", old: "one", new: "1" }));
    return calls(all.includes("(no output)") ? call("read", { path: "f.txt" }) : call("bash", { command: "true" }));
  });
  put("f.txt", "one\ntwo\n");
  const agent = makeAgent(scene, { tools: environmentTools(scene.rewind) as never, checkpointer: new MemorySaver() });
  const state = await run(agent, start, onThread("t"));
  expect(lastText(state)).toBe("end");
  expect(get("f.txt")).toBe("one\n2\n");
  const results = state.messages.filter((message) => ToolMessage.isInstance(message)) as ToolMessage[];
  expect(results.find((message) => message.text.includes("You have not read"))?.status).toBe("error");
});

test("two conversations through the same tools know their own files only", async () => {
  scene = await openScene((_request, all) => {
    if (all.includes("You have not read") || all.includes("Edited")) return { content: "end" };
    if (all.includes("reader") && !all.includes("1\tone")) return calls(call("read", { path: "f.txt" }));
    return calls(call("edit", { path: "f.txt", old: "one", new: "1" }));
  });
  put("f.txt", "one\n");
  const agent = makeAgent(scene, { tools: environmentTools(scene.rewind) as never, checkpointer: new MemorySaver() });
  const said = (text: string) => ({ messages: [{ role: "user", content: text }] });
  const refused = await run(agent, said("writer"), onThread("a"));
  expect(refused.messages.at(-2)?.text).toContain("You have not read");
  const edited = await run(agent, said("reader"), onThread("b"));
  expect(edited.messages.at(-2)?.text).toContain("Edited");
});

test("in a ToolNode: one result for each call, failures with status error", async () => {
  scene = await openScene(() => ({ content: "unused" }));
  put("f.txt", "one\n");
  const node = new ToolNode(environmentTools(scene.rewind));
  const message = new AIMessage({
    content: "",
    tool_calls: [
      { id: "a", name: "read", args: { path: "f.txt" } },
      { id: "b", name: "read", args: { path: "../f.txt" } },
    ],
  });
  const { messages } = (await node.invoke({ messages: [message] })) as { messages: BaseMessage[] };
  const [good, bad] = messages as ToolMessage[];
  expect([good?.tool_call_id, good?.status ?? "success", good?.text]).toEqual(["a", "success", "1\tone"]);
  expect([bad?.tool_call_id, bad?.status]).toEqual(["b", "error"]);
  expect(bad?.text).toContain("not inside the workspace");
});

test("called directly, each gives its text", async () => {
  scene = await openScene(() => ({ content: "unused" }));
  const [bash] = environmentTools(scene.rewind, { tools: ["bash"] });
  expect(await bash?.invoke({ command: "echo hi" })).toBe("hi");
});
