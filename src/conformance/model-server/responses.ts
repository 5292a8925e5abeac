// The Responses API of the model server: the same model, other words. Refuses what the provider refuses: calls and results that do not pair up, reasoning
// that has lost what followed it, replies that are not stored.
import { randomBytes } from "node:crypto";
import { z } from "zod";
import type { Refusal } from "./check.ts";
import type { ChatRequest, Message, Reply, ToolCall } from "./wire.ts";

type Item = Readonly<Record<string, unknown>>;

export interface ResponsesRequest {
  readonly model: string;
  readonly input: string | readonly Item[];
  readonly instructions?: string | null;
  readonly previous_response_id?: string | null;
  readonly store?: boolean | null;
  readonly stream?: boolean | null;
  readonly tools?: readonly Item[];
}

const body = z.looseObject({
  model: z.string().min(1),
  input: z.union([z.string().min(1), z.array(z.looseObject({}))]),
  tools: z.array(z.looseObject({ type: z.string() })).optional(),
});

/** Conversations by the name of the reply that ends them. */
export type Stored = Map<string, readonly Item[]>;

const refusal = (message: string, param: string | null, code: string | null = null): Refusal => ({
  message,
  type: "invalid_request_error",
  param,
  code,
});

/** The whole conversation, and the same request as Chat Completions would have it; or why it is refused. */
export function readResponses(
  value: unknown,
  stored: Stored,
):
  | { readonly items: readonly Item[]; readonly request: ChatRequest; readonly asked: ResponsesRequest }
  | { readonly refused: Refusal; readonly status: number } {
  const parsed = body.safeParse(value);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    return { refused: refusal(`Invalid value for '${issue?.path.join(".")}': ${issue?.message}.`, null), status: 400 };
  }
  const asked = value as ResponsesRequest;
  const previous = asked.previous_response_id ?? undefined;
  const before = previous === undefined ? [] : stored.get(previous);
  if (before === undefined) {
    const message = `Previous response with id '${previous}' not found.`;
    return { refused: refusal(message, "previous_response_id", "previous_response_not_found"), status: 404 };
  }
  const input = typeof asked.input === "string" ? [{ role: "user", content: asked.input }] : asked.input;
  const items = [...before, ...input];
  const refused = checkItems(items);
  if (refused !== null) return { refused, status: 400 };
  const tools = (asked.tools ?? []).map(
    (tool) => ({ type: "function", function: { name: String(tool.name) } }) as const,
  );
  const system: Message[] = asked.instructions ? [{ role: "system", content: asked.instructions }] : [];
  const request: ChatRequest = {
    model: asked.model,
    messages: [...system, ...asMessages(items)],
    ...(tools.length === 0 ? {} : { tools }),
    ...(asked.stream === undefined ? {} : { stream: asked.stream }),
  };
  return { items, request, asked };
}

function checkItems(items: readonly Item[]): Refusal | null {
  const called = new Set<unknown>();
  const answered = new Set<unknown>();
  for (const [index, item] of items.entries()) {
    const param = `input[${index}]`;
    if (item.type === "function_call") {
      if (called.has(item.call_id)) return refusal(`Duplicate call_id ${String(item.call_id)}.`, param);
      called.add(item.call_id);
    }
    if (item.type === "function_call_output") {
      const id = String(item.call_id);
      if (!called.has(id)) return refusal(`No tool call found for function call output with call_id ${id}.`, param);
      if (answered.has(id)) return refusal(`Two outputs for call_id ${id}.`, param);
      answered.add(id);
    }
    if (item.type === "reasoning") {
      const next = items[index + 1];
      const follows = next?.type === "function_call" || next?.type === "reasoning" || next?.role === "assistant";
      if (!follows) {
        return refusal(
          `Item '${String(item.id)}' of type 'reasoning' was provided without its required following item.`,
          param,
        );
      }
    }
  }
  const open = [...called].filter((id) => !answered.has(id));
  return open.length === 0 ? null : refusal(`No tool output found for function call ${String(open[0])}.`, "input");
}

function asMessages(items: readonly Item[]): Message[] {
  const messages: Message[] = [];
  let calls: ToolCall[] = [];
  let said: string | null = null;
  const flush = (): void => {
    if (said !== null || calls.length > 0) {
      messages.push({ role: "assistant", content: said, ...(calls.length === 0 ? {} : { tool_calls: calls }) });
    }
    said = null;
    calls = [];
  };
  for (const item of items) {
    if (item.type === "function_call") {
      const called = { name: String(item.name), arguments: String(item.arguments) };
      calls.push({ id: String(item.call_id), type: "function", function: called });
    } else if (item.type === "function_call_output") {
      flush();
      messages.push({ role: "tool", tool_call_id: String(item.call_id), content: wordsOf(item.output) });
    } else if (item.role === "assistant") {
      flush();
      said = wordsOf(item.content);
    } else if (item.role !== undefined) {
      flush();
      messages.push({ role: item.role as "user", content: wordsOf(item.content) });
    }
  }
  flush();
  return messages;
}

const wordsOf = (content: unknown): string =>
  typeof content === "string"
    ? content
    : ((content as readonly { text?: string }[] | undefined) ?? []).map((part) => part.text ?? "").join("");

const newId = (prefix: string): string => `${prefix}_${randomBytes(12).toString("hex")}`;

/** The reply as the API gives it. Every reply thinks first. */
export function responseOf(
  asked: ResponsesRequest,
  reply: Reply,
): Item & { readonly id: string; readonly output: readonly Item[] } {
  const output: Item[] = [{ type: "reasoning", id: newId("rs"), summary: [] }];
  if (reply.content !== undefined || (reply.toolCalls ?? []).length === 0) {
    const part = { type: "output_text", text: reply.content ?? "", annotations: [] };
    output.push({ type: "message", id: newId("msg"), role: "assistant", status: "completed", content: [part] });
  }
  for (const call of reply.toolCalls ?? []) {
    const called = { name: call.name, arguments: JSON.stringify(call.args) };
    output.push({
      type: "function_call",
      id: newId("fc"),
      call_id: call.id ?? newId("call"),
      status: "completed",
      ...called,
    });
  }
  return {
    id: newId("resp"),
    object: "response",
    created_at: Math.floor(Date.now() / 1000),
    status: "completed",
    model: asked.model,
    output,
    parallel_tool_calls: true,
    previous_response_id: asked.previous_response_id ?? null,
    store: asked.store !== false,
    tools: asked.tools ?? [],
    usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
  };
}

/** The same as the events of a stream. */
export function responseEvents(response: Item & { readonly output: readonly Item[] }): object[] {
  const events: Item[] = [];
  const add = (type: string, data: Item): void => void events.push({ type, sequence_number: events.length, ...data });
  const begun = { ...response, status: "in_progress", output: [], usage: null };
  add("response.created", { response: begun });
  add("response.in_progress", { response: begun });
  for (const [index, item] of response.output.entries()) {
    const at = { output_index: index, item_id: item.id };
    if (item.type === "function_call") {
      add("response.output_item.added", {
        output_index: index,
        item: { ...item, arguments: "", status: "in_progress" },
      });
      for (const part of pieces(String(item.arguments)))
        add("response.function_call_arguments.delta", { ...at, delta: part });
      add("response.function_call_arguments.done", { ...at, name: item.name, arguments: item.arguments });
    } else if (item.type === "message") {
      const [part] = item.content as [{ readonly text: string }];
      add("response.output_item.added", { output_index: index, item: { ...item, content: [], status: "in_progress" } });
      add("response.content_part.added", { ...at, content_index: 0, part: { ...part, text: "" } });
      for (const word of pieces(part.text)) add("response.output_text.delta", { ...at, content_index: 0, delta: word });
      add("response.output_text.done", { ...at, content_index: 0, text: part.text });
      add("response.content_part.done", { ...at, content_index: 0, part });
    } else add("response.output_item.added", { output_index: index, item });
    add("response.output_item.done", { output_index: index, item });
  }
  add("response.completed", { response });
  return events;
}

const pieces = (text: string): string[] => text.match(/.{1,6}/gs) ?? [];
