// The tools in the AI SDK's form, behind withRewind.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createOpenAI } from "@ai-sdk/openai";
import { environmentTools, withRewind } from "agentrewind/ai-sdk";
import { type Reply, startModelServer } from "agentrewind/conformance";
import { generateText, stepCountIs } from "ai";
import { expect, onTestFinished, test } from "vitest";
import { makePlace, useRewind } from "../helpers/workspace.ts";
import { allText } from "../langchain/harness.ts";

test("case 72: what was read in turns that were taken back must be read again, and comes in full", async () => {
  const call = (name: string, args: Record<string, unknown>): Reply => ({ toolCalls: [{ name, args }] });
  const edit = call("edit", { path: "f.txt", old: "two", new: "2" });
  const decide = (all: string): Reply => {
    if (all.includes("You are back at")) {
      if (all.includes("Edited f.txt")) return { content: "end" };
      if (all.includes("1\tone\n2\ttwo")) return edit;
      return all.includes("You have not read f.txt") ? call("read", { path: "f.txt" }) : edit;
    }
    if (all.includes("Edited f.txt")) return call("rewind", { checkpoint: "c1", lesson: "change two, not one" });
    if (all.includes("1\tone")) return call("edit", { path: "f.txt", old: "one", new: "1" });
    return all.includes("(no output)") ? call("read", { path: "f.txt" }) : call("bash", { command: "true" });
  };
  const place = makePlace();
  const rewind = await useRewind(place);
  const server = await startModelServer({ decide: (request) => decide(allText(request)), latencyMs: 2 });
  onTestFinished(async () => {
    await server.close();
    expect(server.errors).toEqual([]);
  });
  writeFileSync(join(place.workspace, "f.txt"), "one\ntwo\n");
  const provider = createOpenAI({ apiKey: "none", baseURL: server.baseUrl });
  const { text } = await generateText({
    model: withRewind(provider.chat("scripted"), rewind, { thread: "t" }),
    tools: environmentTools(rewind, { thread: "t" }),
    prompt: "go",
    stopWhen: stepCountIs(20),
    maxRetries: 0,
  });
  expect(text).toBe("end");
  expect(readFileSync(join(place.workspace, "f.txt"), "utf8")).toBe("one\n2\n");
});
