// The items of OpenAI's agents SDK, whatever API is below it: messages, reasoning, calls and results are items of their own.
import { canonical, digest, type Format, type Item, textOfContent, withoutApart } from "agentrewind/relay";
import { answeredBy, callOf, hasFailed, providedIn, resultOf, textOfResult } from "./calls.ts";

const modelTypes: ReadonlySet<unknown> = new Set(["reasoning", "program", "program_output", "tool_search_output"]);

const isMessage = (item: Item): boolean => item.role !== undefined;

export const agentItems: Format = {
  name: "openai-agents",
  callsApart: true,

  // Ids and provider data change on the way through a session; what is said and called does not.
  identity(item) {
    const call = callOf(item);
    if (call !== undefined) return `calls:${digest([call.id, call.name, canonical(call.arguments)])}`;
    const answered = answeredBy(item);
    if (answered !== undefined) return `result:${answered}`;
    if (isMessage(item)) return `${String(item.role)}:${digest(textOfContent(item.content) || (item.content ?? null))}`;
    if (item.type === "reasoning") return `reasoning:${digest([item.content ?? null, item.rawContent ?? null])}`;
    return `${String(item.type)}:${typeof item.id === "string" ? item.id : digest(item)}`;
  },

  speaker(item) {
    if (isMessage(item)) {
      if (item.role === "user") return "person";
      return item.role === "assistant" ? "model" : "other";
    }
    if (answeredBy(item) !== undefined) return "tool";
    return String(item.type).endsWith("_call") || modelTypes.has(item.type) ? "model" : "other";
  },

  text(item) {
    if (isMessage(item)) return textOfContent(item.content);
    return answeredBy(item) === undefined ? "" : textOfResult(item);
  },

  calls: (item) => [callOf(item)].filter((call) => call !== undefined),
  provided: providedIn,
  answers: answeredBy,
  failed: hasFailed,
  result: (call, text, ran = false) => resultOf(call, text, ran),
  leadsTo: (item) => item.type === "reasoning",
  message: (text) => ({ type: "message", role: "user", content: text }),

  prefixed: (item, text) =>
    isMessage(item) ? { ...item, content: [{ type: "output_text", text: text + textOfContent(item.content) }] } : item,

  withoutCalls: (items, dropped) => withoutApart(agentItems, items, dropped),
};
