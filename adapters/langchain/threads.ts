// Which of our threads a run of the agent belongs to.
import { randomBytes } from "node:crypto";
import type { BaseMessage } from "@langchain/core/messages";
import type { Rewind, Thread } from "agentrewind";
import { anchorOf } from "./messages.ts";
import { langchainSerializer } from "./serializer.ts";

interface Configurable {
  readonly thread_id?: unknown;
  readonly checkpoint_ns?: unknown;
}

export interface Threads {
  /** By `thread_id`; without one, by messages seen earlier in the same run. An agent inside of a graph has a thread of its own. */
  of(configurable: unknown, messages: readonly BaseMessage[]): Thread;
}

export function makeThreads(rewind: Rewind, fixed: string | undefined): Threads {
  const runs = new Map<string, string>();

  function runOf(messages: readonly BaseMessage[]): string {
    const anchors = messages.filter((message) => message.id !== undefined).map(anchorOf);
    const known = anchors.map((anchor) => runs.get(anchor)).findLast((name) => name !== undefined);
    const name = known ?? `run-${randomBytes(4).toString("hex")}`;
    const last = anchors.at(-1);
    if (last !== undefined) runs.set(last, name);
    return name;
  }

  return {
    of(configurable, messages) {
      const { thread_id: id, checkpoint_ns: namespace } = (configurable ?? {}) as Configurable;
      const base = fixed ?? (typeof id === "string" || typeof id === "number" ? `${id}` : runOf(messages));
      const path = typeof namespace === "string" ? namespace.split("|").slice(0, -1) : [];
      const nested = path.map((step) => step.split(":")[0]).join("/");
      return rewind.thread(nested === "" ? base : `${base}/${nested}`, { serializer: langchainSerializer });
    },
  };
}
