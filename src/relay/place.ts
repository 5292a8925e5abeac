// Where a request stands in its conversation: grown, cut, gone back, begun anew, or going on from a reply that the server holds.
import type { Boundary } from "../session/alignment.ts";
import type { Thread } from "../session/thread.ts";
import type { Checkpoint } from "../session/types.ts";
import {
  boundariesOf,
  type CallerEntry,
  callerEntry,
  type Entry,
  type Followed,
  type Format,
  follow,
  type Item,
} from "../wire/index.ts";
import { type Conversation, conversationIn, fresh, repliedBy } from "./conversation.ts";
import type { Log } from "./log.ts";
import { historyUnknown, speaks, stillOpen } from "./refusals.ts";
import type { ModelReply, RelayTurn } from "./types.ts";

export interface Begun {
  readonly conversation: Conversation;
  /** Set where the caller has cut or changed its list: what it comes from, and how many items of it came behind that. */
  readonly cut?: { readonly line: Conversation; readonly news: number } | undefined;
}

export class Place {
  readonly #thread: Thread;
  readonly #format: Format;
  readonly #log: Log;

  constructor(thread: Thread, format: Format, log: Log) {
    this.#thread = thread;
    this.#format = format;
    this.#log = log;
  }

  /** Where a caller that has cut its list stands, newest first. */
  *boundaries(conversation: Conversation, cut: Begun["cut"]): Generator<Boundary> {
    if (cut === undefined) {
      yield* this.#boundariesOf(conversation);
      return;
    }
    let news = 0;
    for (const boundary of this.#boundariesOf(conversation)) {
      if (news++ >= cut.news) break;
      yield boundary;
    }
    yield* this.#boundariesOf(cut.line);
  }

  /** Newest first. */
  #boundariesOf({ history, start }: Conversation): Generator<Boundary> {
    return boundariesOf(this.#format, history, start);
  }

  /** Names where the conversation is. */
  anchor(conversation: Conversation): string | undefined {
    return this.#boundariesOf(conversation).next().value?.anchor;
  }

  /** As an earlier process left it: what the model saw last, and what it answered. */
  async stored(): Promise<Conversation> {
    const { head } = this.#thread;
    if (head === null) return fresh([]);
    const conversation = conversationIn(this.#format, await this.#thread.context(head));
    const answered = this.#log.latest();
    const isNext = answered !== undefined && answered.anchor === this.anchor(conversation);
    return isNext ? { ...conversation, history: [...conversation.history, ...answered.entries] } : conversation;
  }

  /** The conversation as this reply left it; undefined where nothing is known of it. */
  async #repliedWith(id: string, last: Conversation): Promise<Conversation | undefined> {
    if (last.replied?.reply === id) return last;
    const logged = this.#log.byId(id);
    const row = logged?.anchor == null ? undefined : this.#checkpointAt(logged.anchor);
    if (logged === undefined || row === undefined) return undefined;
    const before = conversationIn(this.#format, await this.#thread.context(row.id));
    const replied = repliedBy(this.#format, id, before.history, logged.entries);
    return { ...before, history: [...before.history, ...logged.entries], replied };
  }

  #checkpointAt = (anchor: string): Checkpoint | undefined =>
    this.#thread.checkpoints({ all: true }).findLast((one) => one.anchor === anchor);

  /**
   * What a request makes of the conversation, and where its caller stands.
   * @param last the conversation as this process knows it
   * @param waits a reply of this process may still have calls that are not answered
   * @throws HISTORY_UNKNOWN
   */
  async begin(
    { list, previous, preamble = [] }: RelayTurn<ModelReply>,
    name: string,
    last: Conversation,
    waits: boolean,
  ): Promise<Begun> {
    const format = this.#format;
    const asNew = (): CallerEntry[] => list.map((item) => callerEntry(format, item));
    if (previous !== undefined) {
      const before = (await this.#repliedWith(previous, last)) ?? fresh([], [], previous);
      const held = before.replied ?? { reply: previous, shown: 0 };
      return { conversation: { ...before, history: [...before.history, ...asNew()], held, replied: undefined } };
    }
    const followed = follow(format, last.history, list);
    if (followed.from === undefined) return { conversation: fresh(followed.history, preamble, last.start) };
    const news = asNew();
    const begins = !news.some(speaks(format));
    const begun = last.history.some(speaks(format));
    // Sent again: its reply was lost on the way.
    const isRetry = this.#log.latestName() === name;
    const isFinished = this.#log.isFinished();
    const { observed } = this.#thread;
    if (followed.known === 0 && begins && waits && !isFinished && !observed) throw stillOpen(this.#thread.name);
    if (followed.known === 0 ? begins || !begun : begins && !isRetry && isFinished) {
      return { conversation: this.#anew(news, preamble) };
    }
    if (followed.known > 0) return this.#changed(last, followed, preamble);
    for (const { anchor } of boundariesOf(format, news)) {
      const row = this.#checkpointAt(anchor);
      if (row === undefined) continue;
      const then = conversationIn(format, await this.#thread.context(row.id));
      return this.#changed(then, follow(format, then.history, list), preamble);
    }
    // What was said before it was observed is not known here, and is the caller's all the same.
    if (observed) return { conversation: this.#anew(news, preamble) };
    throw historyUnknown(this.#thread.name, list.length);
  }

  /** What names the boundaries may be cut off: they are named anew, by where the caller stands. */
  #changed(before: Conversation, { history, from }: Followed, preamble: readonly Item[]): Begun {
    if (from === undefined) return { conversation: fresh(history, preamble, before.start) };
    const line = { ...before, history: from.history };
    const start = from.whole ? before.start : (this.anchor(line) ?? this.#thread.head ?? "");
    return { conversation: fresh(history, preamble, start), cut: { line, news: from.news } };
  }

  /** A conversation that begins on the files as they are. What was learned in the thread is told in front. */
  #anew(news: readonly CallerEntry[], preamble: readonly Item[]): Conversation {
    const format = this.#format;
    const lessons = this.#thread.reminder(news.map(({ item }) => format.text(item as Item)));
    const told: Entry[] = lessons === null ? [] : [{ own: "told", item: format.message(lessons) }];
    return fresh([...told, ...news], preamble, this.#thread.head ?? "");
  }
}
