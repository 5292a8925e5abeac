// What goes wrong at the model's server while a reply is streamed reaches the caller as the client without rewind would show it.
import { withRewind } from "agentrewind/openai";
import OpenAI from "openai";
import { afterEach, describe, expect, it } from "vitest";
import {
  calledItem,
  type Json,
  saidItem,
  type Told,
  type ToldServer,
  toldChunks,
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

type Answer = (body: Json, count: number) => Told;

async function open(answer: Answer, maxRetries = 0): Promise<{ plain: OpenAI; openai: OpenAI }> {
  scene = await openScene(() => ({ content: "" }));
  server = await toldServer(answer);
  const plain = new OpenAI({ apiKey: "none", baseURL: server.baseUrl, maxRetries });
  return { plain, openai: withRewind(plain, scene.rewind, { thread: "t1" }) };
}

interface Api {
  readonly name: string;
  /** All words of a stream. */
  said(openai: OpenAI): Promise<string>;
  readonly words: (text: string) => Told;
  /** A reply that calls a tool of ours, with these words before it. */
  readonly ours: (text?: string) => Told;
  readonly error: Json;
}

const parameters = { type: "object", properties: {} };
const streamed = { stream: true };

const chat: Api = {
  name: "Chat Completions",
  async said(openai) {
    let all = "";
    const stream = await openai.chat.completions.create({
      model: "told",
      messages: [{ role: "user", content: "go" }],
      tools: [{ type: "function", function: { name: "f" } }],
      stream: true,
    });
    for await (const chunk of stream) all += chunk.choices[0]?.delta?.content ?? "";
    return all;
  },
  words: (text) => toldChunks([{ role: "assistant", content: "" }, { content: text }]),
  ours: (text) =>
    toldChunks(
      [
        { role: "assistant", content: "" },
        ...(text === undefined ? [] : [{ content: text }]),
        {
          tool_calls: [
            { index: 0, id: "call_1", type: "function", function: { name: "list_checkpoints", arguments: "{}" } },
          ],
        },
      ],
      "tool_calls",
    ),
  error: { error: { message: "server overloaded", type: "server_error", code: "overloaded" } },
};

const responsesApi: Api = {
  name: "Responses",
  async said(openai) {
    let all = "";
    const stream = await openai.responses.create({
      model: "told",
      input: [{ role: "user", content: "go" }],
      tools: [{ type: "function", name: "f", parameters, strict: false }],
      stream: true,
    });
    for await (const event of stream) {
      if (event.type === "response.output_text.delta") all += event.delta;
      if (event.type === "error") all += `<${event.code}: ${event.message}>`;
    }
    return all;
  },
  words: (text) => toldResponse(streamed, [saidItem(text)]),
  ours: (text) =>
    toldResponse(streamed, [
      { type: "reasoning", id: "rs_1", summary: [] },
      ...(text === undefined ? [] : [saidItem(text)]),
      calledItem("list_checkpoints", {}, "call_1"),
    ]),
  error: { type: "error", code: "overloaded", message: "server overloaded", param: null, sequence_number: 9 },
};

const refused: Told = {
  status: 429,
  headers: { "retry-after-ms": "1" },
  json: { error: { message: "slow down", type: "requests", code: "rate_limit_exceeded", param: null } },
};

const outcome = (openai: OpenAI, api: Api): Promise<unknown> =>
  api.said(openai).catch((error: unknown) => {
    const { status, code, message, type } = error as InstanceType<typeof OpenAI.APIError>;
    return { kind: (error as Error).constructor, status, code, message, type };
  });

describe.each([chat, responsesApi])("$name", (api) => {
  it.each(["", "Some words"])("an error event behind %j", async (before) => {
    const all = api.words("Some words").events ?? [];
    // The end of the reply is what does not come.
    const events = [...(before === "" ? all.slice(0, 1) : all.slice(0, -1)), api.error];
    const { plain, openai } = await open(() => ({ events }));
    const expected = await outcome(plain, api);
    expect(JSON.stringify(expected)).toContain("overloaded");
    expect(await outcome(openai, api)).toEqual(expected);
  });

  it("the turn that an error ended can be tried again", async () => {
    const { openai } = await open((_body, count) =>
      count === 0 ? { events: [...(api.words("Some").events ?? []).slice(0, 1), api.error] } : api.words("fine"),
    );
    expect(await outcome(openai, api)).not.toBe("fine");
    expect(await outcome(openai, api)).toBe("fine");
  });

  it("a refusal behind a call of ours, before anything was shown, is the client's to send again", async () => {
    const { openai } = await open((_body, count) => [api.ours(), refused, api.words("fine")][count] as Told, 1);
    expect(await outcome(openai, api)).toBe("fine");
    expect(server.bodies).toHaveLength(3);
  });

  it("and without retries it is the client's error", async () => {
    const { plain, openai } = await open((_body, count) => (count === 0 ? api.ours() : refused));
    const error = (await outcome(openai, api)) as Json;
    expect(error).toMatchObject({ kind: OpenAI.RateLimitError, status: 429, code: "rate_limit_exceeded" });
    expect(await outcome(plain, api)).toEqual(error);
  });

  it("behind words that were shown it is the same error", async () => {
    const { plain, openai } = await open((_body, count) => (count === 0 ? api.ours("Let me look.") : refused), 3);
    const error = (await outcome(openai, api)) as Json;
    expect(error).toMatchObject({ kind: OpenAI.RateLimitError, status: 429, code: "rate_limit_exceeded" });
    expect(server.bodies).toHaveLength(2);
    expect(await outcome(plain, api)).toEqual(error);
  });
});

it("a thought without words, then a call of the caller's: the stream is whole", async () => {
  const called = [{ type: "reasoning", id: "rs_1", summary: [] }, calledItem("f", {}, "call_1")];
  const { openai } = await open((body) => toldResponse(body, called));
  const tools = [{ type: "function" as const, name: "f", parameters, strict: false }];
  const stream = openai.responses.stream({ model: "told", input: "go", tools });
  const { output } = await stream.finalResponse();
  expect(output.map(({ id }) => id)).toEqual(["rs_1", "fc_call_1"]);
});
