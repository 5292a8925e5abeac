// Which of our threads a run of the agent belongs to.
import { randomBytes } from "node:crypto";
import type { BaseMessage } from "@langchain/core/messages";
import type { Rewind, Thread } from "agentrewind";
import { anchorsOf, isBegin } from "./messages.ts";
import { langchainSerializer } from "./serializer.ts";

interface Configurable {
  readonly thread_id?: unknown;
  readonly checkpoint_ns?: unknown;
  readonly checkpoint_map?: Readonly<Record<string, string>>;
}

export interface Threads {
  /** For a model call. By `thread_id`; without one, by messages seen earlier in the same run. An agent inside of a graph has a thread of its own. */
  ofModelCall(configurable: unknown, messages: readonly BaseMessage[]): Thread;
  /** For the tools of a reply. @param messages those before the reply */
  ofTools(configurable: unknown, messages: readonly BaseMessage[]): Thread;
  /** The thread of the whole graph, also inside of a part of it; undefined for a run without `thread_id`. */
  ofGraph(configurable: unknown): Thread | undefined;
}

/** Runs without `thread_id` end with their process; the oldest are forgotten. */
const keysKept = 10_000;

export function makeThreads(rewind: Rewind, fixed: string | undefined, restoresChannels: () => boolean): Threads {
  const runs = new Map<string, string>();

  function remember(key: string, name: string): void {
    runs.delete(key);
    runs.set(key, name);
    const oldest = runs.keys().next();
    if (runs.size > keysKept && oldest.done !== true) runs.delete(oldest.value);
  }

  /** @param start LangGraph's checkpoint: before the first reply, it tells a new run with the same messages from a repeated call */
  function runOf(messages: readonly BaseMessage[], start: string | undefined): string {
    const anchors = anchorsOf(messages).filter((anchor) => anchor !== undefined);
    const keys = start === undefined || !isBegin(messages) ? anchors : [`start:${start}`];
    const name = keys.map((key) => runs.get(key)).findLast((one) => one !== undefined) ?? `run-${randomHex()}`;
    for (const key of [keys[0], anchors[0], anchors.at(-1)]) if (key !== undefined) remember(key, name);
    return name;
  }

  const named = (id: unknown): string | undefined =>
    fixed ?? (typeof id === "string" || typeof id === "number" ? `${id}` : undefined);
  const open = (name: string): Thread => rewind.thread(name, { serializer: langchainSerializer, restoresChannels });

  function thread(
    { thread_id: id, checkpoint_ns: namespace }: Configurable,
    messages: readonly BaseMessage[],
    start: string | undefined,
  ): Thread {
    const base = named(id) ?? runOf(messages, start);
    const path = typeof namespace === "string" ? namespace.split("|").slice(0, -1).map(stepName) : [];
    return open([base, ...path].join("/"));
  }

  return {
    ofModelCall(configurable, messages) {
      const given = (configurable ?? {}) as Configurable;
      return thread(given, messages, given.checkpoint_map?.[""]);
    },
    ofTools: (configurable, messages) => thread((configurable ?? {}) as Configurable, messages, undefined),
    ofGraph(configurable) {
      const name = named((configurable as Configurable | undefined)?.thread_id);
      return name === undefined ? undefined : open(name);
    },
  };
}

const randomHex = (): string => randomBytes(4).toString("hex");

/** An agent that is a node keeps its conversation from one run of the graph to the next; one that a tool calls has a new one each time. */
function stepName(step: string): string {
  const [name = "", task = ""] = step.split(":");
  return name === "tools" ? `${name}:${task.slice(0, 8)}` : name;
}
