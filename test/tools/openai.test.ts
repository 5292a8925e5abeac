// The tools in OpenAI's form: a while loop over chat completions, `runTools`, and calls of the Responses API.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ChatRequest, Reply } from "agentrewind/conformance";
import { startModelServer } from "agentrewind/conformance";
import { environmentTools, withRewind } from "agentrewind/openai";
import OpenAI from "openai";
import { expect, onTestFinished, test } from "vitest";
import { makePlace, useRewind } from "../helpers/workspace.ts";
import { allText } from "../langchain/harness.ts";

async function scene(decide: (all: string) => Reply) {
  const place = makePlace();
  const rewind = await useRewind(place);
  const server = await startModelServer({ decide: (request: ChatRequest) => decide(allText(request)), latencyMs: 2 });
  onTestFinished(async () => {
    await server.close();
    expect(server.errors).toEqual([]);
  });
  writeFileSync(join(place.workspace, "f.txt"), "one\n");
  return { place, rewind, server, client: new OpenAI({ apiKey: "none", baseURL: server.baseUrl, maxRetries: 0 }) };
}

const script = (all: string): Reply => {
  if (all.includes("Edited f.txt")) return { content: "end" };
  const args = { path: "f.txt", old: "one", new: "1" };
  if (all.includes("1\tone")) return { toolCalls: [{ name: "edit", args }] };
  return { toolCalls: [{ name: "read", args: { path: "f.txt" } }] };
};

test("runTools calls them, and a failure is an answer to the model", async () => {
  const { place, rewind, client } = await scene((all) =>
    all.includes("NO_FILE") || all.includes("There is no none.txt") || all.includes("1\tone")
      ? script(all)
      : { toolCalls: [{ name: "read", args: { path: "none.txt" } }] },
  );
  const { chat } = environmentTools(rewind, { thread: "t" });
  const runner = client.chat.completions.runTools({
    model: "scripted",
    messages: [{ role: "user", content: "go" }],
    tools: chat,
  });
  expect(await runner.finalContent()).toBe("end");
  expect(readFileSync(join(place.workspace, "f.txt"), "utf8")).toBe("1\n");
});

test("in a while loop of the user's own", async () => {
  const { place, rewind, client, server } = await scene(script);
  const tools = environmentTools(rewind, { thread: "t" });
  const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: "user", content: "go" }];
  for (;;) {
    const { choices } = await client.chat.completions.create({ model: "scripted", messages, tools: tools.chat });
    const message = choices[0]?.message as OpenAI.ChatCompletionMessage;
    messages.push(message);
    if (message.tool_calls === undefined) break;
    for (const one of message.tool_calls) {
      if (one.type !== "function") continue;
      expect(tools.has(one.function.name)).toBe(true);
      const content = await tools.run(one.function.name, one.function.arguments);
      messages.push({ role: "tool", tool_call_id: one.id, content });
    }
  }
  expect(readFileSync(join(place.workspace, "f.txt"), "utf8")).toBe("1\n");
  const sent = server.requests[0]?.tools as unknown as { function: { parameters: Record<string, unknown> } }[];
  expect(sent.find((one) => (one.function as { name?: string }).name === "read")?.function.parameters).toMatchObject({
    type: "object",
    required: ["path"],
    properties: { path: { type: "string" }, offset: { type: "integer" } },
  });
});

test("case 72 behind withRewind: what was read in turns that were taken back must be read again", async () => {
  const call = (name: string, args: Record<string, unknown>): Reply => ({ toolCalls: [{ name, args }] });
  const edit = call("edit", { path: "f.txt", old: "two", new: "2" });
  const {
    place,
    rewind,
    client: plain,
  } = await scene((all) => {
    if (all.includes("You are back at")) {
      if (all.includes("Edited f.txt")) return { content: "end" };
      if (all.includes("1\tone\n2\ttwo")) return edit;
      return all.includes("You have not read f.txt") ? call("read", { path: "f.txt" }) : edit;
    }
    if (all.includes("Edited f.txt")) return call("rewind", { checkpoint: "c1", lesson: "change two, not one" });
    if (all.includes("1\tone")) return call("edit", { path: "f.txt", old: "one", new: "1" });
    return all.includes("(no output)") ? call("read", { path: "f.txt" }) : call("bash", { command: "true" });
  });
  writeFileSync(join(place.workspace, "f.txt"), "one\ntwo\n");
  const client = withRewind(plain, rewind, { thread: "t" });
  const runner = client.chat.completions.runTools({
    model: "scripted",
    messages: [{ role: "user", content: "go" }],
    tools: environmentTools(rewind, { thread: "t" }).chat,
  });
  expect(await runner.finalContent()).toBe("end");
  expect(readFileSync(join(place.workspace, "f.txt"), "utf8")).toBe("one\n2\n");
});

test("the Responses form has the same tools, and calls that make no sense are answered", async () => {
  const { rewind } = await scene(script);
  const tools = environmentTools(rewind, { tools: ["read", "bash"] });
  expect(tools.responses.map(({ type, name, strict }) => [type, name, strict])).toEqual([
    ["function", "bash", false],
    ["function", "read", false],
  ]);
  const forClient: OpenAI.Responses.Tool[] = tools.responses;
  expect(forClient).toHaveLength(2);
  expect(await tools.run("read", '{"path": "f.txt"}')).toBe("1\tone");
  expect(await tools.run("read", '{"path": ')).toMatch(/^Not done: The arguments of read do not fit/);
  expect(await tools.run("fly", "{}")).toMatch(/^Not done: there is no tool fly/);
});
