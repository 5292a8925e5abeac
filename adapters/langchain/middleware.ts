// The middleware: a pair at every model decision, the gate before the reply's tools, the fence around a rewind's siblings.
import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import { Command, getCurrentTaskInput, isGraphBubbleUp } from "@langchain/langgraph";
import {
  endedRefusal,
  isRewindError,
  type Rewind,
  RewindError,
  type RewindRequest,
  rewindTool,
  siblingRefusal,
  staleRefusal,
  type Thread,
  type Turn,
} from "agentrewind";
import { createMiddleware, MiddlewareError, ToolInvocationError } from "langchain";
import { type AgentLike, type ChannelKinds, kindsOf, ownChannels, toolWrappersOf } from "./channels.ts";
import { runTool } from "./effects.ts";
import { enterModelCall } from "./entry.ts";
import { withLessons } from "./lessons.ts";
import { withMarkers } from "./markers.ts";
import { activityOf, anchorsOf, boundariesOf, lastAiIndex } from "./messages.ts";
import { answered, withOnlyCall } from "./pairing.ts";
import { messagesUpdate } from "./restore.ts";
import { delegatingToolsOf, endedBy, isSubagent, notForSubagents, unlessEnded } from "./subagents.ts";
import { makeThreads } from "./threads.ts";
import { failure, type HumanMessages, makeTools, refusal, toolNames } from "./tools.ts";

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
  let kinds: ChannelKinds | undefined;
  /**
   * LangChain turns what a tool throws into a result, but lets it end the run as soon as a middleware wraps tools.
   * An agent that had no such middleware keeps its way.
   */
  let wrapsAlone = true;
  /** Tools that run a subagent. */
  let delegating: ReadonlySet<string> = new Set();
  const tools = makeTools({
    threads,
    kinds: () => kinds,
    humanMessages,
    external: options.external ?? (rewind.environment.kind === "directory" ? "keep" : "restore"),
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
      const thread = threads.ofModelCall(request.runtime.configurable, stored);
      const channels = ownChannels(getCurrentTaskInput() as Record<string, unknown>);
      for (;;) {
        const prepared = request.messages as BaseMessage[];
        const entry = await enterModelCall(thread, stored, channels, { kinds, humanMessages, prepared });
        const anchor = anchorsOf(entry.messages).at(-1);
        let turn: Turn | undefined;
        try {
          turn = await thread.beginTurn(
            { messages: [...entry.messages], channels: entry.channels },
            {
              ...(anchor === undefined ? {} : { anchor }),
              activity: activityOf(sinceHead(thread, entry.messages)),
              epoch: entry.epoch,
              ...(request.runtime.signal === undefined ? {} : { signal: request.runtime.signal }),
            },
          );
          const seen = withLessons(thread, entry.seen ?? answered(prepared));
          const shown = options.markers === true ? withMarkers(seen, thread, { id: turn.id, anchor }) : seen;
          const reply = await onlyRewind(await handler({ ...request, messages: [...shown] }), thread, turn);
          await turn.gate({ tools: callsOf(reply).some((call) => !toolNames.has(call.name)), look: "tool" });
          return entry.update === null ? reply : withState(reply, entry.messages, entry.update);
        } catch (error) {
          turn?.end();
          // A rewind from outside came first: the reply is dropped, and the model asked again from where the conversation is now.
          if (!isRewindError(error, "STALE_EPOCH")) throw error;
        }
      }
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
      const calls = callsOf(messages[at]);
      const { name, id: callId = "" } = request.toolCall;
      if (name === rewindTool.name) {
        const parsed = rewindTool.schema.safeParse(request.toolCall.args);
        if (!parsed.success) return refusal(badArguments(), name, callId);
        if (calls.length === 1) return handler(request);
        const { checkpoint, lesson } = parsed.data;
        return refusal(thread.admissible(checkpoint, lesson) ?? notAlone(), name, callId);
      }
      if (calls.some((call) => call.name === rewindTool.name)) return failure(name, callId, siblingRefusal);
      const endable = delegating.has(name);
      const leave = await thread.enterTool(boundariesOf(before), { endable });
      if (leave === undefined) return failure(name, callId, staleRefusal);
      try {
        if (!endable) return await leave.run(() => runTool(thread, request, handler, messages[at]?.id));
        const ended = { ...request, tool: endedBy(request.tool, leave.signal) };
        const result = leave.run(() => runTool(thread, ended, handler, messages[at]?.id));
        return (await unlessEnded(result, leave.signal)) ?? failure(name, callId, endedRefusal);
      } catch (error) {
        if (isRewindError(error, "STALE_EPOCH")) return refusal(error, name, callId);
        if (isRewindError(error, "HOLDER_CHANGED")) throw error;
        if (!wrapsAlone || request.runtime.signal?.aborted === true || isLangChains(error)) throw error;
        return failure(name, callId, `${error}\n Please fix your mistakes.`);
      } finally {
        leave();
      }
    },
  });

  return Object.assign(middleware, {
    /** Learns the kinds of the agent's state channels, so that a rewind restores all of them, and which of its tools run subagents. Returns the agent. */
    attach<Agent>(agent: Agent): Agent {
      kinds = kindsOf(agent as unknown as AgentLike);
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

const callsOf = (message: unknown): NonNullable<AIMessage["tool_calls"]> =>
  AIMessage.isInstance(message) ? (message.tool_calls ?? []) : [];

/** The messages behind the head's boundary: what was done since. */
function sinceHead(thread: Thread, messages: readonly BaseMessage[]): readonly BaseMessage[] {
  const anchor = thread.head === null ? null : thread.get(thread.head).anchor;
  const at = anchor === null ? -1 : anchorsOf(messages).lastIndexOf(anchor);
  return at < 0 ? messages.slice(Math.max(0, lastAiIndex(messages))) : messages.slice(at + 1);
}

/** An admissible rewind drops its siblings before they run: the first such call wins. */
async function onlyRewind(reply: Reply, thread: Thread, turn: Turn): Promise<Reply> {
  if (!AIMessage.isInstance(reply) || (reply.tool_calls?.length ?? 0) < 2) return reply;
  // A model that is faster than the capture names what is not listed yet, or what would still be the head.
  if (reply.tool_calls?.some(({ name }) => name === rewindTool.name)) await turn.captured;
  const call = reply.tool_calls?.find(({ name, args }) => {
    if (name !== rewindTool.name) return false;
    const parsed = rewindTool.schema.safeParse(args);
    return parsed.success && thread.admissible(parsed.data.checkpoint, parsed.data.lesson) === undefined;
  });
  return call === undefined ? reply : (withOnlyCall(reply, call.id) as Reply);
}

const badArguments = (): RewindError =>
  new RewindError("BAD_ARGUMENT", "rewind needs a checkpoint and a lesson, both as text.", {
    hint: 'For example {"checkpoint": "c7", "lesson": "what was tried, what proved false, what to do instead"}.',
  });

const notAlone = (): RewindError =>
  new RewindError("BAD_ARGUMENT", "rewind was sent together with other calls.", { hint: "Send it again, alone." });
