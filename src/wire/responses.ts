// The Responses API: messages, reasoning, calls and their results are items of their own.
import { formatApart } from "./apart.ts";
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

export const responses: Format = formatApart({
  name: "responses",
  isMessage,
  isModels,
  callOf,
  provided: providedIn,
  answers: answeredBy,
  failed: hasFailed,
  textOfResult,
  resultOf,

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
});
