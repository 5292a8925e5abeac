// What the writes of a task say: that tools are asked for, that tools have run.
import { type BaseMessage, isBaseMessage, ToolMessage } from "@langchain/core/messages";
import type { PendingWrite } from "@langchain/langgraph-checkpoint";
import { callsOf } from "../graph-state/messages.ts";
import { toolNames } from "../graph-state/tools.ts";

const messagesIn = (writes: readonly PendingWrite[]): BaseMessage[] =>
  writes.flatMap(([, value]) => (Array.isArray(value) ? value : [value])).filter(isBaseMessage);

const isOwn = (name: string | undefined): boolean => name !== undefined && toolNames.has(name);

export const asksForTools = (writes: readonly PendingWrite[]): boolean =>
  messagesIn(writes).some((message) => callsOf(message).some(({ name }) => !isOwn(name)));

export const holdsToolResults = (writes: readonly PendingWrite[]): boolean =>
  messagesIn(writes).some((message) => ToolMessage.isInstance(message) && !isOwn(message.name));
