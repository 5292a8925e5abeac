// The three tools that the agent gets.
import { type BaseMessage, ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { Command } from "@langchain/langgraph";
import {
  type Context,
  checkpointTool,
  isRewindError,
  type LessonParts,
  labelledText,
  listCheckpointsTool,
  RewindError,
  type RewindRequest,
  refusalText,
  rewindTool,
} from "agentrewind";
import type { ChannelKinds } from "./channels.ts";
import { anchorsOf, deliveredIn, lastAiIndex } from "./messages.ts";
import { abandonedPart, channelsToRestore, messagesUpdate, newerFromPerson, tellMessage } from "./restore.ts";
import type { Threads } from "./threads.ts";

export type HumanMessages = "keep" | "refuse" | "drop";

export interface ToolOptions {
  /** False where nothing is captured: the agent gets no tools that have nothing to return to. */
  readonly offered: boolean;
  readonly threads: Threads;
  readonly kinds: () => ChannelKinds | undefined;
  /** Name of the messages' channel. */
  readonly messagesKey: string;
  /** The state channels besides the messages, as they are when a tool runs. */
  readonly channels: (runtime: Runtime) => Readonly<Record<string, unknown>>;
  readonly humanMessages: HumanMessages;
  readonly external: "keep" | "restore";
  readonly verify: RewindRequest["verify"];
}

/** What a tool gets as its second argument, as far as it is used here. */
export interface Runtime {
  readonly state: Readonly<Record<string, unknown>>;
  readonly toolCallId?: string;
  readonly toolCall?: { readonly id?: string };
  readonly configurable?: unknown;
  readonly config?: { readonly configurable?: unknown };
}

interface RewindArguments {
  readonly checkpoint: string;
  readonly lesson: string | LessonParts;
}

export const toolNames: ReadonlySet<string> = new Set([rewindTool.name, listCheckpointsTool.name, checkpointTool.name]);

export const failure = (name: string, callId: string, content: string): ToolMessage =>
  new ToolMessage({ name, tool_call_id: callId, status: "error", content });

export function refusal(error: unknown, name: string, callId: string): ToolMessage {
  if (!isRewindError(error)) throw error;
  return failure(name, callId, refusalText(error));
}

export function makeTools(options: ToolOptions) {
  const { threads, messagesKey } = options;
  const messagesOf = (runtime: Runtime) => runtime.state[messagesKey] as readonly BaseMessage[];
  const callIdOf = (runtime: Runtime): string => runtime.toolCall?.id ?? runtime.toolCallId ?? "";
  const threadOf = (runtime: Runtime) => {
    const messages = messagesOf(runtime);
    return threads.ofTools(
      runtime.configurable ?? runtime.config?.configurable,
      messages.slice(0, Math.max(0, lastAiIndex(messages))),
    );
  };

  async function rewindCall({ checkpoint, lesson }: RewindArguments, runtime: Runtime) {
    const callId = callIdOf(runtime);
    try {
      const thread = threadOf(runtime);
      const messages = messagesOf(runtime);
      const at = lastAiIndex(messages);
      const before = messages.slice(0, at);
      const target = await thread.context(checkpoint);
      const newer = options.humanMessages === "drop" ? [] : await newerFromPerson(thread, before, target);
      if (newer.length > 0 && options.humanMessages === "refuse") throw crossesPerson(newer.length);
      const current: Context = { messages: before, channels: options.channels(runtime) };
      const channels = await channelsToRestore(current.channels ?? {}, target, options.kinds());
      const result = await thread.rewind({
        to: checkpoint,
        lesson,
        ...(options.verify === undefined ? {} : { verify: options.verify }),
        by: "agent",
        external: options.external,
        key: `${anchorsOf(before).at(-1) ?? "start"}/${messages[at]?.id}/${callId}`,
        current,
        carried: newer.length,
        delivered: deliveredIn(abandonedPart(before, target)),
        delivery: "returned",
      });
      const restored = [...(result.context.messages as BaseMessage[]), ...newer, tellMessage(result)];
      return new Command({ update: { ...channels, [messagesKey]: messagesUpdate(restored) } });
    } catch (error) {
      return refusal(error, rewindTool.name, callId);
    }
  }

  async function labelCall({ label }: { label: string }, runtime: Runtime) {
    try {
      return labelledText(threadOf(runtime).label(label));
    } catch (error) {
      return refusal(error, checkpointTool.name, callIdOf(runtime));
    }
  }

  if (!options.offered) return [];
  return [
    tool((args, runtime) => rewindCall(args, runtime as unknown as Runtime), rewindTool),
    tool((_args, runtime) => threadOf(runtime as unknown as Runtime).listText(), listCheckpointsTool),
    tool((args, runtime) => labelCall(args, runtime as unknown as Runtime), checkpointTool),
  ];
}

function crossesPerson(count: number): RewindError {
  return new RewindError(
    "BAD_ARGUMENT",
    `That checkpoint lies before ${count === 1 ? "a message" : `${count} messages`} that the person sent.`,
    { hint: "Choose a checkpoint after the person's last message." },
  );
}
