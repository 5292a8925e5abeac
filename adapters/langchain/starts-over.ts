// Whether a run goes back to before the agent's first model call: its input has new ids then, by which nothing is known.
import type { BaseMessage } from "@langchain/core/messages";
import { isBegin } from "../graph-state/messages.ts";

interface Configurable {
  /** LangGraph gives it to a run that names a checkpoint. */
  readonly __pregel_replay_state?: object;
  readonly checkpoint_ns?: string;
}

/** Not for an agent inside of a graph: whoever goes back with the graph need not go back to the agent's beginning. */
export function startsOver(configurable: unknown, messages: readonly BaseMessage[]): boolean {
  const { __pregel_replay_state: replay, checkpoint_ns: namespace = "" } = (configurable ?? {}) as Configurable;
  return replay !== undefined && !namespace.includes("|") && isBegin(messages);
}
