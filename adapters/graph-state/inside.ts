// Graphs that run inside of a tool or node: their states are kept, and a resumed run goes on from them instead of beginning again.
import { ToolMessage } from "@langchain/core/messages";
import type { BaseCheckpointSaver, CheckpointTuple } from "@langchain/langgraph-checkpoint";

interface Configurable {
  readonly thread_id?: unknown;
  readonly checkpoint_ns?: string;
  readonly checkpoint_map?: Readonly<Record<string, string>>;
  readonly __pregel_checkpointer?: BaseCheckpointSaver;
}

/** Whether LangGraph has kept states of what ran inside of the tasks of this step, in which tools or nodes have ended already. */
export async function goesOnInside(configurable: unknown): Promise<boolean> {
  const {
    thread_id: thread,
    checkpoint_ns: namespace = "",
    checkpoint_map: map = {},
    __pregel_checkpointer: saver,
  } = (configurable ?? {}) as Configurable;
  if (saver === undefined || thread === undefined) return false;
  const around = namespace.split("|").slice(0, -1).join("|");
  const isInside = ({ config, metadata }: CheckpointTuple): boolean => {
    const { checkpoint_ns: inner = "" } = (config.configurable ?? {}) as Configurable;
    const below = around === "" ? inner !== "" : inner.startsWith(`${around}|`);
    return below && metadata?.parents?.[around] === map[around];
  };
  for await (const tuple of saver.list({ configurable: { thread_id: thread } })) {
    if (isInside(tuple) && hasResults(tuple)) return true;
  }
  return false;
}

function hasResults({ checkpoint, metadata, pendingWrites = [] }: CheckpointTuple): boolean {
  const { messages } = checkpoint.channel_values;
  if (!Array.isArray(messages)) return (metadata?.step ?? 0) > 0;
  return [...messages, ...pendingWrites.flatMap(([, , value]) => value)].some((one) => ToolMessage.isInstance(one));
}
