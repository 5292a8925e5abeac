// The agent's state channels besides the messages: which there are, what kind, and the update that puts them back.
import { Overwrite } from "@langchain/langgraph";
import { langchainSerializer } from "./serializer.ts";

/** A compiled agent, as far as it is looked into here. */
export interface AgentLike {
  readonly graph: { readonly channels: Readonly<Record<string, unknown>> };
  readonly options?: { readonly middleware?: readonly { readonly name?: string; readonly wrapToolCall?: unknown }[] };
}

export type ChannelKinds = ReadonlyMap<string, "LastValue" | "BinaryOperatorAggregate" | "DeltaChannel">;

/** Not the agent's state: how the framework runs its graph. */
const internal = new Set(["messages", "jumpTo", "structuredResponse", "lg_tool_call", "remainingSteps"]);

/** A rewind must not win back calls: a loop of rewinds would never reach the limit of langchain's call-limit middleware. */
const counters = new Set(["threadModelCallCount", "runModelCallCount", "threadToolCallCount", "runToolCallCount"]);

const restorable = new Set(["LastValue", "BinaryOperatorAggregate", "DeltaChannel"]);

const isOwn = (name: string): boolean =>
  !internal.has(name) && !counters.has(name) && !name.startsWith("__") && !name.startsWith("branch:");

export function kindsOf(agent: AgentLike): ChannelKinds {
  const kinds = new Map<string, "LastValue" | "BinaryOperatorAggregate" | "DeltaChannel">();
  for (const [name, channel] of Object.entries(agent.graph.channels)) {
    const kind = (channel as { lc_graph_name?: string }).lc_graph_name;
    if (isOwn(name) && kind !== undefined && restorable.has(kind)) kinds.set(name, kind as "LastValue");
  }
  return kinds;
}

/** How many of the agent's middlewares wrap its tools. */
export const toolWrappersOf = (agent: AgentLike): number =>
  (agent.options?.middleware ?? []).filter((one) => one.wrapToolCall !== undefined).length;

/** The channels of a task's input that belong to the pair. */
export function ownChannels(state: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(state).filter(([name, value]) => isOwn(name) && value !== undefined));
}

/** Names of the channels whose values differ, also where only one side has them. */
export async function differingChannels(
  from: Readonly<Record<string, unknown>>,
  to: Readonly<Record<string, unknown>>,
): Promise<string[]> {
  const differing: string[] = [];
  for (const name of new Set([...Object.keys(from), ...Object.keys(to)])) {
    if (!(await sameValue(from[name], to[name]))) differing.push(name);
  }
  return differing;
}

async function sameValue(a: unknown, b: unknown): Promise<boolean> {
  if (a === undefined || b === undefined) return a === b;
  const [left, right] = [await langchainSerializer.encode(a), await langchainSerializer.encode(b)];
  return Buffer.from(left).equals(right);
}

/** The update that gives each named channel its old value; a channel that had none is unset again. */
export function channelUpdate(
  names: readonly string[],
  wanted: Readonly<Record<string, unknown>>,
  kinds: ChannelKinds,
): Record<string, unknown> {
  const update: Record<string, unknown> = {};
  for (const name of names) {
    const kind = kinds.get(name);
    if (kind !== undefined) update[name] = kind === "LastValue" ? wanted[name] : new Overwrite(wanted[name]);
  }
  return update;
}
