// Words pass as they arrive; calls wait for the gate; what a reply that was taken back has shown is not in the conversation.
import { withRewind } from "agentrewind/openai";
import OpenAI from "openai";
import type { ChatCompletionMessageParam } from "openai/resources/chat/completions";
import { afterEach, expect, it } from "vitest";
import {
  allText,
  call,
  idBefore,
  occurrences,
  openScene,
  type Scene,
  type Script,
  write,
} from "../langchain/harness.ts";
import { chatStreamLoop, chatTools, client, responsesStreamLoop, responsesTools, writesFiles } from "./harness.ts";

let scene: Scene;
afterEach(async () => scene?.close());

/** As the main script, but the model says something with each of its calls. */
const talking: Script = (_request, all) => {
  if (all.includes("You are back at")) {
    return all.includes("wrote better.txt")
      ? { content: "All is done." }
      : { content: "Better now.", toolCalls: [write("better.txt", "ok")] };
  }
  if (all.includes("Checkpoints, newest first")) {
    const rewind = call("rewind", { checkpoint: idBefore(all, "bad.txt"), lesson: "bad.txt was wrong" });
    return { content: "That was wrong.", toolCalls: [rewind] };
  }
  if (all.includes("wrote bad.txt")) return { content: "Let me look.", toolCalls: [call("list_checkpoints", {})] };
  return { content: "I write.", toolCalls: [write("bad.txt", "oops")] };
};

const lastText = (): string => allText(scene.server.requests.at(-1) as never);

it.each([
  ["live", ["I write.", "Let me look.\n\nThat was wrong.\n\nBetter now.", "All is done."]],
  ["buffer", ["I write.", "Better now.", "All is done."]],
] as const)("what the caller of a Chat Completions stream gets: %s", async (streaming, expected) => {
  scene = await openScene(talking);
  const list: ChatCompletionMessageParam[] = [];
  const openai = client(scene, { streaming });
  expect(await chatStreamLoop(openai, writesFiles(scene), "go", list)).toBe("All is done.");
  expect(list.filter(({ role }) => role === "assistant").map(({ content }) => content)).toEqual(expected);
  expect(scene.files()).toEqual(["better.txt"]);
  expect(lastText()).toContain("Better now.");
  for (const gone of ["I write.", "Let me look.", "That was wrong.", "wrote bad.txt"])
    expect(lastText()).not.toContain(gone);
});

it("words shown before a final answer are not in the conversation either", async () => {
  scene = await openScene((_request, all) => {
    if (all.includes("go on")) return { content: "Yes." };
    if (all.includes("You are back at")) return { content: "Nothing to do." };
    if (all.includes("Checkpoints, newest first")) {
      return { content: "That was wrong.", toolCalls: [call("rewind", { checkpoint: "c0", lesson: "no" })] };
    }
    if (all.includes("wrote bad.txt")) return { toolCalls: [call("list_checkpoints", {})] };
    return { toolCalls: [write("bad.txt", "oops")] };
  });
  const list: ChatCompletionMessageParam[] = [];
  const openai = client(scene);
  expect(await chatStreamLoop(openai, writesFiles(scene), "go", list)).toBe("That was wrong.\n\nNothing to do.");
  expect(await chatStreamLoop(openai, writesFiles(scene), "go on", list)).toBe("Yes.");
  expect(lastText()).toContain("Nothing to do.");
  expect(lastText()).not.toContain("That was wrong.");
});

it("Responses: items shown before a rewind stand in the caller's list and not in the conversation", async () => {
  scene = await openScene(talking);
  const list: unknown[] = [];
  expect(await responsesStreamLoop(client(scene), writesFiles(scene), "go", list)).toBe("All is done.");
  const said = (list as { type?: string; content?: { text: string }[] }[])
    .filter(({ type }) => type === "message")
    .map(({ content }) => content?.[0]?.text);
  expect(said).toEqual(["I write.", "Let me look.", "That was wrong.", "Better now.", "All is done."]);
  for (const gone of ["I write.", "Let me look.", "That was wrong.", "wrote bad.txt"])
    expect(lastText()).not.toContain(gone);
  expect(occurrences(lastText(), "Better now.")).toBe(1);
});

it("the numbers of a Responses stream rise by one, and every item is announced once", async () => {
  scene = await openScene(talking);
  const input: unknown[] = [{ role: "user", content: "go" }];
  const openai = client(scene);
  const first = await openai.responses.create({
    model: "scripted",
    input: input as never,
    tools: responsesTools,
    store: false,
  });
  input.push(...first.output);
  const [called] = first.output.filter(({ type }) => type === "function_call") as { call_id: string }[];
  writesFiles(scene)("write_file", { path: "bad.txt", text: "oops" });
  input.push({ type: "function_call_output", call_id: called?.call_id, output: "wrote bad.txt" });
  const stream = await openai.responses.create({
    model: "scripted",
    input: input as never,
    tools: responsesTools,
    store: false,
    stream: true,
  });
  const numbers: number[] = [];
  const added: number[] = [];
  const kinds: string[] = [];
  for await (const event of stream) {
    numbers.push(event.sequence_number);
    kinds.push(event.type);
    if (event.type === "response.output_item.added") added.push(event.output_index);
  }
  expect(numbers).toEqual(numbers.map((_, at) => at));
  expect(added).toEqual(added.map((_, at) => at));
  expect(kinds.filter((kind) => kind === "response.created")).toHaveLength(1);
  expect(kinds.filter((kind) => kind === "response.completed")).toHaveLength(1);
});

it("words pass before the reply is whole", async () => {
  scene = await openScene(() => ({ content: "one two three four five six seven eight nine ten" }), { latencyMs: 600 });
  const order: string[] = [];
  const fetch = async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const response = await globalThis.fetch(input, init);
    const watched = new TransformStream({ flush: () => void order.push("the server has said all") });
    return new Response(response.body?.pipeThrough(watched), response);
  };
  const openai = withRewind(
    new OpenAI({ apiKey: "none", baseURL: scene.server.baseUrl, maxRetries: 0, fetch }),
    scene.rewind,
    {
      thread: "t1",
    },
  );
  const stream = await openai.chat.completions.create({
    model: "scripted",
    messages: [{ role: "user", content: "go" }],
    tools: chatTools,
    stream: true,
  });
  for await (const chunk of stream) if (chunk.choices[0]?.delta?.content) order.push("a word");
  expect(order[0]).toBe("a word");
  expect(order).toContain("the server has said all");
});

it("usage is given where it was asked for", async () => {
  scene = await openScene(() => ({ content: "yes" }));
  const stream = await client(scene).chat.completions.create({
    model: "scripted",
    messages: [{ role: "user", content: "go" }],
    tools: chatTools,
    stream: true,
    stream_options: { include_usage: true },
  });
  const usages: unknown[] = [];
  for await (const chunk of stream) if (chunk.usage) usages.push(chunk.usage);
  expect(usages).toHaveLength(1);
});

it("a stream that is given up ends the turn, and the next request goes on", async () => {
  scene = await openScene(
    (_request, all) => ({ content: all.includes("again") ? "yes" : "a long story that goes on and on" }),
    {
      latencyMs: 300,
    },
  );
  const openai = client(scene);
  const stream = await openai.chat.completions.create({
    model: "scripted",
    messages: [{ role: "user", content: "go" }],
    tools: chatTools,
    stream: true,
  });
  for await (const chunk of stream) if (chunk.choices[0]?.delta?.content) break;
  const messages: ChatCompletionMessageParam[] = [
    { role: "user", content: "go" },
    { role: "user", content: "again" },
  ];
  const completion = await openai.chat.completions.create({ model: "scripted", messages, tools: chatTools });
  expect(completion.choices[0]?.message.content).toBe("yes");
});

it("what the model's server refuses reaches the caller as it is, also in a stream", async () => {
  scene = await openScene(() => {
    throw new Error("out of order");
  });
  const asked = client(scene).chat.completions.create({
    model: "scripted",
    messages: [{ role: "user", content: "go" }],
    tools: chatTools,
    stream: true,
  });
  await expect(asked).rejects.toMatchObject({ status: 500 });
  (scene.server.errors as string[]).length = 0;
});
