// Which channels of a createAgent agent are its state, and what else is looked up in the agent.
import { ownBut } from "../graph-state/channels.ts";

/** A compiled agent, as far as it is looked into here. */
export interface AgentLike {
  readonly graph: { readonly channels: Readonly<Record<string, unknown>> };
  readonly options?: { readonly middleware?: readonly { readonly name?: string; readonly wrapToolCall?: unknown }[] };
}

/** Not the agent's state: how the framework runs its graph. */
const internal = ["messages", "jumpTo", "structuredResponse", "lg_tool_call", "remainingSteps"];

/** A rewind must not win back calls: a loop of rewinds would never reach the limit of langchain's call-limit middleware. */
const counters = ["threadModelCallCount", "runModelCallCount", "threadToolCallCount", "runToolCallCount"];

export const isOwn = ownBut([...internal, ...counters]);

/** How many of the agent's middlewares wrap its tools. */
export const toolWrappersOf = (agent: AgentLike): number =>
  (agent.options?.middleware ?? []).filter((one) => one.wrapToolCall !== undefined).length;
