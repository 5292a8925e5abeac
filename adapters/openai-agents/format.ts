// The items of OpenAI's agents SDK, whatever API is below it: messages, reasoning, calls and results are items of their own.
import { canonical, digest, type Format, type Item, textOfContent, withoutApart } from "agentrewind/relay";

const textOf = (output: unknown): string => {
  if (typeof output === "string" || Array.isArray(output)) return textOfContent(output);
  const { text } = (output ?? {}) as { text?: unknown };
  return typeof text === "string" ? text : JSON.stringify(output ?? "");
};

const modelTypes: ReadonlySet<unknown> = new Set(["reasoning", "program", "program_output"]);

const isMessage = (item: Item): boolean => item.role !== undefined;

export const agentItems: Format = {
  name: "openai-agents",
  callsApart: true,

  // Ids and provider data change on the way through a session; what is said and called does not.
  identity(item) {
    if (item.type === "function_call") return `calls:${digest([item.callId, item.name, canonical(item.arguments)])}`;
    if (item.type === "function_call_result") return `result:${String(item.callId)}`;
    if (isMessage(item)) return `${String(item.role)}:${digest(textOfContent(item.content) || (item.content ?? null))}`;
    if (item.type === "reasoning") return `reasoning:${digest([item.content ?? null, item.rawContent ?? null])}`;
    return `${String(item.type)}:${typeof item.id === "string" ? item.id : digest(item)}`;
  },

  speaker(item) {
    if (isMessage(item)) {
      if (item.role === "user") return "person";
      return item.role === "assistant" ? "model" : "other";
    }
    if (item.type === "function_call_result") return "tool";
    return String(item.type).endsWith("_call") || modelTypes.has(item.type) ? "model" : "other";
  },

  text: (item) =>
    isMessage(item) ? textOfContent(item.content) : item.type === "function_call_result" ? textOf(item.output) : "",

  calls: (item) =>
    item.type === "function_call"
      ? [{ id: String(item.callId), name: String(item.name), arguments: String(item.arguments ?? "") }]
      : [],

  provided: () => [],
  answers: (item) => (item.type === "function_call_result" ? String(item.callId) : undefined),
  failed: (item) => item.type === "function_call_result" && item.status === "incomplete",

  result: (call, text) => ({
    type: "function_call_result",
    name: call.name,
    callId: call.id,
    status: "completed",
    output: { type: "text", text },
  }),

  leadsTo: (item) => item.type === "reasoning",
  message: (text) => ({ type: "message", role: "user", content: text }),

  prefixed: (item, text) =>
    isMessage(item) ? { ...item, content: [{ type: "output_text", text: text + textOfContent(item.content) }] } : item,

  withoutCalls: (items, dropped) => withoutApart(agentItems, items, dropped),
};
