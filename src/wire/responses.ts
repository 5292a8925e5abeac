// The Responses API: messages, reasoning, calls and their results are items of their own.
import { digest } from "./digest.ts";
import { type Call, type Format, type Item, textOfContent } from "./format.ts";
import { remembered } from "./remembered.ts";

const callTypes: ReadonlySet<unknown> = new Set(["function_call", "custom_tool_call"]);
const resultTypes: ReadonlySet<unknown> = new Set(["function_call_output", "custom_tool_call_output"]);

const isMessage = (item: Item): boolean =>
  item.type === "message" || (item.type === undefined && item.role !== undefined);

const callOf = (item: Item): Call | undefined =>
  callTypes.has(item.type)
    ? { id: String(item.call_id), name: String(item.name), arguments: String(item.arguments ?? item.input ?? "") }
    : undefined;

export const responses: Format = {
  name: "responses",
  callsApart: true,

  identity: remembered((item) => {
    const call = callOf(item);
    if (call !== undefined) return `calls:${digest([call])}`;
    if (resultTypes.has(item.type)) return `result:${String(item.call_id)}`;
    if (isMessage(item)) return `${String(item.role)}:${digest(textOfContent(item.content) || (item.content ?? null))}`;
    return `${String(item.type)}:${typeof item.id === "string" ? item.id : digest(item)}`;
  }),

  speaker(item) {
    if (isMessage(item)) {
      if (item.role === "user") return "person";
      return item.role === "assistant" ? "model" : "other";
    }
    if (resultTypes.has(item.type)) return "tool";
    return callTypes.has(item.type) || item.type === "reasoning" ? "model" : "other";
  },

  text: (item) => (isMessage(item) ? textOfContent(item.content) : textOfContent(item.output)),
  calls: (item) => [callOf(item)].filter((call) => call !== undefined),
  answers: (item) => (resultTypes.has(item.type) ? String(item.call_id) : undefined),
  failed: (item) => item.status === "incomplete",
  result: (call, text) => ({ type: "function_call_output", call_id: call.id, output: text }),
  leadsTo: (item) => item.type === "reasoning",
  message: (text) => ({ type: "message", role: "user", content: text }),
  prefixed: (item, text) =>
    isMessage(item) ? { ...item, content: [{ type: "output_text", text: text + textOfContent(item.content) }] } : item,

  // Reasoning belongs to what follows it and is refused without.
  withoutCalls(items, dropped) {
    const kept: Item[] = [];
    let reasoning: Item[] = [];
    for (const item of items) {
      if (item.type === "reasoning") {
        reasoning.push(item);
        continue;
      }
      const call = callOf(item);
      if (call !== undefined && dropped.has(call.id)) continue;
      kept.push(...reasoning, item);
      reasoning = [];
    }
    return kept;
  },
};
