// The model server through the real client: replies, streams, latency, and everything that it refuses.

import { type ModelServer, type ModelServerOptions, startModelServer } from "agentrewind/conformance";
import OpenAI, { APIError } from "openai";
import type { ChatCompletionMessageParam, ChatCompletionTool } from "openai/resources/chat/completions";
import { afterEach, describe, expect, test } from "vitest";

const open: ModelServer[] = [];

afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.close()));
});

async function start(decide: ModelServerOptions["decide"], latencyMs = 0) {
  const server = await startModelServer({ decide, latencyMs });
  open.push(server);
  const client = new OpenAI({ baseURL: server.baseUrl, apiKey: "test", maxRetries: 0 });
  return { server, client };
}

const user = (content: string): ChatCompletionMessageParam => ({ role: "user", content });
const result = (id: string): ChatCompletionMessageParam => ({ role: "tool", tool_call_id: id, content: "ok" });
const calls = (...ids: string[]): ChatCompletionMessageParam => ({
  role: "assistant",
  tool_calls: ids.map((id) => ({ id, type: "function", function: { name: "bash", arguments: "{}" } })),
});

const bash: ChatCompletionTool = { type: "function", function: { name: "bash", parameters: { type: "object" } } };

const twoCalls = () => ({
  content: "Two steps at once.",
  toolCalls: [
    { name: "bash", args: { command: "npm test" } },
    { name: "read_file", args: { path: "häuser.txt" }, id: "call_given" },
  ],
});

describe("replies", () => {
  test("text", async () => {
    const { server, client } = await start((request) => ({ content: `You sent ${request.messages.length}.` }));
    const reply = await client.chat.completions.create({ model: "any", messages: [user("hello")] });
    expect(reply.choices[0]?.message).toMatchObject({ role: "assistant", content: "You sent 1." });
    expect(reply.choices[0]?.finish_reason).toBe("stop");
    expect(reply.usage).toEqual({ prompt_tokens: 2, completion_tokens: 3, total_tokens: 5 });
    expect(server.requests).toEqual([{ model: "any", messages: [user("hello")] }]);
    expect(server.errors).toEqual([]);
  });

  test("tool calls, with ids of their own", async () => {
    const { client } = await start(twoCalls);
    const reply = await client.chat.completions.create({ model: "any", messages: [user("go")], tools: [bash] });
    const again = await client.chat.completions.create({ model: "any", messages: [user("go")], tools: [bash] });
    const [first, second] = reply.choices[0]?.message.tool_calls ?? [];
    expect(first).toMatchObject({ type: "function", function: { name: "bash", arguments: '{"command":"npm test"}' } });
    expect(first?.id).toMatch(/^call_[0-9a-f]{24}$/);
    expect(first?.id).not.toBe(again.choices[0]?.message.tool_calls?.[0]?.id);
    expect(second?.id).toBe("call_given");
    expect(reply.choices[0]?.finish_reason).toBe("tool_calls");
  });

  test("a stream adds up to the same reply, in pieces", async () => {
    const { server, client } = await start(twoCalls);
    const stream = client.chat.completions.stream({
      model: "any",
      messages: [user("go")],
      tools: [bash],
      stream_options: { include_usage: true },
    });
    let pieces = 0;
    for await (const chunk of stream) if (chunk.choices[0]?.delta.tool_calls !== undefined) pieces++;
    const reply = await stream.finalChatCompletion();
    const [first, second] = reply.choices[0]?.message.tool_calls ?? [];
    expect(pieces).toBeGreaterThanOrEqual(6);
    expect(reply.choices[0]?.message.content).toBe("Two steps at once.");
    expect(first?.function.arguments).toBe('{"command":"npm test"}');
    expect(second).toMatchObject({ id: "call_given", function: { arguments: '{"path":"häuser.txt"}' } });
    expect(reply.usage?.total_tokens).toBeGreaterThan(0);
    expect(server.errors).toEqual([]);
  });

  test("an answered pair of calls is accepted", async () => {
    const { client } = await start(() => ({ content: "done" }));
    const messages = [user("go"), calls("a", "b"), result("b"), result("a"), user("and?"), calls("c"), result("c")];
    const reply = await client.chat.completions.create({ model: "any", messages });
    expect(reply.choices[0]?.message.content).toBe("done");
  });

  test("latency holds a reply back and spreads over a stream", async () => {
    const { client } = await start(() => ({ content: "one two three four five six" }), 200);
    const started = performance.now();
    await client.chat.completions.create({ model: "any", messages: [user("go")] });
    expect(performance.now() - started).toBeGreaterThanOrEqual(195);

    const times: number[] = [];
    const streamed = performance.now();
    const stream = await client.chat.completions.create({ model: "any", messages: [user("go")], stream: true });
    for await (const _ of stream) times.push(performance.now() - streamed);
    expect(times.length).toBeGreaterThan(2);
    expect(times[0]).toBeLessThan(times.at(-1) as number);
    expect(times.at(-1)).toBeGreaterThanOrEqual(195);
  });

  test("GET /v1/models lists the model", async () => {
    const { client } = await start(() => ({}));
    const models = await client.models.list();
    expect(models.data.map(({ id }) => id)).toEqual(["scripted"]);
  });
});

describe("refusals", () => {
  const assistant = (fields: object) => ({ role: "assistant", ...fields });
  const bodies: [string, object, RegExp][] = [
    ["an unanswered tool call", { messages: [user("go"), calls("a", "b"), result("a")] }, /no tool message.*: b\./],
    ["a tool call answered too late", { messages: [user("go"), calls("a"), user("so?"), result("a")] }, /: a\./],
    ["an orphan tool result", { messages: [user("go"), result("a")] }, /'a': this id is not a tool call/],
    ["a result for an abandoned call", { messages: [user("go"), calls("a"), result("a"), result("z")] }, /'z'/],
    ["a duplicate answer", { messages: [user("go"), calls("a"), result("a"), result("a")] }, /answered before/],
    [
      "a tool call id used twice",
      { messages: [user("go"), calls("a"), result("a"), calls("a"), result("a")] },
      /twice/,
    ],
    ["no messages", { messages: [] }, /'messages': must not be empty/],
    ["an empty user message", { messages: [user("")] }, /'messages\[0\]\.content'/],
    ["an assistant that says nothing", { messages: [user("go"), assistant({ content: "" })] }, /content or tool calls/],
    [
      "an empty list of tool calls",
      { messages: [user("go"), assistant({ content: "x", tool_calls: [] })] },
      /tool_calls/,
    ],
    ["an unknown role", { messages: [{ role: "ai", content: "x" }] }, /messages\[0\]/],
    ["a field that leaked", { messages: [{ ...user("go"), checkpoint: "c1" }] }, /messages\[0\]/],
    ["arguments that are no string", { messages: [user("go"), assistant({ tool_calls: [badCall()] })] }, /arguments/],
    ["tools of an unknown shape", { messages: [user("go")], tools: [{ name: "bash" }] }, /tools\[0\]/],
    ["a missing model", { model: undefined, messages: [user("go")] }, /'model'/],
  ];

  function badCall(): object {
    return { id: "a", type: "function", function: { name: "bash", arguments: {} } };
  }

  test.each(bodies)("%s", async (_, body, message) => {
    const { server, client } = await start(() => ({ content: "never" }));
    const request = { model: "any", ...body } as OpenAI.ChatCompletionCreateParamsNonStreaming;
    const error = await client.chat.completions.create(request).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(APIError);
    expect(error).toMatchObject({ status: 400, type: "invalid_request_error" });
    expect((error as APIError).message).toMatch(message);
    expect(server.errors).toHaveLength(1);
    expect(server.requests).toEqual([]);
  });

  test("what decide throws is a 500", async () => {
    const { server, client } = await start(() => {
      throw new Error("out of script");
    });
    const asked = client.chat.completions.create({ model: "any", messages: [user("go")] });
    await expect(asked).rejects.toMatchObject({ status: 500 });
    expect(server.errors).toEqual(["Error: out of script"]);
  });

  test("no key, no JSON, no such route", async () => {
    const { server } = await start(() => ({}));
    const post = (path: string, headers: Record<string, string>, body: string) =>
      fetch(server.baseUrl + path, { method: "POST", headers, body }).then((response) => response.status);
    expect(await post("/chat/completions", {}, "{}")).toBe(401);
    expect(await post("/chat/completions", { authorization: "Bearer k" }, "{")).toBe(400);
    expect(await post("/embeddings", { authorization: "Bearer k" }, "{}")).toBe(404);
  });
});
