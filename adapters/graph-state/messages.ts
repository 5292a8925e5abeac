// What is read from LangChain messages: boundaries, what was done, who said it.
import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import type { Activity, Boundary, ToolAction } from "agentrewind";

/** Marks messages that were made here. */
export const mark = "agentrewind";

/**
 * Names the boundary behind each message; undefined where nothing names it for good.
 * The type is part of it: a summary takes over the id of the first message that it replaces. A tool's result is named by its call: a middleware that
 * clears old results puts messages without ids in their place.
 */
export function anchorsOf(messages: readonly BaseMessage[]): (string | undefined)[] {
  const callers = new Map<string, string>();
  return messages.map((message) => {
    if (AIMessage.isInstance(message)) {
      for (const { id } of message.tool_calls ?? []) {
        if (id !== undefined && message.id !== undefined) callers.set(id, message.id);
      }
    }
    const caller = ToolMessage.isInstance(message) ? callers.get(message.tool_call_id) : undefined;
    if (caller !== undefined) return `tool:${caller}/${(message as ToolMessage).tool_call_id}`;
    if (message.id === undefined) return undefined;
    const source = message.additional_kwargs?.lc_source;
    return `${message.getType()}:${message.id}${typeof source === "string" ? `:${source}` : ""}`;
  });
}

/** Newest first. */
export function boundariesOf(messages: readonly BaseMessage[]): Boundary[] {
  const anchors = anchorsOf(messages);
  return messages
    .flatMap((message, index): Boundary[] => {
      const anchor = anchors[index];
      return anchor === undefined ? [] : [{ anchor, tool: message.getType() === "tool", ...returnedToOf(message) }];
    })
    .reverse();
}

/** @see tellMessage */
function returnedToOf(message: BaseMessage): { returnedTo?: string } {
  const { checkpoint } = (message.additional_kwargs?.[mark] ?? {}) as { checkpoint?: unknown };
  return typeof checkpoint === "string" ? { returnedTo: checkpoint } : {};
}

export const textOf = (message: BaseMessage): string => message.text ?? "";

export function lastAiIndex(messages: readonly BaseMessage[]): number {
  return messages.findLastIndex((message) => AIMessage.isInstance(message));
}

export const callsOf = (message: unknown): NonNullable<AIMessage["tool_calls"]> =>
  AIMessage.isInstance(message) ? (message.tool_calls ?? []) : [];

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
  HumanMessage.isInstance(message) && message.additional_kwargs?.[mark] === undefined && !isSummary(message);

/** Stands for older messages, also for a person's. */
export const isSummary = (message: BaseMessage): boolean => message.additional_kwargs?.lc_source !== undefined;

/** The answers among `messages` that already reached the person: text without a call. */
export const deliveredIn = (messages: readonly BaseMessage[]): string[] =>
  messages
    .filter((message) => AIMessage.isInstance(message) && (message.tool_calls?.length ?? 0) === 0)
    .map(textOf)
    .filter((text) => text.trim() !== "");
