// deepagents' subagents: agents that run inside of the main agent's `task` tool, in the main agent's environment.
import { RewindError } from "agentrewind";
import type { AgentLike } from "./channels.ts";

const delegatingMiddleware = "subAgentMiddleware";
const delegatingTool = "task";

/** Names of the agent's tools that run a subagent: a rewind ends these instead of waiting for them. */
export const delegatingToolsOf = (agent: AgentLike): ReadonlySet<string> =>
  new Set((agent.options?.middleware ?? []).some((one) => one.name === delegatingMiddleware) ? [delegatingTool] : []);

/**
 * True for a subagent, also a forked one, to which the main agent's middleware is handed down. Its work is part of the main agent's call: it has no
 * checkpoints of its own, since a rewind in it would undo what the main agent and the subagents beside it do meanwhile.
 */
export const isSubagent = (configurable: unknown): boolean =>
  (configurable as { readonly ls_agent_type?: unknown } | undefined)?.ls_agent_type === "subagent";

export const notForSubagents = (): RewindError =>
  new RewindError("INSIDE_TOOL", "A subagent cannot rewind: it runs inside of a call of the main agent.", {
    hint: "End with a report of what went wrong; the main agent can take the whole call back.",
  });

interface Config {
  readonly signal?: AbortSignal;
  readonly configurable?: Readonly<Record<string, unknown>>;
}

interface Invokable {
  invoke(input: unknown, config?: Config): Promise<unknown>;
}

/** With it a graph inside of a graph (LangGraph 1.7) hears the outer one's signals alone, and not the one that it is given. */
const outerSignals = "__pregel_abort_signals";

/** The tool, ended by `signal` besides what ends it anyway. */
export function endedBy<Tool>(tool: Tool, signal: AbortSignal): Tool {
  if (typeof tool !== "object" || tool === null) return tool;
  const invoke: Invokable["invoke"] = (input, config) =>
    (tool as unknown as Invokable).invoke(input, {
      ...config,
      signal: either(signal, config?.signal),
      configurable: { ...config?.configurable, [outerSignals]: undefined },
    });
  return Object.assign(Object.create(tool), { invoke }) as Tool;
}

function either(one: AbortSignal, other: AbortSignal | undefined): AbortSignal {
  if (other === undefined) return one;
  const both = new AbortController();
  for (const signal of [one, other]) {
    if (signal.aborted) both.abort(signal.reason);
    signal.addEventListener("abort", () => both.abort(signal.reason), { once: true, signal: both.signal });
  }
  return both.signal;
}

/** What `work` gives; undefined when the signal comes first, and what comes later is dropped. */
export function unlessEnded<T>(work: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  const ended = new Promise<undefined>((resolve) => {
    if (signal.aborted) resolve(undefined);
    signal.addEventListener("abort", () => resolve(undefined), { once: true });
  });
  const result = work.catch((error: unknown) => {
    if (signal.aborted) return undefined;
    throw error;
  });
  return Promise.race([result, ended]);
}
