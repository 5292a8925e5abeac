// How this run began: whether whoever began it named the state from which it starts, and whether LangGraph keeps states at all.
import { getConfig } from "@langchain/langgraph";

/**
 * LangGraph hides the `checkpoint_id` of a run's config from what runs inside; the run's metadata keep it. They are handed down to runs of other threads that begin
 * inside, with the thread's id.
 */
export function isTravel(configurable: unknown): boolean {
  const { thread_id: thread } = (configurable ?? {}) as { readonly thread_id?: unknown };
  const { checkpoint_id: id, thread_id: of } = getConfig()?.metadata ?? {};
  return id !== undefined && of === thread;
}

/** Without a checkpointer no run goes on from a state: what it is given is all that there is. */
export const keepsStates = (): boolean => getConfig()?.configurable?.__pregel_checkpointer !== undefined;
