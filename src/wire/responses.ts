// The Responses API: messages, reasoning, calls and their results are items of their own.
import { withoutApart } from "./apart.ts";
import { digest } from "./digest.ts";
import { type Call, type Format, type Item, textOfContent } from "./format.ts";
import { remembered } from "./remembered.ts";

const callTypes: ReadonlySet<unknown> = new Set(["function_call", "custom_tool_call"]);
const resultTypes: ReadonlySet<unknown> = new Set(["function_call_output", "custom_tool_call_output"]);

/** Of the model and its server, whatever it is that the server has done. */
const isModels = ({ type }: Item): boolean =>
  typeof type === "string" && (type.endsWith("_call") || modelTypes.has(type));
const modelTypes: ReadonlySet<string> = new Set(["reasoning", "mcp_list_tools", "program", "program_output"]);

/** A shell in one of the server's containers. */
const isContained = ({ environment }: Item): boolean =>
  String((environment as { readonly type?: unknown } | null | undefined)?.type).startsWith("container");

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
    return isModels(item) ? "model" : "other";
  },

  text(item) {
    if (isMessage(item)) return textOfContent(item.content);
    return resultTypes.has(item.type) ? textOfContent(item.output) : "";
  },
  calls: (item) => [callOf(item)].filter((call) => call !== undefined),
  provided: (item) => (item.type === "shell_call" && isContained(item) ? [String(item.call_id)] : []),
  answers: (item) => (resultTypes.has(item.type) ? String(item.call_id) : undefined),
  failed: (item) => item.status === "incomplete",
  result: (call, text) => ({ type: "function_call_output", call_id: call.id, output: text }),
  leadsTo: (item) => item.type === "reasoning",
  message: (text) => ({ type: "message", role: "user", content: text }),
  prefixed: (item, text) =>
    isMessage(item) ? { ...item, content: [{ type: "output_text", text: text + textOfContent(item.content) }] } : item,

  withoutCalls: (items, dropped) => withoutApart(responses, items, dropped),
};
