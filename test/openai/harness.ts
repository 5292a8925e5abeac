// Loops over the OpenAI SDK as users write them, unchanged, over a real workspace, a real store and a real model server.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type WithRewindOptions, withRewind } from "agentrewind/openai";
import OpenAI from "openai";
import type { ChatCompletionMessageParam, ChatCompletionTool } from "openai/resources/chat/completions";
import type { ResponseInputItem, Tool } from "openai/resources/responses/responses";
import type { Scene } from "../langchain/harness.ts";

export const client = (scene: Scene, options: Partial<WithRewindOptions> = {}) =>
  withRewind(new OpenAI({ apiKey: "none", baseURL: scene.server.baseUrl, maxRetries: 0 }), scene.rewind, {
    thread: "t1",
    ...options,
  });

export type Client = ReturnType<typeof client>;

export type RunTool = (name: string, args: Record<string, string>) => Promise<string> | string;

export const writesFiles =
  (scene: Scene): RunTool =>
  (_name, { path = "", text = "" }) => {
    writeFileSync(join(scene.workspace, path), text);
    return `wrote ${path}`;
  };

const parameters = {
  type: "object",
  properties: { path: { type: "string" }, text: { type: "string" } },
  required: ["path", "text"],
};

export const chatTools: ChatCompletionTool[] = [
  { type: "function", function: { name: "write_file", description: "Write a file.", parameters } },
];

export const responsesTools: Tool[] = [
  { type: "function", name: "write_file", description: "Write a file.", parameters, strict: false },
];

/** A loop that a user has: it only ever adds to its list. Returns the last words. */
export type Loop = (client: Client, tool: RunTool, prompt: string, given?: unknown[]) => Promise<string>;

export const chatLoop: Loop = async (openai, tool, prompt, given = []) => {
  const messages = given as ChatCompletionMessageParam[];
  messages.push({ role: "user", content: prompt });
  for (;;) {
    const completion = await openai.chat.completions.create({ model: "scripted", messages, tools: chatTools });
    const message = completion.choices[0]?.message;
    if (message === undefined) throw new Error("no message");
    messages.push(message);
    if (message.tool_calls === undefined || message.tool_calls.length === 0) return message.content ?? "";
    for (const call of message.tool_calls) {
      if (call.type !== "function") continue;
      const content = await tool(call.function.name, JSON.parse(call.function.arguments));
      messages.push({ role: "tool", tool_call_id: call.id, content });
    }
  }
};

export const chatStreamLoop: Loop = async (openai, tool, prompt, given = []) => {
  const messages = given as ChatCompletionMessageParam[];
  messages.push({ role: "user", content: prompt });
  for (;;) {
    const stream = await openai.chat.completions.create({
      model: "scripted",
      messages,
      tools: chatTools,
      stream: true,
    });
    let content = "";
    const calls: { id: string; type: "function"; function: { name: string; arguments: string } }[] = [];
    for await (const chunk of stream) {
      const delta = chunk.choices[0]?.delta;
      content += delta?.content ?? "";
      for (const part of delta?.tool_calls ?? []) {
        calls[part.index] ??= { id: "", type: "function", function: { name: "", arguments: "" } };
        const call = calls[part.index] as (typeof calls)[number];
        call.id += part.id ?? "";
        call.function.name += part.function?.name ?? "";
        call.function.arguments += part.function?.arguments ?? "";
      }
    }
    messages.push({ role: "assistant", content, ...(calls.length === 0 ? {} : { tool_calls: calls }) });
    if (calls.length === 0) return content;
    for (const call of calls) {
      const result = await tool(call.function.name, JSON.parse(call.function.arguments));
      messages.push({ role: "tool", tool_call_id: call.id, content: result });
    }
  }
};

const runnable = (tool: RunTool) => [
  {
    type: "function" as const,
    function: {
      name: "write_file",
      description: "Write a file.",
      parameters,
      parse: JSON.parse,
      function: (args: Record<string, string>) => tool("write_file", args),
    },
  },
];

export const runToolsLoop: Loop = async (openai, tool, prompt, given = []) => {
  const messages = given as ChatCompletionMessageParam[];
  messages.push({ role: "user", content: prompt });
  const runner = openai.chat.completions.runTools({ model: "scripted", messages, tools: runnable(tool) } as never);
  const content = await runner.finalContent();
  messages.splice(0, messages.length, ...(runner.messages as ChatCompletionMessageParam[]));
  return content ?? "";
};

export const runToolsStreamLoop: Loop = async (openai, tool, prompt, given = []) => {
  const messages = given as ChatCompletionMessageParam[];
  messages.push({ role: "user", content: prompt });
  const runner = openai.chat.completions.runTools({
    model: "scripted",
    messages,
    tools: runnable(tool),
    stream: true,
  } as never);
  const content = await runner.finalContent();
  messages.splice(0, messages.length, ...(runner.messages as ChatCompletionMessageParam[]));
  return content ?? "";
};

type OutputItem = { type: string; name?: string; arguments?: string; call_id?: string };

const responsesLoopWith =
  (ask: (openai: Client, input: ResponseInputItem[]) => Promise<OpenAI.Responses.Response>): Loop =>
  async (openai, tool, prompt, given = []) => {
    const input = given as ResponseInputItem[];
    input.push({ role: "user", content: prompt });
    for (;;) {
      const response = await ask(openai, input);
      input.push(...(response.output as ResponseInputItem[]));
      const calls = (response.output as OutputItem[]).filter((item) => item.type === "function_call");
      if (calls.length === 0) return response.output_text;
      for (const call of calls) {
        const output = await tool(call.name as string, JSON.parse(call.arguments as string));
        input.push({ type: "function_call_output", call_id: call.call_id as string, output });
      }
    }
  };

export const responsesLoop: Loop = responsesLoopWith((openai, input) =>
  openai.responses.create({ model: "scripted", input, tools: responsesTools, store: false }),
);

export const responsesStreamLoop: Loop = responsesLoopWith((openai, input) =>
  openai.responses.stream({ model: "scripted", input, tools: responsesTools, store: false }).finalResponse(),
);

export const responsesServerLoop: Loop = async (openai, tool, prompt) => {
  let input: ResponseInputItem[] = [{ role: "user", content: prompt }];
  let previous: string | undefined;
  for (;;) {
    const response: OpenAI.Responses.Response = await openai.responses.create({
      model: "scripted",
      input,
      tools: responsesTools,
      ...(previous === undefined ? {} : { previous_response_id: previous }),
    });
    previous = response.id;
    const calls = (response.output as OutputItem[]).filter((item) => item.type === "function_call");
    if (calls.length === 0) return response.output_text;
    input = [];
    for (const call of calls) {
      const output = await tool(call.name as string, JSON.parse(call.arguments as string));
      input.push({ type: "function_call_output", call_id: call.call_id as string, output });
    }
  }
};

export const loops: Readonly<Record<string, Loop>> = {
  "Chat Completions": chatLoop,
  "Chat Completions, streamed": chatStreamLoop,
  runTools: runToolsLoop,
  "runTools, streamed": runToolsStreamLoop,
  "Responses, local items": responsesLoop,
  "Responses, streamed": responsesStreamLoop,
  "Responses, previous_response_id": responsesServerLoop,
};
