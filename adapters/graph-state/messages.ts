// What is read from LangChain messages: boundaries, what was done, who said it.
import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import type { Activity, Boundary, ToolAction } from "agentrewind";
import { known } from "./known.ts";

/** Marks messages that were made here. */
export const mark = "agentrewind";

/**
 * Names the boundary behind each message; undefined where nothing names it for good.
 * The type is part of it: a summary takes over the id of the first message that it replaces. A tool's result is named by its call: a middleware that
 * clears old results puts messages without ids in their place.
 */
export const anchorsOf = (messages: readonly BaseMessage[]): (string | undefined)[] =>
  known(messages).anchors.slice(0, messages.length);

/** Newest first, each made when it is asked for. */
export function boundariesOf(messages: readonly BaseMessage[]): Iterable<Boundary> {
  return {
    *[Symbol.iterator]() {
      const anchors = anchorsOf(messages);
      for (let at = messages.length - 1; at >= 0; at--) {
        const message = messages[at] as BaseMessage;
        const anchor = anchors[at];
        if (anchor === undefined) continue;
        const call = ToolMessage.isInstance(message) ? message.tool_call_id : undefined;
        yield { anchor, tool: message.getType() === "tool", call, ...returnedToOf(message) };
      }
    },
  };
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

/** Nothing of a model's is among them yet, and nothing of ours. */
export const isBegin = (messages: readonly BaseMessage[]): boolean =>
  !messages.some((message) => AIMessage.isInstance(message) || message.additional_kwargs?.[mark] !== undefined);

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
