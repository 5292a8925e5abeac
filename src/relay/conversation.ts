// A conversation's two forms: the history below the caller's list, and the context that a checkpoint stores.
import { messageForConversation } from "../session/texts.ts";
import type { Thread } from "../session/thread.ts";
import type { Context, RewindResult } from "../session/types.ts";
import {
  type CallerEntry,
  type Entry,
  type Format,
  type History,
  type HistoryNotes,
  historyOf,
  type Item,
  isShown,
  notesOf,
  type OwnEntry,
  paired,
  returnTo,
  shownItems,
  shownSince,
} from "../wire/index.ts";
import type { RelayOptions } from "./types.ts";

/** The channels of a context that hold what the shown messages alone do not tell. */
const channel = "agentrewind.wire";
const preambleChannel = "agentrewind.preamble";

/** What the model's server has of a conversation whose caller goes on from replies by their names. */
export interface Held {
  readonly reply: string;
  /** How many of the shown items it has, from the front. */
  readonly shown: number;
}

export interface Conversation {
  /** All of it, also what the server holds. */
  readonly history: History;
  /** Undefined where each request carries the whole conversation. */
  readonly held: Held | undefined;
  /** The newest reply, where the server has a name for it. */
  readonly replied?: Held | undefined;
  /** Names what was before a conversation that began anew, so that its boundaries are its own; "" for the thread's first. */
  readonly start: string;
  /** The instructions in front of it. */
  readonly preamble: readonly Item[];
}

export const fresh = (history: History, preamble: readonly Item[] = [], start = ""): Conversation => ({
  history,
  held: undefined,
  start,
  preamble,
});

interface Notes extends HistoryNotes {
  readonly held?: Held;
  readonly start?: string;
}

export function contextOf(format: Format, { history, held, start, preamble }: Conversation): Context {
  const notes: Notes = {
    ...notesOf(format, history),
    ...(held === undefined ? {} : { held }),
    ...(start === "" ? {} : { start }),
  };
  const instructions = preamble.length === 0 ? {} : { [preambleChannel]: preamble };
  return { messages: shownItems(history), channels: { [channel]: notes, ...instructions } };
}

/** Also of a context that somebody else stored: then all of it is the caller's. */
export function conversationIn(format: Format, context: Context): Conversation {
  const notes = context.channels?.[channel] as Notes | undefined;
  const messages = context.messages as readonly Item[];
  return {
    history: historyOf(format, messages, notes ?? { format: format.name, own: [], amended: [], hidden: [] }),
    held: notes?.held,
    start: notes?.start ?? "",
    preamble: (context.channels?.[preambleChannel] as readonly Item[] | undefined) ?? [],
  };
}

/** What the server has when it has given this reply. @param entries of the reply, with the results of our calls in it */
export function repliedBy(
  format: Format,
  reply: string | undefined,
  before: History,
  entries: readonly Entry[],
): Held | undefined {
  if (reply === undefined) return undefined;
  const shown = entries.filter(isShown);
  const called = new Set(shown.flatMap(({ item }) => format.calls(item).map(({ id }) => id)));
  const given = shown.filter(({ item }) => !called.has(format.answers(item) ?? ""));
  return { reply, shown: shownItems(before).length + given.length };
}

/** The items of a request to the model: all that its server does not have, calls and results in pairs. */
export function toSend(format: Format, { history, held }: Conversation): readonly Item[] {
  const shown = shownItems(history);
  const sound = paired(format, shown);
  if (held === undefined) return sound;
  for (let at = 0; at < held.shown; at++) {
    // What the server has cannot be mended.
    if (sound[at] !== shown[at]) return paired(format, shown.slice(held.shown), true);
  }
  return sound.slice(held.shown);
}

/** In which form the thread's conversation was stored last; undefined where it has none of these. */
export async function storedFormat(thread: Thread): Promise<string | undefined> {
  if (thread.head === null) return undefined;
  const { channels } = await thread.context(thread.head);
  return (channels?.[channel] as Notes | undefined)?.format;
}

export const isFromPerson =
  (format: Format) =>
  (entry: CallerEntry): boolean =>
    isShown(entry) && format.speaker(entry.item) === "person";

/** What a rewind from anywhere makes of the conversation. @param results as `Thread.align` delivers them */
export function takeOver(
  { format, humanMessages = "keep" }: Pick<RelayOptions, "format" | "humanMessages">,
  conversation: Conversation,
  results: readonly RewindResult[],
): Conversation {
  const { history } = conversation;
  const [moved, ...rest] = results;
  if (moved === undefined || moved.scope === "environment") {
    return { ...conversation, history: [...history, ...results.map((one) => tell(format, one, one.message))] };
  }
  const target = conversationIn(format, moved.context);
  const since = shownSince(history, target.history);
  const carried = new Set<Entry>(humanMessages === "drop" ? [] : since.filter(isFromPerson(format)));
  const message = messageForConversation(moved.message, {
    carried: carried.size,
    delivered: deliveredIn(format, since),
  });
  const told = [tell(format, moved, message), ...rest.map((one) => tell(format, one, one.message))];
  return { ...target, history: returnTo(history, target.history, carried, told) };
}

/** What the model said to the person: replies without calls. */
function deliveredIn(format: Format, entries: readonly CallerEntry[]): string[] {
  const texts: string[] = [];
  let reply: Item[] = [];
  const end = (): void => {
    if (reply.every((item) => format.calls(item).length === 0)) {
      texts.push(...reply.map((item) => format.text(item).trim()).filter((text) => text !== ""));
    }
    reply = [];
  };
  for (const { item } of entries) {
    if (item === undefined) continue;
    if (format.speaker(item) !== "model" || !format.callsApart) end();
    if (format.speaker(item) === "model") reply.push(item);
  }
  end();
  return texts;
}

const tell = (format: Format, { checkpoint, epoch, scope }: RewindResult, text: string): OwnEntry => ({
  own: "told",
  item: format.message(text),
  told: { checkpoint: scope === "environment" ? null : checkpoint.id, epoch },
});
