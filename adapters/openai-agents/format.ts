// The items of OpenAI's agents SDK, whatever API is below it: messages, reasoning, calls and results are items of their own.
import { canonical, digest, type Format, formatApart, type Item, textOfContent } from "agentrewind/relay";
import { answeredBy, callOf, hasFailed, providedIn, resultOf, textOfResult } from "./calls.ts";

const modelTypes: ReadonlySet<unknown> = new Set(["reasoning", "program", "program_output", "tool_search_output"]);

const isMessage = (item: Item): boolean => item.role !== undefined;

export const agentItems: Format = formatApart({
  name: "openai-agents",
  isMessage,
  isModels: ({ type }) => String(type).endsWith("_call") || modelTypes.has(type),
  callOf,
  provided: providedIn,
  answers: answeredBy,
  failed: hasFailed,
  textOfResult,
  resultOf,

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
});
