// The middleware: a pair at every model decision, the gate before the reply's tools, the fence around a rewind's siblings.
import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import { Command, getCurrentTaskInput, isGraphBubbleUp } from "@langchain/langgraph";
import { endedRefusal, isRewindError, type Rewind, type RewindRequest } from "agentrewind";
import { createMiddleware, MiddlewareError, ToolInvocationError } from "langchain";
import { type ChannelKinds, kindsOf, ownChannels } from "../graph-state/channels.ts";
import { runTool } from "../graph-state/effects.ts";
import { goesOnInside } from "../graph-state/inside.ts";
import { boundariesOf, callsOf, lastAiIndex } from "../graph-state/messages.ts";
import { decide } from "../graph-state/model-call.ts";
import { messagesUpdate } from "../graph-state/restore.ts";
import { makeThreads } from "../graph-state/threads.ts";
import { runToolCall } from "../graph-state/tool-call.ts";
import { failure, type HumanMessages, makeTools, refusal, toolNames } from "../graph-state/tools.ts";
import { isTravel, keepsStates } from "../graph-state/travel.ts";
import { type AgentLike, isOwn, toolWrappersOf } from "./channels.ts";
import { startsOver } from "./starts-over.ts";
import { delegatingToolsOf, endedBy, isSubagent, notForSubagents, unlessEnded } from "./subagents.ts";

export interface RewindMiddlewareOptions {
  /** Our thread's name for every run; default: the run's `thread_id`. */
  readonly thread?: string;
  /** Messages that a person sent after the target of a rewind. Default "keep": they go behind the restored ones. */
  readonly humanMessages?: HumanMessages;
  /** Files that somebody else changed, when the agent rewinds. Default "keep" in a directory, "restore" elsewhere. */
  readonly external?: "keep" | "restore";
  /** A command that must succeed in the restored files, or the agent's rewind is taken back and the agent told: `"npm test"`. */
  readonly verify?: RewindRequest["verify"];
  /** Shows each checkpoint's id to the model at its place in the conversation. Default false: ids are found through the list. */
  readonly markers?: boolean;
}

/** @see rewindMiddleware */
export type RewindMiddleware = ReturnType<typeof rewindMiddleware>;

type Reply = Awaited<ReturnType<Parameters<NonNullable<ReturnType<typeof createMiddleware>["wrapModelCall"]>>[1]>>;

/**
 * Give it to `createAgent` as a middleware, best as the last one, and pass the agent through `attach` so that all of its state can go back:
 * `const rw = rewindMiddleware(rewind); const agent = rw.attach(createAgent({ …, middleware: [rw] }))`.
 */
export function rewindMiddleware(rewind: Rewind, options: RewindMiddlewareOptions = {}) {
  const threads = makeThreads(rewind, options.thread, () => kinds !== undefined);
  const humanMessages = options.humanMessages ?? "keep";
  const external = options.external ?? (rewind.environment.kind === "directory" ? "keep" : "restore");
  let kinds: ChannelKinds | undefined;
  /**
   * LangChain turns what a tool throws into a result, but lets it end the run as soon as a middleware wraps tools.
   * An agent that had no such middleware keeps its way.
   */
  let wrapsAlone = true;
  /** Tools that run a subagent. */
  let delegating: ReadonlySet<string> = new Set();
  const tools = makeTools({
    offered: !rewind.observes,
    threads,
    kinds: () => kinds,
    messagesKey: "messages",
    channels: (runtime) => ownChannels(runtime.state, isOwn),
    humanMessages,
    external,
    verify: options.verify,
  });

  const middleware = createMiddleware({
    name: "AgentRewind",
    tools,

    async wrapModelCall(request, handler) {
      if (isSubagent(request.runtime.configurable)) {
        return handler({ ...request, tools: request.tools.filter((one) => !toolNames.has(String(one.name))) });
      }
      const stored = request.state.messages as BaseMessage[];
      const { reply, entry } = await decide<Reply>({
        thread: threads.ofModelCall(request.runtime.configurable, stored),
        stored,
        channels: ownChannels(getCurrentTaskInput() as Record<string, unknown>, isOwn),
        prepared: request.messages as BaseMessage[],
        markers: options.markers === true,
        signal: request.runtime.signal,
        kinds,
        humanMessages,
        align: {
          travel: isTravel(request.runtime.configurable),
          startsOver: options.thread === undefined && startsOver(request.runtime.configurable, stored),
          ...(keepsStates() ? {} : { external }),
        },
        begins: !keepsStates() && !stored.some((message) => AIMessage.isInstance(message)),
        ask: async (messages) => handler({ ...request, messages }),
        messageOf: (reply) => (AIMessage.isInstance(reply) ? reply : undefined),
        withMessage: (_reply, message) => message as Reply,
      });
      return entry.update === null ? reply : withState(reply, entry.messages, entry.update);
    },

    async wrapToolCall(request, handler) {
      if (isSubagent(request.runtime.configurable)) {
        const { name, id = "" } = request.toolCall;
        return toolNames.has(name) ? refusal(notForSubagents(), name, id) : handler(request);
      }
      const { messages } = request.state as { messages: BaseMessage[] };
      const at = Math.max(0, lastAiIndex(messages));
      const before = messages.slice(0, at);
      const thread = threads.ofTools(request.runtime.configurable, before);
      const { name, id: callId = "" } = request.toolCall;
      const endable = delegating.has(name);
      const travel = isTravel(request.runtime.configurable);
      const goesOn = () => goesOnInside(request.runtime.configurable);
      return runToolCall<Awaited<ReturnType<typeof handler>>>({
        thread,
        call: request.toolCall,
        calls: callsOf(messages[at]),
        enter: () => thread.enterTool(boundariesOf(before), { endable, travel, goesOn }),
        async run(signal) {
          if (signal === undefined) return handler(request);
          try {
            const reply = messages[at]?.id;
            if (!endable) return await runTool(thread, request, handler, reply, signal);
            const ended = { ...request, tool: endedBy(request.tool, signal) };
            const result = runTool(thread, ended, handler, reply, signal);
            return (await unlessEnded(result, signal)) ?? failure(name, callId, endedRefusal);
          } catch (error) {
            if (isRewindError(error, "STALE_EPOCH")) return refusal(error, name, callId);
            if (isRewindError(error, "HOLDER_CHANGED")) throw error;
            if (!wrapsAlone || request.runtime.signal?.aborted === true || isLangChains(error)) throw error;
            return failure(name, callId, `${error}\n Please fix your mistakes.`);
          }
        },
      });
    },
  });

  return Object.assign(middleware, {
    /** Learns the kinds of the agent's state channels, so that a rewind restores all of them, and which of its tools run subagents. Returns the agent. */
    attach<Agent>(agent: Agent): Agent {
      kinds = kindsOf((agent as unknown as AgentLike).graph.channels, isOwn);
      wrapsAlone = toolWrappersOf(agent as unknown as AgentLike) <= 1;
      delegating = delegatingToolsOf(agent as unknown as AgentLike);
      return agent;
    },
  });
}

/** The reply, with the state that it was made from. */
function withState(reply: Reply, messages: readonly BaseMessage[], update: Readonly<Record<string, unknown>>): Command {
  const structured = reply as { structuredResponse?: unknown; messages?: BaseMessage[] };
  const added = AIMessage.isInstance(reply) ? [reply] : (structured.messages ?? []);
  return new Command({
    update: {
      ...update,
      messages: messagesUpdate([...messages, ...added]),
      ...(structured.structuredResponse === undefined ? {} : { structuredResponse: structured.structuredResponse }),
    },
  });
}

/** An interrupt, or arguments that do not fit: LangChain has an answer to these. */
const isLangChains = (error: unknown): boolean =>
  isGraphBubbleUp(error) || ToolInvocationError.isInstance(error) || MiddlewareError.isInstance(error);
