// Turns a reply into a chat completion, whole or as the chunks of a stream.
import { randomBytes } from "node:crypto";
import { type ChatRequest, type Reply, type ToolCall, textOf, type Usage } from "./wire.ts";

interface Answer {
  readonly id: string;
  readonly created: number;
  readonly model: string;
  readonly content: string | null;
  readonly toolCalls: readonly ToolCall[];
  readonly finishReason: "stop" | "tool_calls";
  readonly usage: Usage;
}

const newId = (prefix: string): string => prefix + randomBytes(12).toString("hex");

const tokens = (characters: number): number => Math.ceil(characters / 4);

export function answer(request: ChatRequest, reply: Reply): Answer {
  const toolCalls = (reply.toolCalls ?? []).map(
    (call): ToolCall => ({
      id: call.id ?? newId("call_"),
      type: "function",
      function: { name: call.name, arguments: JSON.stringify(call.args) },
    }),
  );
  const content = reply.content ?? (toolCalls.length > 0 ? null : "");
  const read = request.messages.reduce(
    (sum, message) =>
      sum + textOf(message.content).length + callLength("tool_calls" in message ? message.tool_calls : []),
    0,
  );
  const prompt = tokens(read);
  const completion = tokens((content ?? "").length + callLength(toolCalls));
  return {
    id: newId("chatcmpl-"),
    created: Math.floor(Date.now() / 1000),
    model: request.model,
    content,
    toolCalls,
    finishReason: toolCalls.length > 0 ? "tool_calls" : "stop",
    usage: { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion },
  };
}

function callLength(calls: readonly ToolCall[] | undefined): number {
  return (calls ?? []).reduce((sum, call) => sum + call.function.name.length + call.function.arguments.length, 0);
}

export function completion({ id, created, model, content, toolCalls, finishReason, usage }: Answer): object {
  const message = {
    role: "assistant",
    content,
    refusal: null,
    ...(toolCalls.length > 0 ? { tool_calls: toolCalls } : {}),
  };
  return {
    id,
    object: "chat.completion",
    created,
    model,
    choices: [{ index: 0, message, finish_reason: finishReason, logprobs: null }],
    usage,
  };
}

/** The chunks of a stream in order: role, words, tool calls in pieces, the finish reason, the usage where it was asked for. */
export function chunks(request: ChatRequest, { id, created, model, ...said }: Answer): object[] {
  const head = { id, object: "chat.completion.chunk", created, model };
  const withUsage = request.stream_options?.include_usage === true;
  const chunk = (delta: object, finish: string | null = null): object => ({
    ...head,
    choices: [{ index: 0, delta, finish_reason: finish, logprobs: null }],
    ...(withUsage ? { usage: null } : {}),
  });
  const words = said.content?.match(/\S+\s*|\s+/g) ?? [];
  const calls = said.toolCalls.flatMap((call, index) => [
    { index, id: call.id, type: "function", function: { name: call.function.name, arguments: "" } },
    ...thirds(call.function.arguments).map((piece) => ({ index, function: { arguments: piece } })),
  ]);
  return [
    chunk({ role: "assistant", content: said.content === null ? null : "", refusal: null }),
    ...words.map((word) => chunk({ content: word })),
    ...calls.map((call) => chunk({ tool_calls: [call] })),
    chunk({}, said.finishReason),
    ...(withUsage ? [{ ...head, choices: [], usage: said.usage }] : []),
  ];
}

function thirds(text: string): string[] {
  const size = Math.max(1, Math.ceil(text.length / 3));
  return [0, 1, 2].map((piece) => text.slice(piece * size, (piece + 1) * size)).filter((piece) => piece !== "");
}
