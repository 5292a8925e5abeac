// The AI SDK's prompts: an assistant's message holds its words and calls as parts; each result is a message of its own here.
import { type Call, canonical, digest, type Format, type Item } from "agentrewind/relay";

export interface Part {
  readonly type: string;
  readonly text?: string;
  readonly toolCallId?: string;
  readonly toolName?: string;
  readonly input?: unknown;
  /** By the model's provider: the result is the provider's too, and stands in an assistant's message. */
  readonly providerExecuted?: boolean;
  readonly output?: { readonly type: string; readonly value?: unknown; readonly reason?: string };
}

export const partsOf = (item: Item): readonly Part[] => {
  if (typeof item.content === "string") return [{ type: "text", text: item.content }];
  return Array.isArray(item.content) ? (item.content as Part[]) : [];
};

/** The input of a call is text in a reply and a value in a prompt. */
export const inputOf = (input: unknown): unknown => {
  if (typeof input !== "string") return input;
  try {
    return input.trim() === "" ? {} : JSON.parse(input);
  } catch {
    return input;
  }
};

const toCall = (part: Part): Call => ({
  id: part.toolCallId ?? "",
  name: part.toolName ?? "",
  arguments: canonical(inputOf(part.input) ?? {}),
});

const callsIn = (item: Item, provided: boolean): Part[] =>
  item.role === "assistant"
    ? partsOf(item).filter((part) => part.type === "tool-call" && (part.providerExecuted === true) === provided)
    : [];

const resultOf = (item: Item): Part | undefined =>
  item.role === "tool" ? partsOf(item).find((part) => part.type === "tool-result") : undefined;

const wordsOf = (item: Item): string =>
  partsOf(item)
    .filter((part) => part.type === "text")
    .map((part) => part.text ?? "")
    .join("");

export const prompts: Format = {
  name: "ai-sdk",
  callsApart: false,

  identity(item) {
    const calls = prompts.calls(item);
    if (calls.length > 0) return `calls:${digest(calls)}`;
    const answered = prompts.answers(item);
    if (answered !== undefined) return `result:${answered}`;
    const words = wordsOf(item);
    const provided = words === "" ? prompts.provided(item) : [];
    if (provided.length > 0) return `provided:${digest(provided)}`;
    return `${String(item.role)}:${digest(words || (item.content ?? null))}`;
  },

  speaker({ role }) {
    if (role === "user") return "person";
    if (role === "assistant") return "model";
    return role === "tool" ? "tool" : "other";
  },

  text(item) {
    const result = resultOf(item)?.output;
    if (result === undefined) return wordsOf(item);
    const { value, reason } = result;
    return typeof value === "string" ? value : (reason ?? JSON.stringify(value ?? ""));
  },

  calls: (item) => callsIn(item, false).map(toCall),
  provided: (item) => callsIn(item, true).map(({ toolCallId = "" }) => toolCallId),
  answers: (item) => resultOf(item)?.toolCallId,
  failed: (item) => resultOf(item)?.output?.type.startsWith("error") === true,

  result: (call, text) => ({
    role: "tool",
    content: [{ type: "tool-result", toolCallId: call.id, toolName: call.name, output: { type: "text", value: text } }],
  }),

  leadsTo: () => false,
  message: (text) => ({ role: "user", content: [{ type: "text", text }] }),
  prefixed: (item, text) => ({ ...item, content: [{ type: "text", text }, ...partsOf(item)] }),

  withoutCalls: (items, dropped) =>
    items.flatMap((item) => {
      const parts = partsOf(item);
      const kept = parts.filter((part) => part.type !== "tool-call" || !dropped.has(part.toolCallId ?? ""));
      if (kept.length === parts.length) return [item];
      return kept.some((part) => part.type === "tool-call" || part.type === "text") ? [{ ...item, content: kept }] : [];
    }),
};

/** One message for each result. */
export const splitResults = (prompt: readonly Item[]): Item[] =>
  prompt.flatMap((item) => {
    const parts = partsOf(item);
    return item.role === "tool" && parts.length > 1 ? parts.map((part) => ({ ...item, content: [part] })) : [item];
  });

/** Neighbouring results as one message again, as providers expect them. */
export function joinResults(items: readonly Item[]): Item[] {
  const joined: Item[] = [];
  for (const item of items) {
    const last = joined.at(-1);
    if (item.role === "tool" && last?.role === "tool") {
      joined[joined.length - 1] = { ...last, content: [...partsOf(last), ...partsOf(item)] };
    } else joined.push(item);
  }
  return joined;
}
