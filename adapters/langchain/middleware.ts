// The middleware: a pair at every model decision, the gate before the reply's tools, the fence around a rewind's siblings.
import { AIMessage, type BaseMessage, ToolMessage } from "@langchain/core/messages";
import { Command, getCurrentTaskInput } from "@langchain/langgraph";
import {
  type Rewind,
  RewindError,
  type RewindResult,
  rewindTool,
  siblingRefusal,
  staleRefusal,
  type Thread,
} from "agentrewind";
import { createMiddleware } from "langchain";
import { type AgentLike, type ChannelKinds, kindsOf, ownChannels } from "./channels.ts";
import { withMarkers } from "./markers.ts";
import { activityOf, anchorOf, boundariesOf, lastAiIndex, withOnlyCall } from "./messages.ts";
import { channelsToRestore, messagesUpdate, newerFromPerson, tellMessage } from "./restore.ts";
import { makeThreads } from "./threads.ts";
import { type HumanMessages, makeTools, refusal, toolNames } from "./tools.ts";

export interface RewindMiddlewareOptions {
  /** Our thread's name for every run; default: the run's `thread_id`. */
  readonly thread?: string;
  /** Messages that a person sent after the target of a rewind. Default "keep": they go behind the restored ones. */
  readonly humanMessages?: HumanMessages;
  /** Files that somebody else changed, when the agent rewinds. Default "keep" in a directory, "restore" elsewhere. */
  readonly external?: "keep" | "restore";
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
  const threads = makeThreads(rewind, options.thread);
  const humanMessages = options.humanMessages ?? "keep";
  let kinds: ChannelKinds | undefined;
  const tools = makeTools({
    threads,
    kinds: () => kinds,
    humanMessages,
    external: options.external ?? (rewind.environment.kind === "directory" ? "keep" : "restore"),
  });

  const middleware = createMiddleware({
    name: "AgentRewind",
    tools,

    async wrapModelCall(request, handler) {
      const stored = request.state.messages as BaseMessage[];
      const thread = threads.of(request.runtime.configurable, stored);
      const alignment = await thread.align(boundariesOf(stored));
      const channels = ownChannels(getCurrentTaskInput() as Record<string, unknown>);
      const taken = alignment.status === "deliver" ? await takeOver(alignment.result, stored, channels) : undefined;
      const messages = taken?.messages ?? stored;
      const seen = taken === undefined ? (request.messages as BaseMessage[]) : messages;
      const turn = await thread.beginTurn(
        { messages: [...messages], channels: { ...channels, ...taken?.values } },
        {
          ...anchored(messages),
          activity: activityOf(sinceHead(thread, messages)),
          ...(request.runtime.signal === undefined ? {} : { signal: request.runtime.signal }),
        },
      );
      let reply: Reply;
      try {
        const shown = options.markers === true ? withMarkers(seen, thread) : seen;
        reply = onlyRewind(await handler({ ...request, messages: shown }), thread);
      } catch (error) {
        turn.end();
        throw error;
      }
      const calls = AIMessage.isInstance(reply) ? (reply.tool_calls ?? []) : undefined;
      await turn.gate({ tools: calls === undefined || calls.some((call) => !toolNames.has(call.name)) });
      if (taken === undefined) return reply;
      thread.markDelivered();
      return new Command({
        update: {
          ...taken.update,
          messages: messagesUpdate([...messages, ...(AIMessage.isInstance(reply) ? [reply] : [])]),
        },
      });
    },

    async wrapToolCall(request, handler) {
      const { messages } = request.state as { messages: BaseMessage[] };
      const at = lastAiIndex(messages);
      const thread = threads.of(request.runtime.configurable, messages.slice(0, Math.max(0, at)));
      const calls = (messages[at] as AIMessage | undefined)?.tool_calls ?? [];
      const { name } = request.toolCall;
      const callId = request.toolCall.id ?? "";
      if (name === rewindTool.name) {
        const parsed = rewindTool.schema.safeParse(request.toolCall.args);
        if (!parsed.success) return refusal(badArguments(), name, callId);
        if (calls.length > 1) {
          const { checkpoint, lesson } = parsed.data;
          return refusal(thread.admissible(checkpoint, lesson) ?? notAlone(), name, callId);
        }
        return handler(request);
      }
      const refuse = (content: string): ToolMessage =>
        new ToolMessage({ name, tool_call_id: callId, status: "error", content });
      if (calls.some((call) => call.name === rewindTool.name)) return refuse(siblingRefusal);
      const alignment = await thread.align(boundariesOf(messages.slice(0, Math.max(0, at))));
      if (alignment.status === "deliver") return refuse(staleRefusal);
      const leave = thread.enter();
      try {
        return await handler(request);
      } finally {
        leave();
      }
    },
  });

  /** A rewind from outside, for a framework whose state still holds the abandoned messages. */
  async function takeOver(
    result: RewindResult,
    stored: readonly BaseMessage[],
    channels: Readonly<Record<string, unknown>>,
  ) {
    if (result.scope === "environment") {
      return { messages: [...stored, tellMessage(result)], values: {}, update: {} };
    }
    const newer = humanMessages === "drop" ? [] : newerFromPerson(stored, result.context);
    const update = await channelsToRestore(channels, result.context, kinds);
    const values = Object.fromEntries(Object.keys(update).map((name) => [name, result.context.channels?.[name]]));
    return { messages: [...(result.context.messages as BaseMessage[]), ...newer, tellMessage(result)], values, update };
  }

  return Object.assign(middleware, {
    /** Learns the kinds of the agent's state channels, so that a rewind restores all of them. Returns the agent. */
    attach<Agent>(agent: Agent): Agent {
      kinds = kindsOf(agent as unknown as AgentLike);
      return agent;
    },
  });
}

function anchored(messages: readonly BaseMessage[]): { anchor?: string } {
  const last = messages.at(-1);
  return last?.id === undefined ? {} : { anchor: anchorOf(last) };
}

/** The messages behind the head's boundary: what was done since. */
function sinceHead(thread: Thread, messages: readonly BaseMessage[]): readonly BaseMessage[] {
  const anchor = thread.head === null ? null : thread.get(thread.head).anchor;
  const at =
    anchor === null
      ? -1
      : messages.findLastIndex((message) => message.id !== undefined && anchorOf(message) === anchor);
  return at < 0 ? messages.slice(Math.max(0, lastAiIndex(messages))) : messages.slice(at + 1);
}

/** An admissible rewind drops its siblings before they run: the first such call wins. */
function onlyRewind(reply: Reply, thread: Thread): Reply {
  if (!AIMessage.isInstance(reply) || (reply.tool_calls?.length ?? 0) < 2) return reply;
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
