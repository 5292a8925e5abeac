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
  returnTo,
  shownItems,
  shownSince,
} from "../wire/index.ts";
import type { RelayOptions } from "./types.ts";

/** The channel of a context that holds what the shown messages alone do not tell. */
const channel = "agentrewind.wire";

export interface Conversation {
  readonly history: History;
  /** The reply from which the server goes on: the history is what came since. */
  readonly previous: string | undefined;
  /** Names what was before a conversation that began anew, so that its boundaries are its own; "" for the thread's first. */
  readonly start: string;
}

export const fresh = (history: History, start = ""): Conversation => ({ history, previous: undefined, start });

interface Notes extends HistoryNotes {
  readonly previous?: string;
  readonly start?: string;
}

export function contextOf(format: Format, { history, previous, start }: Conversation): Context {
  const notes: Notes = {
    ...notesOf(format, history),
    ...(previous === undefined ? {} : { previous }),
    ...(start === "" ? {} : { start }),
  };
  return { messages: shownItems(history), channels: { [channel]: notes } };
}

/** Also of a context that somebody else stored: then all of it is the caller's. */
export function conversationIn(format: Format, context: Context): Conversation {
  const notes = context.channels?.[channel] as Notes | undefined;
  const messages = context.messages as readonly Item[];
  const history = historyOf(format, messages, notes ?? { format: format.name, own: [], amended: [], hidden: [] });
  return { history, previous: notes?.previous, start: notes?.start ?? "" };
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
