// The Responses API: messages, reasoning, calls and their results are items of their own.
import { withoutApart } from "./apart.ts";
import { digest } from "./digest.ts";
import { type Format, type Item, textOfContent } from "./format.ts";
import { remembered } from "./remembered.ts";
import { answeredBy, callOf, hasFailed, providedIn, resultOf, textOfResult } from "./responses-calls.ts";

/** Of the model and its server, whatever it is that the server has done. */
const isModels = ({ type }: Item): boolean =>
  typeof type === "string" && (type.endsWith("_call") || modelTypes.has(type));
const modelTypes: ReadonlySet<string> = new Set([
  "reasoning",
  "mcp_approval_request",
  "mcp_list_tools",
  "program",
  "program_output",
  "tool_search_output",
]);

const isMessage = (item: Item): boolean =>
  item.type === "message" || (item.type === undefined && item.role !== undefined);

export const responses: Format = {
  name: "responses",
  callsApart: true,

  identity: remembered((item) => {
    const call = callOf(item);
    if (call !== undefined) {
      return `calls:${digest([{ id: call.id, name: call.name, arguments: call.arguments }])}`;
    }
    const answered = answeredBy(item);
    if (answered !== undefined) return `result:${answered}`;
    if (isMessage(item)) return `${String(item.role)}:${digest(textOfContent(item.content) || (item.content ?? null))}`;
    return `${String(item.type)}:${typeof item.id === "string" ? item.id : digest(item)}`;
  }),

  speaker(item) {
    if (isMessage(item)) {
      if (item.role === "user") return "person";
      return item.role === "assistant" ? "model" : "other";
    }
    if (answeredBy(item) !== undefined) return "tool";
    return isModels(item) ? "model" : "other";
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

  withoutCalls: (items, dropped) => withoutApart(responses, items, dropped),
};
