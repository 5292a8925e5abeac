// Several agents of one run: a handoff is not taken back, an agent that is a tool is told apart.
import { createRequire } from "node:module";
import { Agent, OpenAIProvider, Runner, tool } from "@openai/agents";
import { withRewind } from "agentrewind/openai-agents";
import { afterEach, expect, test } from "vitest";
import { z } from "zod";
import { call, calls, openScene, type Scene, type Script, write } from "../langchain/harness.ts";
import { writesFiles } from "../openai/harness.ts";

const { OpenAI } = createRequire(createRequire(import.meta.url).resolve("@openai/agents"))("openai");

let scene: Scene;
afterEach(async () => scene?.close());

async function open(script: Script) {
  scene = await openScene(script);
  const openAIClient = new OpenAI({ apiKey: "none", baseURL: scene.server.baseUrl, maxRetries: 0 });
  const provider = new OpenAIProvider({ openAIClient, useResponses: false });
  const modelProvider = withRewind(provider, scene.rewind, { thread: "t1" });
  const writeFile = tool({
    name: "write_file",
    description: "Writes a file.",
    parameters: z.object({ path: z.string(), text: z.string() }),
    execute: (args) => writesFiles(scene)("write_file", args),
  });
  return { provider, modelProvider, writeFile, runner: new Runner({ modelProvider, tracingDisabled: true }) };
}

test("case 87: the agent's rewind does not go behind a handoff, whose agent would go on with another's conversation", async () => {
  const { runner, writeFile } = await open((_request, all) => {
    if (all.includes("before a handoff")) return { content: "stays" };
    if (all.includes("wrote b")) return calls(call("rewind", { checkpoint: "c0", lesson: "no handoff" }));
    if (all.includes("I am B")) return calls(write("b", "x"));
    return calls(all.includes("wrote a") ? call("transfer_to_B", {}) : write("a", "x"));
  });
  const second = new Agent({ name: "B", instructions: "I am B", model: "m", tools: [writeFile] });
  const first = new Agent({ name: "A", instructions: "I am A", model: "m", tools: [writeFile], handoffs: [second] });
  expect((await runner.run(first, "go")).finalOutput).toBe("stays");
  expect(scene.files()).toEqual(["a", "b"]);
});

const delegates: Script = (_request, all) => {
  if (all.includes("I am SUB")) return all.includes("wrote s") ? { content: "sub done" } : calls(write("s", "x"));
  return all.includes("sub done") ? { content: "all" } : calls(call("sub", { input: "do it" }));
};

test("an agent that is a tool needs a model of its own: with the wrapped one it is refused at its first request, with what to do", async () => {
  const { runner, modelProvider, writeFile } = await open(delegates);
  const sub = new Agent({ name: "SUB", instructions: "I am SUB", model: "m", tools: [writeFile] });
  const delegate = sub.asTool({ toolName: "sub", toolDescription: "x", runConfig: { modelProvider } });
  await runner
    .run(new Agent({ name: "A", instructions: "I am A", model: "m", tools: [delegate] }), "go")
    .catch(() => {});
  expect(scene.files()).toEqual([]);
  const asked = JSON.stringify(scene.server.requests);
  expect(asked).not.toContain("I am SUB");
});

test("an agent that is a tool, with the plain model: its work is the main agent's", async () => {
  const { runner, provider, writeFile } = await open(delegates);
  const sub = new Agent({ name: "SUB", instructions: "I am SUB", model: "m", tools: [writeFile] });
  const delegate = sub.asTool({ toolName: "sub", toolDescription: "x", runConfig: { modelProvider: provider } });
  const main = new Agent({ name: "A", instructions: "I am A", model: "m", tools: [delegate] });
  expect((await runner.run(main, "go")).finalOutput).toBe("all");
  expect(scene.files()).toEqual(["s"]);
  await scene.rewind.thread("t1").rewind({ to: "c0" });
  expect(scene.files()).toEqual([]);
});
