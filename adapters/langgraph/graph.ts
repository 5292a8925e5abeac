// Hand-built graphs: nodes that record pairs, tools behind a gate, and the agent's own rewind inside of the running graph.
import { AIMessage, type BaseMessage, isBaseMessage, type ToolMessage } from "@langchain/core/messages";
import type { ToolCall } from "@langchain/core/messages/tool";
import { Runnable } from "@langchain/core/runnables";
import { AsyncLocalStorageProviderSingleton } from "@langchain/core/singletons";
import type { Command, LangGraphRunnableConfig } from "@langchain/langgraph";
import type { ToolNode, ToolNodeOptions } from "@langchain/langgraph/prebuilt";
import {
  type AlignOptions,
  type Boundary,
  type Checkpoint,
  isRewindError,
  type Rewind,
  RewindError,
  type RewindRequest,
  rewindTool,
  staleRefusal,
  type Thread,
} from "agentrewind";
import { type ChannelKinds, kindsOf, ownBut, ownChannels } from "../graph-state/channels.ts";
import { runTool } from "../graph-state/effects.ts";
import { goesOnInside } from "../graph-state/inside.ts";
import { boundariesOf, callsOf, lastAiIndex, mark } from "../graph-state/messages.ts";
import { decide } from "../graph-state/model-call.ts";
import { makeThreads } from "../graph-state/threads.ts";
import { runToolCall } from "../graph-state/tool-call.ts";
import { failure, type HumanMessages, makeTools, refusal } from "../graph-state/tools.ts";
import { isTravel } from "../graph-state/travel.ts";
import { RewindSaver } from "./checkpointer.ts";
import { type Config, configurableOf, durabilityOf, positionOf, threadIdOf } from "./config.ts";
import { fenced, untilStale } from "./fence.ts";
import { pairsOf } from "./pairs.ts";
import { GatedToolNode } from "./tool-node.ts";
import { replyIn, uponRestored, withReply } from "./update.ts";

export interface RewindGraphOptions {
  /** Name of the channel that holds the messages. Default "messages". */
  readonly messagesKey?: string;
  /** Messages that a person sent after the target of a rewind. Default "keep": they go behind the restored ones. */
  readonly humanMessages?: HumanMessages;
  /** Files that somebody else changed, when the agent rewinds. Default "keep" in a directory, "restore" elsewhere. */
  readonly external?: "keep" | "restore";
  /** Shows each checkpoint's id to the model at its place in the conversation. Default false: ids are found through the list. */
  readonly markers?: boolean;
  /** Runs after a restore that the agent asked for; where it fails the old head comes back, and the model is told. */
  readonly verify?: RewindRequest["verify"];
}

/** @see rewindGraph */
export type RewindGraph = ReturnType<typeof rewindGraph>;

/** A compiled graph, as far as it is looked into here. */
interface Compiled {
  readonly channels: Readonly<Record<string, unknown>>;
  checkpointer?: unknown;
  readonly nodes?: Readonly<Record<string, { readonly bound?: unknown }>>;
}

type State = Readonly<Record<string, unknown>>;

/** A node that asks the model. */
type ModelNode<Given, Update> =
  | ((state: Given, config: LangGraphRunnableConfig) => Update | Promise<Update>)
  | Runnable<Given, Update>;

/** In which threads a node works. */
interface Where {
  readonly own: Thread;
  /** The whole graph's, where its checkpointer pairs states and files; another than `own` inside of a part of the graph. */
  readonly root: Thread | undefined;
  readonly at: Pick<AlignOptions, "position" | "replay" | "travel">;
  readonly goesOn: () => Promise<boolean>;
}

/**
 * `const rg = rewindGraph(rewind)`, then
 * `graph.addNode("agent", rg.modelNode(callModel)).addNode("tools", rg.toolNode(tools))` with `rg.tools` bound to the model as well, and
 * `rg.attach(graph.compile({ checkpointer: rewindCheckpointer(saver, rewind) }))`.
 */
export function rewindGraph(rewind: Rewind, options: RewindGraphOptions = {}) {
  const { messagesKey: key = "messages", humanMessages = "keep", markers = false } = options;
  const isOwn = ownBut([key, "lg_tool_call", "remainingSteps"]);
  const pairs = pairsOf(rewind);
  pairs.graphs++;
  let graph: Compiled | undefined;
  let kinds: ChannelKinds | undefined;
  const threads = makeThreads(rewind, undefined, () => kinds !== undefined);
  const tools = makeTools({
    offered: !rewind.observes,
    threads,
    kinds: () => kinds,
    messagesKey: key,
    channels: (runtime) => channelsOf(runtime, runtime.state),
    humanMessages,
    external: options.external ?? (rewind.environment.kind === "directory" ? "keep" : "restore"),
    verify: options.verify,
  });

  /** A node may be given a part of the state only; the kinds say which channels there are. */
  function channelsOf(config: Config, state: State): Record<string, unknown> {
    const read = configurableOf(config).__pregel_read;
    return ownChannels(kinds === undefined || read === undefined ? state : read([...kinds.keys()], false), isOwn);
  }

  function messagesOf(state: unknown): readonly BaseMessage[] {
    const messages = (state as State | undefined)?.[key];
    if (Array.isArray(messages) && messages.every(isBaseMessage)) return messages;
    throw new RewindError("BAD_ARGUMENT", `rewindGraph: the state has no messages in a channel "${key}".`, {
      hint: 'Name the channel that holds them: rewindGraph(rewind, { messagesKey: "…" }).',
    });
  }

  /** @throws DURABILITY_EXIT */
  async function locate(config: Config, own: Thread): Promise<Where> {
    const { __pregel_checkpointer: saver, __pregel_replay_state: replay } = configurableOf(config);
    const threadId = threadIdOf(config);
    const position = positionOf(config);
    const at = { position, replay, travel: isTravel(configurableOf(config)) };
    const goesOn = () => goesOnInside(configurableOf(config));
    if (!(saver instanceof RewindSaver) || threadId === undefined) return { own, root: undefined, at, goesOn };
    if (durabilityOf(config) === "exit") {
      throw new RewindError("DURABILITY_EXIT", 'With durability "exit" LangGraph stores no state before the end.', {
        hint: 'Run the graph with durability "sync" or "async".',
      });
    }
    await pairs.settled(threadId, position);
    return { own, root: threads.ofGraph(configurableOf(config)), at, goesOn };
  }

  /** @param unasked no reply asked for it */
  async function enter(
    { own, root, at, goesOn }: Where,
    boundaries: Iterable<Boundary>,
    unasked: boolean,
  ): ReturnType<Thread["enterTool"]> {
    const { travel = false } = at;
    if (root === undefined) return own.enterTool(boundaries, { unasked, travel, goesOn });
    const outer = await root.enterTool(root === own ? boundaries : [], {
      ...at,
      goesOn,
      unasked: unasked || root !== own,
    });
    if (outer === undefined || root === own) return outer;
    const inner = await own.enterTool(boundaries, { placed: true, unasked, travel, goesOn });
    if (inner === undefined) {
      outer();
      return undefined;
    }
    const leave = (): void => {
      inner();
      outer();
    };
    const run = <T>(work: () => Promise<T>): Promise<T> => outer.run(() => inner.run(work));
    return Object.assign(leave, { run, signal: inner.signal });
  }

  return {
    /** `rewind`, `list_checkpoints` and `checkpoint`: bind them to the model beside your own. */
    tools,

    /** The node that asks the model: a pair at every decision, and its reply waits until that is captured. */
    modelNode<Given = { readonly messages: BaseMessage[] }, Update = unknown>(callModel: ModelNode<Given, Update>) {
      return async (state: Given, config: LangGraphRunnableConfig): Promise<Update> => {
        const stored = messagesOf(state);
        const where = await locate(config, threads.ofModelCall(config.configurable, stored));
        const inside = where.root !== undefined && where.root !== where.own;
        const outside = inside ? await where.root?.align([], where.at) : undefined;
        if (outside?.status === "deliver") return { [key]: [stopped()] } as Update;
        const { reply, entry } = await decide<Update>({
          thread: where.own,
          stored,
          channels: channelsOf(config, state as State),
          prepared: stored,
          markers,
          signal: config.signal,
          kinds,
          humanMessages,
          align: where.root === where.own ? where.at : { placed: inside, travel: where.at.travel === true },
          async ask(messages, entry, turn) {
            const given = { ...state, ...(entry.update === null ? {} : entry.channels), [key]: messages };
            const own = fenced(config, turn.stale);
            const asked = AsyncLocalStorageProviderSingleton.runWithConfig(own, async () => {
              const result = await (Runnable.isRunnable(callModel)
                ? callModel.invoke(given, own)
                : callModel(given, own));
              return (Runnable.isRunnable(result) ? await result.invoke(given, own) : result) as Update;
            });
            return untilStale(asked, turn.stale);
          },
          messageOf: (result) => replyIn(result, key),
          withMessage: (result, message) => withReply(result, key, message) as Update,
        });
        if (entry.update === null) return reply;
        const { messages, update } = entry;
        return uponRestored(reply, { key, messages, update, reduce }) as Update;
      };
    },

    /** LangGraph's ToolNode for your tools and ours. */
    toolNode(own: ConstructorParameters<typeof ToolNode>[0] = [], nodeOptions?: ToolNodeOptions): ToolNode {
      return new GatedToolNode(
        [...own, ...tools],
        {
          messagesKey: key,
          async pass(call, config, state, run) {
            passGate(config);
            const messages = messagesOf(state);
            const at = Math.max(0, lastAiIndex(messages));
            const before = messages.slice(0, at);
            const where = await locate(config, threads.ofTools(config.configurable, before));
            const boundaries = boundariesOf(before);
            return runToolCall({
              thread: where.own,
              call,
              calls: callsOf(messages[at]),
              enter: () => enter(where, boundaries, false),
              async run() {
                if (call.name !== rewindTool.name) return withEffects(where.own, call, messages[at]?.id, run);
                // It moves the files itself; but what it leaves must be what the graph stands at.
                if (where.root !== undefined) {
                  const leave = await enter(where, boundaries, false);
                  leave?.();
                  if (leave === undefined) return failure(call.name, call.id ?? "", staleRefusal);
                }
                return where.own.inTool ? refusal(besideTools(), call.name, call.id ?? "") : run(call);
              },
            });
          },
        },
        nodeOptions,
      );
    },

    /**
     * First in a tool or node of your own that touches the files: brings them to where the graph stands. The tool counts as running until LangGraph stores what came
     * of it (with `rewindCheckpointer`), so that a rewind from outside waits for it.
     * @param runtime what a tool gets as its second argument, or a node's config
     * @throws STALE_EPOCH when the conversation was rewound and the tool must not run; DURABILITY_EXIT, PAIR_DIVERGED
     */
    async gate(runtime: Config & { readonly state?: unknown }): Promise<void> {
      passGate(runtime);
      const given = (runtime.state as State | undefined)?.[key];
      const messages = Array.isArray(given) ? (given as BaseMessage[]) : [];
      const before = messages.slice(0, Math.max(0, lastAiIndex(messages)));
      const where = await locate(runtime, threads.ofTools(configurableOf(runtime), before));
      const leave = await enter(where, boundariesOf(before), true);
      if (leave === undefined) {
        throw new RewindError("STALE_EPOCH", staleRefusal, {
          hint: "Return without doing anything: the graph goes on.",
        });
      }
      const { __pregel_task_id: task } = configurableOf(runtime);
      if (where.root === undefined || task === undefined) return leave();
      pairs.runsTool(task, leave);
      runtime.signal?.addEventListener("abort", () => pairs.ended(task), { once: true });
    },

    /** Learns the graph's channels, so that a rewind restores all of them. Returns the graph. */
    attach<Graph extends Compiled>(compiled: Graph): Graph {
      graph = compiled;
      kinds = kindsOf(compiled.channels, isOwn);
      const { checkpointer, nodes = {} } = compiled;
      const hasToolNode = Object.values(nodes).some(({ bound }) => bound instanceof GatedToolNode);
      if (hasToolNode && checkpointer instanceof RewindSaver)
        compiled.checkpointer = checkpointer.ofGraphWithToolNode();
      return compiled;
    },

    /**
     * Brings the files to a state of LangGraph's at once: the thread's newest, or that of `checkpoint_id`. A run from there does the same at its first node that
     * touches them. A rewind from outside that no run has taken over yet is passed over.
     * @returns the checkpoint that the files are of
     * @throws UNKNOWN_CHECKPOINT, NOT_RESTORABLE
     */
    async checkout(config: Config): Promise<Checkpoint> {
      const saver = graph?.checkpointer;
      if (!(saver instanceof RewindSaver)) {
        throw new RewindError("NOT_ATTACHED", "No graph with a rewindCheckpointer is attached.", {
          hint: "Compile it so: rg.attach(graph.compile({ checkpointer: rewindCheckpointer(saver, rewind) })).",
        });
      }
      const tuple = await saver.getTuple({ configurable: configurableOf(config) });
      const found = configurableOf(tuple?.config ?? {});
      const threadId = threadIdOf(tuple?.config ?? {});
      const { checkpoint_ns: namespace = "", checkpoint_id: id } = found;
      const position = { ...(namespace === "" ? {} : positionOf(config)), [namespace]: id ?? "" };
      if (threadId === undefined || id === undefined) throw nothingPaired(config);
      await pairs.settled(threadId, position);
      const thread = pairs.thread(threadId);
      if (!thread.knowsState(id)) throw nothingPaired(config);
      return thread.checkout(position, configurableOf(config).checkpoint_id !== undefined);
    },
  };

  function reduce(name: string, value: unknown, write: unknown): unknown {
    const channel = (graph?.channels[name] ?? {}) as {
      operator?: (value: unknown, write: unknown) => unknown;
      reducer?: (value: unknown, writes: unknown[]) => unknown;
    };
    if (channel.operator !== undefined) return channel.operator(value, write);
    return channel.reducer === undefined ? write : channel.reducer(value, [write]);
  }
}

function passGate(config: Config): void {
  const { __pregel_checkpointer: saver } = configurableOf(config);
  if (saver instanceof RewindSaver) saver.passGate(threadIdOf(config));
}

/** @param reply id of the message that holds the call */
async function withEffects(
  thread: Thread,
  call: ToolCall,
  reply: string | undefined,
  run: (call: ToolCall) => Promise<ToolMessage | Command>,
): Promise<ToolMessage | Command> {
  try {
    return await runTool(thread, { toolCall: call }, (request) => run(request.toolCall as ToolCall), reply);
  } catch (error) {
    if (isRewindError(error, "STALE_EPOCH")) return refusal(error, call.name, call.id ?? "");
    throw error;
  }
}

/** What it did after the restore would be neither in the old files nor in the new ones. */
const besideTools = (): RewindError =>
  new RewindError("BAD_ARGUMENT", "A tool still runs in another part of the graph.", {
    hint: "Call rewind again: by then it has ended.",
  });

function nothingPaired(config: Config): RewindError {
  const { thread_id: thread, checkpoint_id: id } = configurableOf(config);
  return new RewindError(
    "UNKNOWN_CHECKPOINT",
    `No files belong to ${id === undefined ? "a state" : `the state ${id}`} of the LangGraph thread "${thread}".`,
    {
      hint: "It was stored without rewindCheckpointer, or what belonged to it was pruned. Choose another state.",
      details: { thread, checkpoint: id },
    },
  );
}

/** Inside of a part of the graph nobody can put the whole graph back: the part ends, and the node that asks the model outside goes on from there. */
const stopped = (): AIMessage =>
  new AIMessage({
    content: "Stopped: the conversation was rewound while this ran.",
    additional_kwargs: { [mark]: {} },
  });
