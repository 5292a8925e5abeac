// What goes wrong at the model's server while streamText runs shows as it does without rewind.
import { createOpenAI } from "@ai-sdk/openai";
import { withRewind } from "agentrewind/ai-sdk";
import { APICallError, jsonSchema, type LanguageModel, streamText, type ToolSet, tool } from "ai";
import { afterEach, expect, it } from "vitest";
import { calledItem, saidItem, type Told, type ToldServer, toldResponse, toldServer } from "../helpers/told-server.ts";
import { openScene, type Scene } from "../langchain/harness.ts";

let scene: Scene;
let server: ToldServer;
afterEach(async () => {
  await server?.close();
  await scene?.close();
});

async function open(answer: (count: number) => Told) {
  scene = await openScene(() => ({ content: "" }));
  server = await toldServer((_body, count) => answer(count));
  const plain = createOpenAI({ apiKey: "none", baseURL: server.baseUrl }).responses("told");
  return { plain, model: withRewind(plain, scene.rewind, { thread: "t1" }) };
}

async function partsOf(model: LanguageModel, maxRetries = 0) {
  const tools = { f: tool({ inputSchema: jsonSchema({ type: "object" }) }) } as ToolSet;
  const result = streamText({ model, tools, prompt: "go", maxRetries, onError: () => {} });
  const kinds: string[] = [];
  let text = "";
  let error: unknown;
  try {
    for await (const part of result.fullStream) {
      kinds.push(part.type);
      if (part.type === "text-delta") text += part.text;
      if (part.type === "error") error = part.error;
    }
  } catch (thrown) {
    error = thrown;
  }
  return { kinds, text, error };
}

const streamed = { stream: true };
const ours = (text?: string): Told =>
  toldResponse(streamed, [
    { type: "reasoning", id: "rs_1", summary: [] },
    ...(text === undefined ? [] : [saidItem(text)]),
    calledItem("list_checkpoints", {}, "call_1"),
  ]);
const refused: Told = {
  status: 429,
  headers: { "retry-after-ms": "1" },
  json: { error: { message: "slow down", type: "requests", code: "rate_limit_exceeded", param: null } },
};

it("an error event shows as without rewind", async () => {
  const { events = [] } = toldResponse(streamed, [saidItem("Some words")]);
  const error = { type: "error", sequence_number: 9, error: { type: "x", code: "overloaded", message: "overloaded" } };
  const { plain, model } = await open(() => ({ events: [...events.slice(0, -1), error] }));
  const expected = await partsOf(plain);
  expect(expected.kinds).toContain("error");
  const given = await partsOf(model);
  expect(given.error).toEqual(expected.error);
  expect([given.text, given.kinds]).toEqual([expected.text, expected.kinds]);
});

it("a refusal behind a call of ours, before anything was shown, is tried again", async () => {
  const said = toldResponse(streamed, [saidItem("fine")]);
  const { model } = await open((count) => [ours(), refused, said][count] as Told);
  expect(await partsOf(model, 1)).toMatchObject({ text: "fine", error: undefined });
});

it("behind words that were shown it is the SDK's own error", async () => {
  const { model } = await open((count) => (count === 0 ? ours("Let me look.") : refused));
  const { text, error } = await partsOf(model);
  expect(text).toBe("Let me look.");
  expect(APICallError.isInstance(error) && error.statusCode).toBe(429);
});
