// Loops over model APIs, and over sessions alone, as their users begin and resume them: those that start over, and those that keep their list of messages.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { createOpenAI } from "@ai-sdk/openai";
import { Agent, tool as agentTool, OpenAIProvider, Runner } from "@openai/agents";
import { withRewind as withModel } from "agentrewind/ai-sdk";
import { withRewind } from "agentrewind/openai";
import { withRewind as withProvider } from "agentrewind/openai-agents";
import { type ModelMessage, stepCountIs, streamText, tool } from "ai";
import OpenAI from "openai";
import type { ChatCompletionMessageParam } from "openai/resources/chat/completions";
import type { ResponseInputItem } from "openai/resources/responses/responses";
import { z } from "zod";
import type { Owner } from "./owner.ts";

const parameters = { type: "object", properties: { text: { type: "string" } }, required: ["text"] };
const names = ["note", "send"] as const;
const schema = z.object({ text: z.string() });

/** The list as it was stored last. */
function listOf<Item>({ base, killStored, end }: Owner, keeps: boolean) {
  const file = join(base, "list.json");
  const list: Item[] = keeps && existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : [];
  return {
    list,
    add(...items: Item[]): void {
      list.push(...items);
      if (keeps) writeFileSync(file, JSON.stringify(list));
      if (killStored !== undefined && JSON.stringify(items).includes(`noted ${killStored}`)) end();
    },
  };
}

type Acts = (name: string, text: string) => Promise<string>;

/** How a kind names what it does: "chat", "chat keeps", "chat bare" (its tools are not wrapped), "chat resume" … */
function chat(owner: Owner): () => Promise<void> {
  const { kind, rewind, baseURL, act } = owner;
  const openai = withRewind(new OpenAI({ apiKey: "none", baseURL, maxRetries: 0 }), rewind, { thread: "t" });
  const wrapped = Object.fromEntries(
    names.map((name) => [name, openai.rewind.tool(name, ({ text }: { text: string }) => act(text))]),
  );
  const acts: Acts = async (name, text) => (kind.includes("bare") ? act(text) : (wrapped[name]?.({ text }) ?? ""));
  return kind.startsWith("chat") ? () => chatLoop(owner, openai, acts) : () => responsesLoop(owner, openai, acts);
}

type Client = ReturnType<typeof withRewind<OpenAI>>;

async function chatLoop(owner: Owner, openai: Client, acts: Acts): Promise<void> {
  const { list, add } = listOf<ChatCompletionMessageParam>(owner, owner.kind.includes("keeps"));
  if (owner.kind.includes("resume")) list.push(...((await openai.rewind.resume()) as never[]));
  if (list.length === 0) add({ role: "user", content: "go" });
  const tools = names.map((name) => ({ type: "function" as const, function: { name, parameters } }));
  for (;;) {
    const last = list.at(-1) as ChatCompletionMessageParam;
    const open = list.findLast(({ role }) => role === "assistant") as { tool_calls?: { id: string }[] } | undefined;
    const answered = new Set(list.flatMap((one) => (one.role === "tool" ? [one.tool_call_id] : [])));
    const calls = (open?.tool_calls ?? []).filter(({ id }) => !answered.has(id)) as {
      id: string;
      function: { name: string; arguments: string };
    }[];
    if (calls.length === 0 && last.role === "assistant") return;
    for (const { id, function: called } of calls) {
      const { text } = JSON.parse(called.arguments) as { text: string };
      add({ role: "tool", tool_call_id: id, content: await acts(called.name, text) });
    }
    const completion = await openai.chat.completions.create({ model: "scripted", messages: list, tools });
    add(completion.choices[0]?.message as ChatCompletionMessageParam);
  }
}

async function responsesLoop(owner: Owner, openai: Client, acts: Acts): Promise<void> {
  const { list, add } = listOf<ResponseInputItem>(owner, owner.kind.includes("keeps"));
  if (list.length === 0) add({ role: "user", content: "go" });
  const tools = names.map((name) => ({ type: "function" as const, name, parameters, strict: false }));
  for (;;) {
    const answered = new Set(list.flatMap((one) => (one.type === "function_call_output" ? [one.call_id] : [])));
    const calls = list.flatMap((one) => (one.type === "function_call" && !answered.has(one.call_id) ? [one] : []));
    const last = list.at(-1) as { type?: string };
    if (calls.length === 0 && last.type === "message") return;
    for (const { call_id, name, arguments: args } of calls) {
      const { text } = JSON.parse(args) as { text: string };
      add({ type: "function_call_output", call_id, output: await acts(name, text) });
    }
    const response = await openai.responses.create({ model: "scripted", input: list, tools, store: false });
    add(...(response.output as ResponseInputItem[]));
  }
}

function aiSdk(owner: Owner): () => Promise<void> {
  const { kind, rewind, baseURL, act } = owner;
  const model = withModel(createOpenAI({ apiKey: "none", baseURL }).chat("scripted"), rewind, { thread: "t" });
  const tools = Object.fromEntries(
    names.map((name) => {
      const execute = model.rewind.execute(name, ({ text }: { text: string }) => act(text));
      return [name, tool({ inputSchema: schema, execute: (args) => execute(args) })];
    }),
  );
  return async () => {
    const { list, add } = listOf<ModelMessage>(owner, kind.includes("keeps"));
    if (list.length === 0) add({ role: "user", content: "go" });
    // A step at a time, so that each is stored.
    for (;;) {
      const result = streamText({
        model,
        tools,
        messages: list,
        stopWhen: stepCountIs(1),
        maxRetries: 0,
        onError() {},
      });
      for await (const part of result.fullStream) if (part.type === "error") throw part.error;
      const { messages } = await result.response;
      add(...messages);
      if (messages.at(-1)?.role !== "tool") return;
    }
  };
}

function agents(owner: Owner): () => Promise<void> {
  const { rewind, baseURL, act } = owner;
  const { OpenAI: Own } = createRequire(createRequire(import.meta.url).resolve("@openai/agents"))("openai");
  const openAIClient = new Own({ apiKey: "none", baseURL, maxRetries: 0 });
  const modelProvider = withProvider(new OpenAIProvider({ openAIClient, useResponses: false }), rewind, {
    thread: "t",
  });
  const tools = names.map((name) => {
    const execute = modelProvider.rewind.execute(name, ({ text }: { text: string }) => act(text));
    return agentTool({ name, description: "Note a text.", parameters: schema, execute });
  });
  const runner = new Runner({ modelProvider, tracingDisabled: true });
  return async () => void (await runner.run(new Agent({ name: "A", model: "m", tools }), "go", { maxTurns: 40 }));
}

/** A loop over a session and nothing else. "plain keeps": it stores its list; "plain": it goes on from the head's. */
function plain(owner: Owner): () => Promise<void> {
  const { kind, rewind, baseURL, act } = owner;
  const thread = rewind.thread("t");
  const openai = new OpenAI({ apiKey: "none", baseURL, maxRetries: 0 });
  const tools = names.map((name) => ({ type: "function" as const, function: { name, parameters } }));
  return async () => {
    const { list, add } = listOf<ChatCompletionMessageParam>(owner, kind.includes("keeps"));
    const head = kind.includes("keeps") || thread.head === null ? undefined : await thread.context(thread.head);
    list.push(...((head?.messages ?? []) as ChatCompletionMessageParam[]));
    if (list.length === 0) add({ role: "user", content: "go" });
    // What the last reply had asked for when it was stored is asked for once more.
    if (list.at(-1)?.role === "assistant") list.pop();
    for (;;) {
      const turn = await thread.beginTurn({ messages: [...list] });
      const completion = await openai.chat.completions.create({ model: "scripted", messages: list, tools });
      const message = completion.choices[0]?.message;
      if (message === undefined) throw new Error("no message");
      const calls = message.tool_calls ?? [];
      await turn.gate({ tools: calls.length > 0 });
      add(message);
      if (calls.length === 0) return;
      for (const call of calls) {
        if (call.type !== "function") continue;
        const { name } = call.function;
        const args = JSON.parse(call.function.arguments) as { text: string };
        const outcome = await thread.runTool({ tool: name, args, callId: call.id }, () => act(args.text));
        add({
          role: "tool",
          tool_call_id: call.id,
          content: outcome.status === "held" ? outcome.message : outcome.result,
        });
      }
    }
  };
}

/** @returns what runs the loop to its end, once more from where its user would begin */
export function loopOf(owner: Owner): () => Promise<void> {
  if (owner.kind.startsWith("plain")) return plain(owner);
  if (owner.kind.startsWith("ai-sdk")) return aiSdk(owner);
  return owner.kind.startsWith("agents") ? agents(owner) : chat(owner);
}
