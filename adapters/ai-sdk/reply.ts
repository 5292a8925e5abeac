// What a model of the AI SDK answers: its parts as the relay's items, and as the parts of a stream.
import type { Item } from "agentrewind/relay";
import type { LanguageModelMiddleware } from "ai";
import { inputOf } from "./format.ts";

export type Generated = Awaited<ReturnType<NonNullable<LanguageModelMiddleware["wrapGenerate"]>>>;
export type Content = Generated["content"][number];
export type Streamed = Awaited<ReturnType<NonNullable<LanguageModelMiddleware["wrapStream"]>>>;
export type StreamPart = Streamed["stream"] extends ReadableStream<infer Part> ? Part : never;

/** What of a reply is kept for a loop that starts over. JSON. */
export type Raw = Pick<Generated, "content" | "finishReason" | "usage">;

export const rawOf = ({ content, finishReason, usage }: Raw): Raw => ({
  content: content.map((part) =>
    part.type === "file" && typeof part.data !== "string"
      ? { ...part, data: Buffer.from(part.data).toString("base64") }
      : part,
  ),
  finishReason,
  usage,
});

/** The reply as the message that later prompts have of it. */
export function itemsOf(content: readonly Content[]): Item[] {
  const parts = content.flatMap((part): object[] => {
    const own = promptPart(part);
    if (own === undefined) return [];
    const { providerMetadata } = part as { providerMetadata?: unknown };
    return [providerMetadata === undefined ? own : { ...own, providerOptions: providerMetadata }];
  });
  return parts.length === 0 ? [] : [{ role: "assistant", content: parts }];
}

/** Undefined for what prompts do not have. */
function promptPart(part: Content): object | undefined {
  if (part.type === "text" || part.type === "reasoning") return { type: part.type, text: part.text };
  if (part.type === "file") return { type: "file", data: part.data, mediaType: part.mediaType };
  if (part.type === "tool-call") {
    const { toolCallId, toolName, input, providerExecuted } = part;
    const call = { type: "tool-call", toolCallId, toolName, input: inputOf(input) };
    return providerExecuted === true ? { ...call, providerExecuted } : call;
  }
  if (part.type === "tool-result" && part.preliminary !== true) {
    const { toolCallId, toolName } = part;
    return { type: "tool-result", toolCallId, toolName, output: outputOf(part) };
  }
  return undefined;
}

function outputOf({ result, isError }: Extract<Content, { type: "tool-result" }>): object {
  if (isError === true) return { type: "error-json", value: result };
  return typeof result === "string" ? { type: "text", value: result } : { type: "json", value: result };
}

/** The reply without these calls. */
export function without<Reply extends Pick<Generated, "content" | "finishReason">>(
  reply: Reply,
  dropped: ReadonlySet<string>,
): Reply {
  if (dropped.size === 0) return reply;
  const content = reply.content.filter((part) => part.type !== "tool-call" || !dropped.has(part.toolCallId));
  return { ...reply, content, finishReason: finishOf(reply.finishReason, content) };
}

const finishOf = (finish: Generated["finishReason"], content: readonly Content[]): Generated["finishReason"] =>
  finish.unified === "tool-calls" &&
  !content.some((part) => part.type === "tool-call" && part.providerExecuted !== true)
    ? { unified: "stop", raw: finish.raw }
    : finish;

/** Puts a stream together again. */
export class Collected {
  readonly #content: Content[] = [];
  readonly #open = new Map<string, { type: "text" | "reasoning"; text: string; providerMetadata?: unknown }>();
  finish: Pick<Generated, "finishReason" | "usage"> | undefined;

  push(part: StreamPart): void {
    if (part.type === "text-start" || part.type === "reasoning-start") {
      const block = { type: part.type === "text-start" ? ("text" as const) : ("reasoning" as const), text: "" };
      this.#open.set(part.id, block);
      this.#content.push(block);
      this.#describe(part);
    } else if (part.type === "text-delta" || part.type === "reasoning-delta") {
      const block = this.#open.get(part.id);
      if (block !== undefined) block.text += part.delta;
      this.#describe(part);
    } else if (part.type === "text-end" || part.type === "reasoning-end") this.#describe(part);
    else if (part.type === "finish") this.finish = { finishReason: part.finishReason, usage: part.usage };
    else if (isContent(part)) this.#content.push(part);
  }

  /** What was said of a block last holds: a signature may come with any part of it. */
  #describe({ id, providerMetadata }: { readonly id: string; readonly providerMetadata?: unknown }): void {
    const block = this.#open.get(id);
    if (block !== undefined && providerMetadata !== undefined) block.providerMetadata = providerMetadata;
  }

  /** Undefined where the stream broke off. */
  get reply(): Raw | undefined {
    return this.finish === undefined ? undefined : { content: this.#content, ...this.finish };
  }
}

const isContent = (part: StreamPart): part is StreamPart & Content =>
  ["tool-call", "tool-result", "file", "source", "tool-approval-request"].includes(part.type);

/** The parts of a stream that give the reply. */
export function partsFor({ content, finishReason, usage }: Raw): StreamPart[] {
  const parts: StreamPart[] = [];
  for (const [at, part] of content.entries()) {
    const id = `again-${at}`;
    if (part.type === "text") {
      parts.push({ type: "text-start", id }, { type: "text-delta", id, delta: part.text }, { type: "text-end", id });
    } else if (part.type === "reasoning") {
      parts.push(
        { type: "reasoning-start", id },
        { type: "reasoning-delta", id, delta: part.text },
        {
          type: "reasoning-end",
          id,
          ...(part.providerMetadata === undefined ? {} : { providerMetadata: part.providerMetadata }),
        },
      );
    } else if (part.type === "tool-call") {
      parts.push({ type: "tool-input-start", id: part.toolCallId, toolName: part.toolName });
      parts.push({ type: "tool-input-delta", id: part.toolCallId, delta: part.input });
      parts.push({ type: "tool-input-end", id: part.toolCallId }, part);
    } else parts.push(part as StreamPart);
  }
  return [...parts, { type: "finish", finishReason, usage }];
}
