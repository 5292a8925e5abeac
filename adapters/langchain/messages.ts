// What the middleware reads from LangChain messages: boundaries, what was done, who said it.
import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import type { Activity, Boundary, ToolAction } from "agentrewind";

/** Marks messages that this middleware made. */
export const mark = "agentrewind";

/** Names the boundary behind a message. The type is part of it: a summary takes over the id of the first message that it replaces. */
export function anchorOf(message: BaseMessage): string {
  const source = message.additional_kwargs?.lc_source;
  return `${message.getType()}:${message.id ?? "none"}${typeof source === "string" ? `:${source}` : ""}`;
}

/** Newest first. */
export function boundariesOf(messages: readonly BaseMessage[]): Boundary[] {
  return messages
    .filter((message) => message.id !== undefined)
    .map((message) => ({ anchor: anchorOf(message), tool: message.getType() === "tool" }))
    .reverse();
}

export const textOf = (message: BaseMessage): string => message.text ?? "";

export function lastAiIndex(messages: readonly BaseMessage[]): number {
  return messages.findLastIndex((message) => AIMessage.isInstance(message));
}

/** What the model did in `messages`: its words, its calls and their results. */
export function activityOf(messages: readonly BaseMessage[]): Activity {
  const results = new Map<string, ToolMessage>();
  for (const message of messages) if (ToolMessage.isInstance(message)) results.set(message.tool_call_id, message);
  const said: string[] = [];
  const actions: ToolAction[] = [];
  for (const message of messages) {
    if (!AIMessage.isInstance(message)) continue;
    if (textOf(message).trim() !== "") said.push(textOf(message).trim());
    for (const call of message.tool_calls ?? []) {
      const result = call.id === undefined ? undefined : results.get(call.id);
      actions.push({
        tool: call.name,
        input: JSON.stringify(call.args),
        output: result === undefined ? "" : textOf(result),
        failed: result?.status === "error",
      });
    }
  }
  return { said: said.join("\n"), actions };
}

/** A message that a person sent, not one that a middleware made. */
export const isFromPerson = (message: BaseMessage): boolean =>
  HumanMessage.isInstance(message) &&
  message.additional_kwargs?.[mark] === undefined &&
  message.additional_kwargs?.lc_source === undefined;

/** The answers among `messages` that already reached the person: text without a call. */
export const deliveredIn = (messages: readonly BaseMessage[]): string[] =>
  messages
    .filter((message) => AIMessage.isInstance(message) && (message.tool_calls?.length ?? 0) === 0)
    .map(textOf)
    .filter((text) => text.trim() !== "");

/** The same reply with one of its calls only. */
export function withOnlyCall(reply: AIMessage, id: string | undefined): AIMessage {
  const dropped = new Set((reply.tool_calls ?? []).map((call) => call.id).filter((other) => other !== id));
  const isDropped = (block: unknown): boolean => {
    const { id: blockId, call_id: callId } = block as { id?: string; call_id?: string };
    return (blockId !== undefined && dropped.has(blockId)) || (callId !== undefined && dropped.has(callId));
  };
  const { tool_calls: raw, ...kwargs } = reply.additional_kwargs;
  return new AIMessage({
    content:
      typeof reply.content === "string" ? reply.content : (reply.content.filter((block) => !isDropped(block)) as never),
    tool_calls: (reply.tool_calls ?? []).filter((call) => call.id === id),
    additional_kwargs: raw === undefined ? kwargs : { ...kwargs, tool_calls: raw.filter((call) => call.id === id) },
    response_metadata: reply.response_metadata,
    ...(reply.id === undefined ? {} : { id: reply.id }),
    ...(reply.name === undefined ? {} : { name: reply.name }),
    ...(reply.usage_metadata === undefined ? {} : { usage_metadata: reply.usage_metadata }),
  });
}
