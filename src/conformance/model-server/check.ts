// What a strict provider refuses: bodies of the wrong shape, and tool calls and results that do not pair up.
import { z } from "zod";
import type { ChatRequest, Message } from "./wire.ts";

/** The `error` object of a refused request. */
export interface Refusal {
  readonly message: string;
  readonly type: "invalid_request_error";
  readonly param: string | null;
  readonly code: string | null;
}

const part = z.looseObject({ type: z.string().min(1) });
const content = z.union([z.string().min(1, "must not be empty"), z.array(part).min(1, "must not be empty")]);
const name = z.string().min(1).optional();

const toolCall = z.strictObject({
  id: z.string().min(1),
  type: z.literal("function"),
  function: z.strictObject({ name: z.string().min(1), arguments: z.string() }),
});

// Strict objects: a field that the provider does not know is a field that leaked out of a client.
const message = z.discriminatedUnion("role", [
  z.strictObject({ role: z.literal("system"), content, name }),
  z.strictObject({ role: z.literal("developer"), content, name }),
  z.strictObject({ role: z.literal("user"), content, name }),
  z.strictObject({
    role: z.literal("assistant"),
    content: z.union([z.string(), z.array(part)]).nullish(),
    tool_calls: z.array(toolCall).min(1, "must not be empty").optional(),
    refusal: z.string().nullish(),
    name,
  }),
  z.strictObject({
    role: z.literal("tool"),
    content: z.union([z.string(), z.array(part)]),
    tool_call_id: z.string().min(1),
    name,
  }),
]);

const body = z.looseObject({
  model: z.string().min(1),
  messages: z.array(message).min(1, "must not be empty"),
  tools: z
    .array(
      z.looseObject({
        type: z.literal("function"),
        function: z.looseObject({ name: z.string().regex(/^[\w-]{1,64}$/), parameters: z.looseObject({}).optional() }),
      }),
    )
    .min(1, "must not be empty")
    .optional(),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().optional() }).nullish(),
});

function refusal(message: string, param: string | null, code: string | null = null): Refusal {
  return { message, type: "invalid_request_error", param, code };
}

function paramOf(path: readonly PropertyKey[]): string | null {
  const text = path.map((key) => (typeof key === "number" ? `[${key}]` : `.${String(key)}`)).join("");
  return text === "" ? null : text.replace(/^\./, "");
}

/** The request, or why it is refused. */
export function checkRequest(value: unknown): { request: ChatRequest } | { refused: Refusal } {
  const parsed = body.safeParse(value);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    const param = paramOf(issue?.path ?? []);
    return { refused: refusal(`Invalid value for '${param ?? "body"}': ${issue?.message ?? "wrong shape"}.`, param) };
  }
  const request = value as ChatRequest;
  const refused = checkPairing(request.messages);
  return refused === null ? { request } : { refused };
}

/** Every tool call is answered exactly once, directly behind its message, and nothing else is answered. */
function checkPairing(messages: readonly Message[]): Refusal | null {
  const seen = new Set<string>();
  let open = new Set<string>();
  let called = new Set<string>();
  for (const [index, item] of messages.entries()) {
    const param = `messages[${index}]`;
    if (item.role === "tool") {
      const id = item.tool_call_id;
      if (open.delete(id)) continue;
      const why = called.has(id) ? "was answered before" : "is not a tool call of the assistant message before it";
      return refusal(`Tool message for '${id}': this id ${why}.`, `${param}.tool_call_id`);
    }
    const unanswered = refuseOpen(open, param);
    if (unanswered !== null) return unanswered;
    open = new Set();
    called = new Set();
    if (item.role !== "assistant") continue;
    const calls = item.tool_calls ?? [];
    if (calls.length === 0 && (item.content ?? "").length === 0) {
      return refusal("An assistant message needs content or tool calls.", `${param}.content`);
    }
    for (const { id } of calls) {
      if (seen.has(id)) return refusal(`The tool call id '${id}' is used twice.`, `${param}.tool_calls`);
      seen.add(id);
      open.add(id);
      called.add(id);
    }
  }
  return refuseOpen(open, `messages[${messages.length - 1}]`);
}

function refuseOpen(open: ReadonlySet<string>, param: string): Refusal | null {
  if (open.size === 0) return null;
  return refusal(`These tool calls have no tool message that answers them: ${[...open].join(", ")}.`, param);
}
