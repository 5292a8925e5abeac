// Whether whoever began this run named the state from which it starts.
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
