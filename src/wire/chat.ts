// Chat Completions: a message is an item; an assistant's message holds its calls.
import { digest } from "./digest.ts";
import { type Call, type Format, type Item, textOfContent } from "./format.ts";
import { remembered } from "./remembered.ts";

interface ToolCall {
  readonly id?: string;
  readonly type?: string;
  readonly function?: { readonly name?: string; readonly arguments?: string };
  readonly custom?: { readonly name?: string; readonly input?: string };
}

const toolCalls = (item: Item): readonly ToolCall[] =>
  item.role === "assistant" && Array.isArray(item.tool_calls) ? (item.tool_calls as ToolCall[]) : [];

const toCall = ({ id = "", function: called, custom }: ToolCall): Call => ({
  id,
  name: called?.name ?? custom?.name ?? "",
  arguments: called?.arguments ?? custom?.input ?? "",
});

export const chatCompletions: Format = {
  name: "chat-completions",
  callsApart: false,

  identity: remembered((item) => {
    const calls = toolCalls(item);
    if (calls.length > 0) return `calls:${digest(calls.map(toCall))}`;
    if (typeof item.tool_call_id === "string") return `result:${item.tool_call_id}`;
    return `${String(item.role)}:${digest(textOfContent(item.content) || (item.content ?? null))}`;
  }),

  speaker({ role }) {
    if (role === "user") return "person";
    if (role === "assistant") return "model";
    return role === "tool" || role === "function" ? "tool" : "other";
  },

  text: (item) => textOfContent(item.content),
  calls: (item) => toolCalls(item).map(toCall),
  provided: () => [],
  answers: (item) => (typeof item.tool_call_id === "string" ? item.tool_call_id : undefined),
  failed: () => false,
  result: (call, text) => ({ role: "tool", tool_call_id: call.id, content: text }),
  leadsTo: () => false,
  message: (text) => ({ role: "user", content: text }),
  prefixed: (item, text) => ({ ...item, content: text + textOfContent(item.content) }),

  withoutCalls: (items, dropped) =>
    items.flatMap((item) => {
      const calls = toolCalls(item);
      const kept = calls.filter(({ id }) => id === undefined || !dropped.has(id));
      if (kept.length === calls.length) return [item];
      const { tool_calls: _, ...rest } = item;
      if (kept.length > 0) return [{ ...rest, tool_calls: kept }];
      return textOfContent(item.content) === "" ? [] : [rest];
    }),
};
