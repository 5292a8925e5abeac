// What LangGraph tells a node, a tool or a saver about where it is.
import type { Position } from "agentrewind";

export interface Configurable {
  readonly thread_id?: unknown;
  readonly checkpoint_ns?: string;
  readonly checkpoint_id?: string;
  /** By namespace, the checkpoint from which the running superstep started. */
  readonly checkpoint_map?: Readonly<Record<string, string>>;
  readonly __pregel_checkpointer?: unknown;
  readonly __pregel_durability?: unknown;
  readonly __pregel_task_id?: string;
  /** Of a run that goes back to a checkpoint, an object of its own. */
  readonly __pregel_replay_state?: object;
  readonly __pregel_read?: (names: string[], fresh: boolean) => Record<string, unknown>;
}

/** A node's config, a saver's, or what a tool gets as its second argument. */
export interface Config {
  readonly configurable?: unknown;
  readonly config?: { readonly configurable?: unknown; readonly durability?: unknown };
  readonly durability?: unknown;
  readonly signal?: AbortSignal;
}

export const configurableOf = (config: Config): Configurable =>
  (config.configurable ?? config.config?.configurable ?? {}) as Configurable;

/** Of the parts around what runs: a config with which somebody goes back may name states of parts that LangGraph begins anew, under other names. */
export function positionOf(config: Config): Position {
  const { checkpoint_map: map = {}, checkpoint_ns: own } = configurableOf(config);
  const isAround = (namespace: string): boolean =>
    own === undefined || namespace === "" || own === namespace || own.startsWith(`${namespace}|`);
  return Object.fromEntries(Object.entries(map).filter(([namespace]) => isAround(namespace)));
}

export const durabilityOf = (config: Config): unknown =>
  config.durability ?? config.config?.durability ?? configurableOf(config).__pregel_durability;

export const threadIdOf = (config: Config): string | undefined => {
  const { thread_id: id } = configurableOf(config);
  return typeof id === "string" || typeof id === "number" ? `${id}` : undefined;
};
