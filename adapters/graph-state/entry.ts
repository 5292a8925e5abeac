// What a model call starts from: LangGraph's state, or what that state must become first.
import type { BaseMessage } from "@langchain/core/messages";
import { type AlignOptions, messageForConversation, type RewindResult, type Thread } from "agentrewind";
import type { ChannelKinds } from "./channels.ts";
import { anchorsOf, boundariesOf, deliveredIn } from "./messages.ts";
import { paired } from "./pairing.ts";
import { abandonedPart, channelsToRestore, newerFromPerson, tellMessage } from "./restore.ts";
import { besideSummary, effective, withoutVoidSummary } from "./summaries.ts";
import type { HumanMessages } from "./tools.ts";

export interface EntryOptions {
  readonly kinds: ChannelKinds | undefined;
  readonly humanMessages: HumanMessages;
  readonly align?: AlignOptions;
  /** Nothing says that the run goes on from an earlier one: a conversation begins, on the files as they are, though its first message may have been sent before. */
  readonly begins?: boolean;
  /** What the other middleware would send. */
  readonly prepared: readonly BaseMessage[];
}

export interface Entry {
  readonly messages: readonly BaseMessage[];
  readonly channels: Readonly<Record<string, unknown>>;
  /** What makes LangGraph's other channels those; null when its state is as it must be, messages included. */
  readonly update: Readonly<Record<string, unknown>> | null;
  /** What the model sees, where it is not what the other middleware prepared. */
  readonly seen: readonly BaseMessage[] | null;
  readonly epoch: number;
}

/** Aligns, takes over what was rewound from outside, and pairs calls and results again where an ended run or a cut left them apart. */
export async function enterModelCall(
  thread: Thread,
  stored: readonly BaseMessage[],
  channels: Readonly<Record<string, unknown>>,
  options: EntryOptions,
): Promise<Entry> {
  const anew = options.begins === true && !isRetry(thread, stored);
  const alignment = await thread.align(anew ? [] : boundariesOf(stored), options.align);
  const { epoch } = alignment;
  if (alignment.status === "deliver") {
    return { ...(await takeOver(thread, alignment.results, stored, channels, options)), epoch };
  }
  const repaired = await withoutVoidSummary(thread, options.prepared, stored, channels);
  if (repaired !== undefined) {
    const messages = paired(repaired.messages);
    return { ...repaired, messages, seen: effective(messages, repaired.channels), epoch };
  }
  const messages = paired(stored);
  return { messages, channels, update: messages === stored ? null : {}, seen: null, epoch };
}

const isRetry = (thread: Thread, stored: readonly BaseMessage[]): boolean =>
  thread.head !== null && thread.get(thread.head).anchor === anchorsOf(stored).at(-1);

async function takeOver(
  thread: Thread,
  results: readonly RewindResult[],
  stored: readonly BaseMessage[],
  channels: Readonly<Record<string, unknown>>,
  { kinds, humanMessages, prepared }: EntryOptions,
): Promise<Omit<Entry, "epoch">> {
  const [moved, ...rest] = results;
  if (moved === undefined || moved.scope === "environment") {
    const messages = [...paired(stored), ...results.map((one) => tellMessage(one))];
    return { messages, channels, update: {}, seen: effective(messages, channels) };
  }
  const newer = humanMessages === "drop" ? [] : await newerFromPerson(thread, stored, moved.context);
  const delivered = deliveredIn(abandonedPart(stored, moved.context));
  const update = await channelsToRestore(channels, moved.context, kinds);
  const told = tellMessage(moved, messageForConversation(moved.message, { carried: newer.length, delivered }));
  const messages = [
    ...(moved.context.messages as BaseMessage[]),
    ...newer,
    told,
    ...rest.map((one) => tellMessage(one)),
  ];
  const restored = {
    ...channels,
    ...Object.fromEntries(Object.keys(update).map((name) => [name, moved.context.channels?.[name]])),
  };
  const taken = besideSummary({ messages, update }, prepared, stored, channels);
  return { ...taken, channels: restored, seen: effective(taken.messages, restored) };
}
