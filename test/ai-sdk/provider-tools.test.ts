// Calls that the model's provider carries out itself are not the caller's: nobody answers them, they keep their place, and they go with their turn.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createOpenAI } from "@ai-sdk/openai";
import { withRewind } from "agentrewind/ai-sdk";
import { generateText, stepCountIs, streamText, type ToolSet, tool } from "ai";
import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import {
  calledItem,
  type Json,
  saidItem,
  type Told,
  type ToldServer,
  toldResponse,
  toldServer,
} from "../helpers/told-server.ts";
import { openScene, type Scene } from "../langchain/harness.ts";

let scene: Scene;
let server: ToldServer;
afterEach(async () => {
  await server?.close();
  await scene?.close();
});

const searched = (query: string): Json => ({
  type: "web_search_call",
  id: `ws_${query}`,
  status: "completed",
  action: { type: "search", query },
});

async function run(replies: readonly (readonly Json[])[], streamed: boolean): Promise<void> {
  scene = await openScene(() => ({ content: "" }));
  server = await toldServer((body, count): Told => {
    const reply = replies[count];
    if (reply === undefined) throw new Error(`no reply ${count}`);
    return reply.length === 0 ? { status: 500, json: {} } : toldResponse(body, reply, `resp_${count}`);
  });
  await loop(streamed);
}

async function loop(streamed: boolean): Promise<void> {
  const openai = createOpenAI({ apiKey: "none", baseURL: server.baseUrl });
  const model = withRewind(openai.responses("told"), scene.rewind, { thread: "t1" });
  const write = tool({
    inputSchema: z.object({ path: z.string() }),
    execute: ({ path }) => {
      writeFileSync(join(scene.workspace, path), "x");
      return `wrote ${path}`;
    },
  });
  const tools = { write_file: write, web_search: openai.tools.webSearch({}) } as ToolSet;
  const options = { model, tools, prompt: "go", stopWhen: stepCountIs(9), maxRetries: 0 } as const;
  const result = streamed ? streamText({ ...options, onError: () => {} }) : await generateText(options);
  expect(await result.text).toBe("end");
}

const sent = (): Json[] => server.bodies.at(-1)?.input as Json[];
const answered = (): unknown[] =>
  sent().flatMap(({ type, call_id }) => (type === "function_call_output" ? [call_id] : []));

describe.each([
  ["generateText", false],
  ["streamText", true],
])("%s", (_name, streamed) => {
  it("a web search beside a call of the caller's has no second result", async () => {
    await run([[searched("a"), calledItem("write_file", { path: "a" }, "call_1")], [saidItem("end")]], streamed);
    expect(answered()).toEqual(["call_1"]);
    expect(sent().map(({ type, id, call_id }) => call_id ?? id ?? type)).toContain("ws_a");
  });

  it("a web search beside a call of ours is seen behind it, once, with its place", async () => {
    const replies = [
      [searched("a"), calledItem("list_checkpoints", {}, "call_1")],
      [calledItem("write_file", { path: "a" }, "call_2")],
      [saidItem("end")],
    ];
    await run(replies, streamed);
    expect(answered()).toEqual(["call_1", "call_2"]);
    expect(JSON.stringify(sent()).split("ws_a")).toHaveLength(2);
  });

  it("a loop that starts over gets what the provider found again", async () => {
    const replies = [[searched("a"), calledItem("write_file", { path: "a" }, "call_1")], [], [saidItem("end")]];
    await expect(run(replies, streamed)).rejects.toThrow();
    await scene.reopen();
    await loop(streamed);
    const [, before, again] = server.bodies.map(({ input }) => input);
    expect(JSON.stringify(again)).toContain("ws_a");
    expect(again).toEqual(before);
  });

  it("a rewind takes a web search back with its turn", async () => {
    const replies = [
      [calledItem("write_file", { path: "kept" }, "call_1")],
      [searched("gone"), calledItem("write_file", { path: "gone" }, "call_2")],
      [calledItem("rewind", { checkpoint: "c1", lesson: "it was wrong" }, "call_3")],
      [saidItem("end")],
    ];
    await run(replies, streamed);
    expect(answered()).toEqual(["call_1"]);
    expect(JSON.stringify(sent())).not.toContain("ws_gone");
    expect(scene.files()).toEqual(["kept"]);
  });
});
