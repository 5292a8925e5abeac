// deepagents' summaries: it leaves the messages as they are and keeps, in a channel, which of them one message stands for.
import { createHash } from "node:crypto";
import type { BaseMessage } from "@langchain/core/messages";
import type { Thread } from "agentrewind";
import { mark } from "./messages.ts";

const channel = "_summarizationEvent";

interface SummaryEvent {
  readonly cutoffIndex: number;
  readonly summaryMessage: BaseMessage;
}

type Channels = Readonly<Record<string, unknown>>;

const eventOf = (channels: Channels | undefined): SummaryEvent | undefined =>
  (channels?.[channel] ?? undefined) as SummaryEvent | undefined;

/** What deepagents sends of `messages`. */
export function effective(messages: readonly BaseMessage[], channels: Channels | undefined): readonly BaseMessage[] {
  const event = eventOf(channels);
  return event === undefined ? messages : [event.summaryMessage, ...messages.slice(event.cutoffIndex)];
}

/**
 * The summary that deepagents has made for this very call: it stores the event when the call returns, whatever the call makes of the messages, and nobody
 * else may write the channel then.
 * @param prepared what the other middleware would send
 */
function madeNow(prepared: readonly BaseMessage[], stored: readonly BaseMessage[], channels: Channels) {
  const known = eventOf(channels)?.summaryMessage;
  return prepared.find(
    (message) =>
      message.additional_kwargs?.lc_source === "summarization" &&
      !stored.includes(message) &&
      (known === undefined || nameOf(message) !== nameOf(known)),
  );
}

const nameOf = (summary: BaseMessage): string => createHash("sha256").update(summary.text).digest("base64");

/** In the message that tells of a rewind: the summary whose event is stored beside it and stands for messages that are gone. */
interface Told {
  readonly checkpoint?: string;
  readonly voidSummary?: string;
}

const toldOf = (message: BaseMessage): Told => (message.additional_kwargs?.[mark] ?? {}) as Told;

/** Notes it there. The message keeps its id. */
function withVoid(message: BaseMessage, summary: BaseMessage): BaseMessage {
  const Message = message.constructor as new (fields: unknown) => BaseMessage;
  return new Message({
    ...message,
    id: message.id,
    additional_kwargs: { ...message.additional_kwargs, [mark]: { ...toldOf(message), voidSummary: nameOf(summary) } },
  });
}

export interface Taken {
  readonly messages: readonly BaseMessage[];
  readonly update: Channels;
}

/** For what a rewind put into the state in this call: where deepagents summarizes in it as well, its event is noted as void and the channel left to it. */
export function besideSummary(
  taken: Taken,
  prepared: readonly BaseMessage[],
  stored: readonly BaseMessage[],
  channels: Channels,
): Taken {
  const summary = madeNow(prepared, stored, channels);
  const at = taken.messages.findLastIndex((message) => toldOf(message).checkpoint !== undefined);
  const told = taken.messages[at];
  if (summary === undefined || told === undefined) return taken;
  const { [channel]: _, ...update } = taken.update;
  return { messages: taken.messages.with(at, withVoid(told, summary)), update };
}

export interface Repaired extends Taken {
  readonly channels: Channels;
}

/** The state without a void event: that of the checkpoint to which the rewind returned takes its place. Undefined when there is none. */
export async function withoutVoidSummary(
  thread: Thread,
  prepared: readonly BaseMessage[],
  stored: readonly BaseMessage[],
  channels: Channels,
): Promise<Repaired | undefined> {
  const event = eventOf(channels);
  const at = stored.findLastIndex((message) => toldOf(message).voidSummary !== undefined);
  const told = stored[at];
  const { checkpoint, voidSummary } = told === undefined ? {} : toldOf(told);
  if (event === undefined || told === undefined || checkpoint === undefined) return undefined;
  if (nameOf(event.summaryMessage) !== voidSummary) return undefined;
  const wanted = (await thread.context(checkpoint)).channels?.[channel];
  const repaired = { ...channels, [channel]: wanted };
  const again = madeNow(prepared, stored, channels);
  if (again === undefined) return { messages: stored, channels: repaired, update: { [channel]: wanted } };
  return { messages: stored.with(at, withVoid(told, again)), channels: repaired, update: {} };
}
