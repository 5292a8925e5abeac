// A graph's state channels besides the messages: which there are, what kind, and the update that puts them back.
import { Overwrite } from "@langchain/langgraph";
import { langchainSerializer } from "./serializer.ts";

export type ChannelKinds = ReadonlyMap<string, "LastValue" | "BinaryOperatorAggregate" | "DeltaChannel">;

const restorable = new Set(["LastValue", "BinaryOperatorAggregate", "DeltaChannel"]);

/** Whether a channel is the agent's own state; its messages are not among these. */
export type IsOwn = (name: string) => boolean;

export function ownBut(others: readonly string[]): IsOwn {
  const excluded = new Set(others);
  return (name) => !excluded.has(name) && !name.startsWith("__") && !name.startsWith("branch:");
}

/** @param channels of a compiled graph */
export function kindsOf(channels: Readonly<Record<string, unknown>>, isOwn: IsOwn): ChannelKinds {
  const kinds = new Map<string, "LastValue" | "BinaryOperatorAggregate" | "DeltaChannel">();
  for (const [name, channel] of Object.entries(channels)) {
    const kind = (channel as { lc_graph_name?: string }).lc_graph_name;
    if (isOwn(name) && kind !== undefined && restorable.has(kind)) kinds.set(name, kind as "LastValue");
  }
  return kinds;
}

/** The channels of a task's input that belong to the pair. */
export function ownChannels(state: Readonly<Record<string, unknown>>, isOwn: IsOwn): Record<string, unknown> {
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
