// Wraps a LangGraph checkpointer: every checkpoint that it stores gets the files that belong to it. Reading touches nothing.
import type { RunnableConfig } from "@langchain/core/runnables";
import {
  BaseCheckpointSaver,
  type ChannelVersions,
  type Checkpoint,
  type CheckpointListOptions,
  type CheckpointMetadata,
  type CheckpointTuple,
  type PendingWrite,
} from "@langchain/langgraph-checkpoint";
import { type NamedState, type Rewind, RewindError } from "agentrewind";
import { configurableOf, threadIdOf } from "./config.ts";
import { type Pairs, pairsOf } from "./pairs.ts";
import { asksForTools, holdsToolResults } from "./writes.ts";

/** Any saver: LangGraph counts versions with numbers, some savers with strings. */
type Saver = BaseCheckpointSaver<never> | BaseCheckpointSaver<number> | BaseCheckpointSaver<string>;

/**
 * `graph.compile({ checkpointer: rewindCheckpointer(saver, rewind) })`: LangGraph's time travel, forks and resumed runs find the files of their moment. The files
 * move when a node that touches them runs (`rg.modelNode`, `rg.toolNode`, `rg.gate`), or at once with `rg.checkout(config)`.
 */
export function rewindCheckpointer(saver: Saver, rewind: Rewind): RewindSaver {
  return new RewindSaver(saver as BaseCheckpointSaver, pairsOf(rewind));
}

export class RewindSaver extends BaseCheckpointSaver {
  readonly #inner: BaseCheckpointSaver;
  readonly #pairs: Pairs;
  /** LangGraph would hear of a write that fails beside the next step only at the end of the run. */
  #refused: RewindError | undefined;
  /** Threads in which a tool has passed a gate. */
  readonly #gated = new Set<string>();
  #hasToolNode = false;

  constructor(inner: BaseCheckpointSaver, pairs: Pairs) {
    super(inner.serde);
    this.#inner = inner;
    this.#pairs = pairs;
  }

  async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
    const threadId = threadIdOf(config);
    this.#refused = undefined;
    if (threadId !== undefined) this.#pairs.begin(threadId);
    return this.#inner.getTuple(config);
  }

  list(config: RunnableConfig, options?: CheckpointListOptions): AsyncGenerator<CheckpointTuple> {
    return this.#inner.list(config, options);
  }

  async put(
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    newVersions: ChannelVersions,
  ): Promise<RunnableConfig> {
    const threadId = threadIdOf(config);
    // The saver itself says what is wrong with it.
    if (threadId === undefined) return this.#inner.put(config, checkpoint, metadata, newVersions);
    return this.#pairs.store(threadId, checkpoint.id, async () => {
      const stored = this.#pairs.thread(threadId).pairState(stateOf(config, checkpoint, metadata));
      const result = await this.#inner.put(config, checkpoint, metadata, newVersions);
      stored();
      return result;
    });
  }

  async putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string, taskPath?: string): Promise<void> {
    const threadId = threadIdOf(config);
    this.#requireGate(writes, taskPath, threadId);
    this.#pairs.ended(taskId);
    if (threadId === undefined) return this.#inner.putWrites(config, writes, taskId, taskPath);
    await this.#pairs.store(threadId, undefined, () => this.#inner.putWrites(config, writes, taskId, taskPath));
  }

  async deleteThread(threadId: string): Promise<void> {
    await this.#inner.deleteThread(threadId);
    this.#pairs.thread(threadId).forgetStates();
  }

  override getDeltaChannelHistory(
    options: Parameters<BaseCheckpointSaver["getDeltaChannelHistory"]>[0],
  ): ReturnType<BaseCheckpointSaver["getDeltaChannelHistory"]> {
    return this.#inner.getDeltaChannelHistory(options);
  }

  override getNextVersion(current: number | undefined): number {
    const refused = this.#refused;
    this.#refused = undefined;
    if (refused !== undefined) throw refused;
    return this.#inner.getNextVersion(current);
  }

  /** A tool of a graph that uses this checkpointer passes a gate, before anything of it is written. */
  passGate(threadId: string | undefined): void {
    if (threadId !== undefined && !this.#hasToolNode) this.#gated.add(threadId);
  }

  /** The same for one graph, which has a tool node with gates: that is perhaps not the first to answer a call. */
  ofGraphWithToolNode(): RewindSaver {
    const saver = new RewindSaver(this.#inner, this.#pairs);
    saver.#hasToolNode = true;
    return saver;
  }

  /** @throws GATE_MISSING before the first tool where no graph was prepared, else behind it */
  #requireGate(writes: readonly PendingWrite[], taskPath: string | undefined, threadId: string | undefined): void {
    const { graphs } = this.#pairs;
    const isGated = this.#hasToolNode || (threadId !== undefined && this.#gated.has(threadId));
    if (isGated || taskPath === undefined || !/__pregel_(?:pull|push)/.test(taskPath)) return;
    if (!holdsToolResults(writes) && !(graphs === 0 && asksForTools(writes))) return;
    this.#refused = new RewindError(
      "GATE_MISSING",
      "The graph's tools run past AgentRewind: nobody would bring the files to where the graph stands.",
      {
        hint: "Make the tool node with rg.toolNode(tools), or await rg.gate(runtime) first in each tool of your own.",
      },
    );
    throw this.#refused;
  }
}

function stateOf(config: RunnableConfig, checkpoint: Checkpoint, { source }: CheckpointMetadata): NamedState {
  const { checkpoint_ns: namespace = "", checkpoint_id: from, checkpoint_map: map = {} } = configurableOf(config);
  const around = Object.entries(map).filter(
    ([name]) => namespace !== "" && name !== namespace && (name === "" || namespace.startsWith(`${name}|`)),
  );
  return {
    name: checkpoint.id,
    namespace,
    from,
    kind: source === "fork" ? "copy" : source === "input" ? "input" : "step",
    around: Object.fromEntries(around),
  };
}
