// One model decision: the pair, what the model is shown, the fence around a rewind's siblings, the gate before the reply's tools.
import type { AIMessage, BaseMessage } from "@langchain/core/messages";
import { isRewindError, rewindTool, type Thread, type Turn } from "agentrewind";
import { type Entry, type EntryOptions, enterModelCall } from "./entry.ts";
import { withLessons } from "./lessons.ts";
import { withMarkers } from "./markers.ts";
import { activityOf, anchorsOf, callsOf, lastAiIndex } from "./messages.ts";
import { paired, withOnlyCall } from "./pairing.ts";
import { toolNames } from "./tools.ts";

export interface ModelCall<Reply> extends EntryOptions {
  readonly thread: Thread;
  /** The messages of the framework's state, and its other channels. */
  readonly stored: readonly BaseMessage[];
  readonly channels: Readonly<Record<string, unknown>>;
  readonly markers: boolean;
  readonly signal: AbortSignal | undefined;
  /** Asks the model. Called again from where the conversation then is when a rewind from outside comes first. */
  ask(messages: BaseMessage[], entry: Entry, turn: Turn): Promise<Reply>;
  /** The model's message, where its calls can be dropped. */
  messageOf(reply: Reply): AIMessage | undefined;
  withMessage(reply: Reply, message: AIMessage): Reply;
}

export async function decide<Reply>(call: ModelCall<Reply>): Promise<{ reply: Reply; entry: Entry }> {
  const { thread, signal } = call;
  for (;;) {
    const entry = await enterModelCall(thread, call.stored, call.channels, call);
    const anchor = anchorsOf(entry.messages).at(-1);
    let turn: Turn | undefined;
    try {
      turn = await thread.beginTurn(
        { messages: [...entry.messages], channels: entry.channels },
        {
          ...(anchor === undefined ? {} : { anchor }),
          activity: activityOf(sinceHead(thread, entry.messages)),
          epoch: entry.epoch,
          ...(signal === undefined ? {} : { signal }),
        },
      );
      const seen = withLessons(thread, entry.seen ?? paired(call.prepared));
      const shown = call.markers ? withMarkers(seen, thread, { id: turn.id, anchor }) : seen;
      const reply = await onlyRewind(await call.ask([...shown], entry, turn), call, turn);
      const message = call.messageOf(reply);
      const calls = callsOf(message).map(({ name, args }) => ({ tool: name, input: args }));
      const tools = calls.some(({ tool }) => !toolNames.has(tool));
      const messages = message === undefined ? entry.messages : [...entry.messages, message];
      const named = message === undefined ? undefined : anchorsOf(messages).at(-1);
      await turn.gate({ tools, look: "tool", calls, reply: named });
      thread.reached(() => ({ messages: [...messages], channels: entry.channels }));
      return { reply, entry };
    } catch (error) {
      turn?.end();
      // A rewind from outside came first: the reply is dropped, and the model asked again from where the conversation is now.
      if (!isRewindError(error, "STALE_EPOCH")) throw error;
    }
  }
}

/** The messages behind the head's boundary: what was done since. */
function sinceHead(thread: Thread, messages: readonly BaseMessage[]): readonly BaseMessage[] {
  const anchor = thread.head === null ? null : thread.get(thread.head).anchor;
  const at = anchor === null ? -1 : anchorsOf(messages).lastIndexOf(anchor);
  return at < 0 ? messages.slice(Math.max(0, lastAiIndex(messages))) : messages.slice(at + 1);
}

/** An admissible rewind drops its siblings before they run: the first such call wins. */
async function onlyRewind<Reply>(reply: Reply, call: ModelCall<Reply>, turn: Turn): Promise<Reply> {
  const message = call.messageOf(reply);
  const calls = callsOf(message);
  if (message === undefined || calls.length < 2) return reply;
  // A model that is faster than the capture names what is not listed yet, or what would still be the head.
  if (calls.some(({ name }) => name === rewindTool.name)) await turn.captured;
  const chosen = calls.find(({ name, args }) => {
    if (name !== rewindTool.name) return false;
    const parsed = rewindTool.schema.safeParse(args);
    return parsed.success && call.thread.admissible(parsed.data.checkpoint, parsed.data.lesson) === undefined;
  });
  return chosen === undefined ? reply : call.withMessage(reply, withOnlyCall(message, chosen.id));
}
