// What a stream of Chat Completions holds reaches the caller as the server sent it, and the conversation as it would have without a stream: also what nobody here
// knows.
import { withRewind } from "agentrewind/openai";
import OpenAI from "openai";
import type { ChatCompletionCreateParams } from "openai/resources/chat/completions";
import { afterEach, describe, expect, it } from "vitest";
import { type Json, type ToldServer, toldChunks, toldServer } from "../helpers/told-server.ts";
import { openScene, type Scene } from "../langchain/harness.ts";

let scene: Scene;
let server: ToldServer;
afterEach(async () => {
  await server?.close();
  await scene?.close();
});

interface Case {
  readonly deltas: readonly Json[];
  /** The message as the API has it without a stream. */
  readonly message: Json;
}

const called = (id: string, name: string, more: Json = {}): Json => ({
  id,
  type: "function",
  function: { name, arguments: "{}" },
  ...more,
});
const patch = { name: "patch", input: "*** Begin Patch" };
const signed = { extra_content: { google: { thought_signature: "SIG" } } };

const cases: Readonly<Record<string, Case>> = {
  "a custom tool call": {
    deltas: [
      { tool_calls: [{ index: 0, id: "call_1", type: "custom", custom: { name: "patch", input: "*** Begin" } }] },
      { tool_calls: [{ index: 0, custom: { input: " Patch" } }] },
    ],
    message: { content: null, tool_calls: [{ id: "call_1", type: "custom", custom: patch }] },
  },
  "a field of a call": {
    deltas: [
      { tool_calls: [{ index: 0, id: "call_1", type: "function", function: { name: "f", arguments: "{" } }] },
      { tool_calls: [{ index: 0, function: { arguments: "}" }, ...signed }] },
    ],
    message: { content: null, tool_calls: [called("call_1", "f", signed)] },
  },
  "a field of the message behind a call": {
    deltas: [
      { tool_calls: [{ index: 0, ...called("call_1", "f") }] },
      { reasoning_details: [{ index: 0, type: "reasoning.text", text: "so " }] },
      { reasoning_details: [{ index: 0, text: "be it", signature: "SIG" }] },
    ],
    message: {
      content: null,
      tool_calls: [called("call_1", "f")],
      reasoning_details: [{ index: 0, type: "reasoning.text", text: "so be it", signature: "SIG" }],
    },
  },
  "thoughts before a call": {
    deltas: [
      { reasoning_content: "I think " },
      { reasoning_content: "so" },
      { content: "Yes" },
      { content: "." },
      { tool_calls: [{ index: 0, ...called("call_1", "f") }] },
    ],
    message: { content: "Yes.", reasoning_content: "I think so", tool_calls: [called("call_1", "f")] },
  },
  "calls without an index": {
    deltas: [{ tool_calls: [called("call_1", "f")] }, { tool_calls: [called("call_2", "g")] }],
    message: { content: null, tool_calls: [called("call_1", "f"), called("call_2", "g")] },
  },
  "a name in each delta": {
    deltas: [
      { tool_calls: [{ index: 0, id: "call_1", type: "function", function: { name: "f", arguments: "{" } }] },
      { tool_calls: [{ index: 0, id: "", function: { name: "f", arguments: "}" } }] },
    ],
    message: { content: null, tool_calls: [called("call_1", "f")] },
  },
};

const tools: ChatCompletionCreateParams["tools"] = [{ type: "function", function: { name: "f" } }];

async function open(answer: Parameters<typeof toldServer>[0], streaming: "live" | "buffer" = "live"): Promise<OpenAI> {
  scene = await openScene(() => ({ content: "" }));
  server = await toldServer(answer);
  const plain = new OpenAI({ apiKey: "none", baseURL: server.baseUrl, maxRetries: 0 });
  return withRewind(plain, scene.rewind, { thread: "t1", streaming });
}

const opening = { role: "assistant", content: null };
const ours = called("call_ours", "list_checkpoints");
const begin = { model: "told", messages: [{ role: "user", content: "go" }], tools } as const;

const unnumbered = (deltas: readonly unknown[]): unknown[] =>
  (deltas as Json[]).map(({ tool_calls: calls, ...delta }) =>
    calls === undefined ? delta : { ...delta, tool_calls: (calls as Json[]).map(({ index: _, ...part }) => part) },
  );

async function deltasOf(openai: OpenAI): Promise<unknown[]> {
  const stream = await openai.chat.completions.create({ ...begin, messages: [...begin.messages], stream: true });
  const deltas: unknown[] = [];
  for await (const chunk of stream) deltas.push(chunk.choices[0]?.delta);
  return deltas;
}

describe.each(Object.entries(cases))("%s", (_name, { deltas, message }) => {
  const finish = message.tool_calls === undefined ? "stop" : "tool_calls";

  it.each(["live", "buffer"] as const)("reaches the caller, %s", async (streaming) => {
    const openai = await open(() => toldChunks([opening, ...deltas], finish), streaming);
    expect(unnumbered(await deltasOf(openai))).toEqual(unnumbered([opening, ...deltas, {}]));
  });

  it("reaches the caller beside a call of ours", async () => {
    const hidden = { tool_calls: [{ index: 7, ...ours }] };
    const openai = await open(() => toldChunks([opening, ...deltas, hidden], "tool_calls"));
    expect(unnumbered(await deltasOf(openai))).toEqual(unnumbered([opening, ...deltas, {}]));
    expect(server.bodies).toHaveLength(1);
  });

  it("is sent on behind calls of ours as it is without a stream", async () => {
    const calls = message.tool_calls as Json[];
    // The reply is never the caller's: all that it calls is refused together.
    const refused = called("call_rewind", "rewind");
    const whole = { ...opening, ...message, tool_calls: [...calls, refused] };
    const openai = await open((_body, count) => {
      const end = { role: "assistant", content: "end" };
      if (count % 2 === 1) return count === 1 ? toldChunks([end]) : completed(end, "stop");
      const hidden = { tool_calls: [{ index: 7, ...refused }] };
      return count === 0 ? toldChunks([opening, ...deltas, hidden], "tool_calls") : completed(whole, "tool_calls");
    });
    await deltasOf(openai);
    const plain = new OpenAI({ apiKey: "none", baseURL: server.baseUrl, maxRetries: 0 });
    const other = withRewind(plain, scene.rewind, { thread: "t2" });
    await other.chat.completions.create({ ...begin, messages: [...begin.messages] });
    const [, streamed, , unstreamed] = server.bodies.map(({ messages }) => messages as Json[]);
    expect(streamed?.[1]).toEqual(unstreamed?.[1]);
    expect(streamed?.[1]).toEqual(whole);
  });
});

const completed = (message: Json, finish: string) => ({
  json: {
    id: "chatcmpl-1",
    object: "chat.completion",
    created: 1,
    model: "told",
    choices: [{ index: 0, message, finish_reason: finish }],
  },
});

it("what belongs to the reply and not to its message is the caller's too", async () => {
  const openai = await open(() => {
    const { events = [] } = toldChunks([opening, { content: "Yes." }]);
    return { events: events.map((event) => ({ ...event, service_tier: "default", citations: ["u"] })) };
  });
  const stream = await openai.chat.completions.create({ ...begin, messages: [...begin.messages], stream: true });
  const given: unknown[] = [];
  for await (const chunk of stream) given.push((chunk as unknown as Json).citations);
  expect(given).toEqual([["u"], ["u"], ["u"]]);
});
