// The loop below somebody else's loop: between a caller that only ever adds to its list of messages and the model. It records a pair at every model decision,
// answers calls of the rewind tools itself, and leaves abandoned turns out of what the model sees.
import { isRewindError } from "../errors.ts";
import type { Boundary } from "../session/alignment.ts";
import { refusalText, staleRefusal } from "../session/texts.ts";
import type { Thread } from "../session/thread.ts";
import { rewindTool } from "../session/tools.ts";
import type { Turn } from "../session/turn.ts";
import {
  boundariesOf,
  type Call,
  type CallerEntry,
  callerEntry,
  type Entry,
  type Format,
  follow,
  type History,
  type Item,
  type Line,
  paired,
  shownItems,
  shownSince,
} from "../wire/index.ts";
import { activityOf } from "./activity.ts";
import { type Conversation, contextOf, conversationIn, fresh, isFromPerson, takeOver } from "./conversation.ts";
import { Log } from "./log.ts";
import { type OpenReply, openReply } from "./open-reply.ts";
import { carryOut, ownExchange, ownToolNames, sharedReply } from "./own-tools.ts";
import type { ModelReply, Relayed, RelayOptions, RelayTurn } from "./types.ts";
import { historyUnknown, speaks } from "./unknown.ts";

/** Replies in a row that only called our tools, after which the model is asked without them. */
const patience = 8;

const toolKey = (name: string, { id }: Call): string => `tool:${name}/${id}`;

const textOfResult = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

interface Received<Reply> {
  readonly conversation: Conversation;
  /** What the reply added. */
  readonly entries: readonly Entry[];
  /** Set when the reply is the caller's. */
  readonly relayed?: Relayed<Reply> & { readonly calls: number };
  readonly moved?: boolean;
}

interface Begun {
  readonly conversation: Conversation;
  /** Set where the caller has cut or changed its list: what it comes from, and how many items of it came behind that. */
  readonly cut?: { readonly line: Conversation; readonly news: number } | undefined;
}

export class Relay {
  readonly #options: RelayOptions;
  readonly #thread: Thread;
  readonly #format: Format;
  readonly #log: Log;
  #last: Conversation | undefined;
  #open: OpenReply | undefined;
  #tail: Promise<unknown> = Promise.resolve();

  constructor(options: RelayOptions) {
    this.#options = options;
    this.#thread = options.thread;
    this.#format = options.format;
    this.#log = new Log(options.thread.journal, options.format, options.replay ?? "unfinished");
  }

  get thread(): Thread {
    return this.#thread;
  }

  /** What the model sees of the conversation now. */
  async effective(): Promise<Item[]> {
    return [...shownItems((await this.#known()).history)];
  }

  /**
   * What the model may see of a list that is not a turn of the agent: without abandoned turns, where they are known. Undefined when the list is not of this
   * conversation.
   */
  async view(list: readonly Item[]): Promise<Item[] | undefined> {
    const { history, known } = follow(this.#format, (await this.#known()).history, list);
    return known === 0 ? undefined : [...paired(this.#format, shownItems(history))];
  }

  /** The conversation to go on from after a crash: as the model sees it, with the last reply and the recorded results of its tools. */
  async resume(): Promise<Item[]> {
    const items = await this.effective();
    const name = this.#log.latestName();
    const answered = new Set(items.map((item) => this.#format.answers(item)));
    const open = items.flatMap((item) => this.#format.calls(item)).filter(({ id }) => !answered.has(id));
    for (const call of name === undefined ? [] : open) {
      const recorded = this.#recorded(name as string, call);
      if (recorded !== undefined) items.push(this.#format.result(call, textOfResult(recorded.value)));
    }
    return items;
  }

  /**
   * Runs a tool of the caller for the call of its last reply that has these arguments: once for each call, also when the loop starts over. What was rewound
   * meanwhile does not run.
   */
  async runTool<Args, Result>(
    tool: string,
    args: Args,
    run: (args: Args) => Promise<Result> | Result,
  ): Promise<Result | string> {
    const open = this.#open;
    const call = open?.claim(tool, args);
    if (open === undefined || call === undefined) return run(args);
    const recorded = this.#recorded(open.name, call);
    if (recorded !== undefined) return recorded.value as Result;
    const running = await this.#thread.enterTool(open.anchor === null ? [] : [{ anchor: open.anchor, tool: false }]);
    if (running === undefined) return staleRefusal;
    try {
      const callId = `${open.name}/${call.id}`;
      const outcome = await running.run(() =>
        this.#thread.runTool<Result>({ tool, args, callId }, (given) => run(given as Args)),
      );
      // What was held may be answered otherwise next time.
      if (outcome.status === "held") return outcome.message;
      await this.#thread.journal.put({ [toolKey(open.name, call)]: { value: outcome.result ?? null } });
      return outcome.result;
    } catch (error) {
      if (isRewindError(error, "STALE_EPOCH")) return refusalText(error);
      throw error;
    } finally {
      running();
    }
  }

  #recorded = (name: string, call: Call): { readonly value: unknown } | undefined =>
    this.#thread.journal.get(toolKey(name, call)) as { readonly value: unknown } | undefined;

  /**
   * One request of the caller: resolves with the reply that is the caller's. Requests wait for each other.
   * @throws HISTORY_UNKNOWN, and what `Thread.align` and `Turn.gate` throw
   */
  turn<Reply extends ModelReply>(request: RelayTurn<Reply>): Promise<Relayed<Reply>> {
    const result = this.#tail.then(() => this.#turn(request));
    this.#tail = result.catch(() => {});
    return result;
  }

  async #turn<Reply extends ModelReply>(request: RelayTurn<Reply>): Promise<Relayed<Reply>> {
    const { list, previous } = request;
    const name = this.#log.nameOf(list, previous);
    const logged = this.#log.replay(list, previous);
    if (logged !== undefined) {
      const reply = request.again(logged.raw);
      const dropped = new Set(logged.dropped);
      this.#open = openReply(this.#format, name, logged.anchor, reply.items, dropped);
      return { reply, dropped };
    }
    let { conversation, cut } = await this.#begin(request, name);
    for (let owned = 0; ; ) {
      request.signal?.throwIfAborted();
      const alignment = await this.#thread.align(this.#standing(conversation, cut));
      cut = undefined;
      if (alignment.status === "deliver") {
        conversation = takeOver(this.#options, conversation, alignment.results);
        this.#last = conversation;
      }
      const anchor = this.#anchor(conversation);
      let turn: Turn | undefined;
      try {
        turn = await this.#thread.beginTurn(contextOf(this.#format, conversation), {
          ...(anchor === undefined ? {} : { anchor }),
          activity: activityOf(this.#format, this.#thread, conversation.history),
          epoch: alignment.epoch,
          ...(request.signal === undefined ? {} : { signal: request.signal }),
        });
        const { previous: before } = conversation;
        const items = paired(this.#format, shownItems(conversation.history), before !== undefined);
        const reply = await request.ask(items, { ownTools: owned < patience, previous: before });
        const received = await this.#receive(conversation, reply, turn, anchor);
        conversation = received.conversation;
        this.#last = conversation;
        const { relayed } = received;
        if (relayed !== undefined) {
          await this.#log.record(
            name,
            list,
            { previous, id: reply.id },
            {
              raw: reply.raw,
              dropped: [...relayed.dropped],
              asks: relayed.calls > 0,
              anchor: anchor ?? null,
              entries: received.entries,
            },
          );
          this.#open = openReply(this.#format, name, anchor ?? null, reply.items, relayed.dropped);
          return relayed;
        }
        owned = received.moved === true ? 0 : owned + 1;
      } catch (error) {
        turn?.end();
        // A rewind from outside came first: the reply is dropped, and the model asked again from where the conversation is now.
        if (!isRewindError(error, "STALE_EPOCH")) throw error;
      }
    }
  }

  /** Where a caller that has cut its list stands, newest first. */
  *#standing(conversation: Conversation, cut: Begun["cut"]): Generator<Boundary> {
    if (cut === undefined) return yield* this.#boundaries(conversation);
    let news = 0;
    for (const boundary of this.#boundaries(conversation)) {
      if (news++ >= cut.news) break;
      yield boundary;
    }
    yield* this.#boundaries(cut.line);
  }

  /** Newest first. */
  *#boundaries({ history, previous, start }: Conversation): Generator<Boundary> {
    yield* boundariesOf(this.#format, history, previous ?? start);
    const anchor = previous === undefined ? null : (this.#log.byId(previous)?.anchor ?? null);
    if (anchor !== null) yield { anchor, tool: false };
  }

  /** Names where the conversation is. */
  #anchor(conversation: Conversation): string | undefined {
    return this.#boundaries(conversation).next().value?.anchor;
  }

  async #receive<Reply extends ModelReply>(
    conversation: Conversation,
    reply: Reply,
    turn: Turn,
    anchor: string | undefined,
  ): Promise<Received<Reply>> {
    const format = this.#format;
    const { history } = conversation;
    const calls = reply.items.flatMap((item) => format.calls(item));
    const isOwn = calls.map(({ name }) => ownToolNames.has(name));
    // A model that is faster than the capture names what is not listed yet.
    if (isOwn.includes(true)) await turn.captured;
    await turn.gate({ tools: isOwn.includes(false) && calls.every(({ name }) => name !== rewindTool.name) });
    const outcome = await carryOut(this.#thread, calls, {
      key: (call) => `${anchor ?? "start"}/${call.id}`,
      current: () => contextOf(format, conversation),
      external: this.#options.external,
      verify: this.#options.verify,
      crossing: (target) => this.#crossing(conversation, target),
    });
    if (outcome.kind === "rewound") return { conversation, entries: [], moved: true };
    const { results } = outcome;
    const extended = (entries: readonly Entry[]): Conversation => ({
      ...conversation,
      history: [...history, ...entries],
    });
    if (calls.length > 0 && results.size === calls.length) {
      return { conversation: extended(ownExchange(format, reply.items, results)), entries: [] };
    }
    const entries = sharedReply(format, reply, results);
    const dropped = new Set(results.keys());
    return {
      conversation: extended(entries),
      entries,
      relayed: { reply, dropped, calls: calls.length - dropped.size },
    };
  }

  /** How many messages of a person a rewind would take back, where that is refused. */
  async #crossing(conversation: Conversation, target: string): Promise<number> {
    if (this.#options.humanMessages !== "refuse") return 0;
    const then = conversationIn(this.#format, await this.#thread.context(target));
    return shownSince(conversation.history, then.history).filter(isFromPerson(this.#format)).length;
  }

  async #known(): Promise<Conversation> {
    this.#last ??= await this.#stored();
    return this.#last;
  }

  /** As an earlier process left it: what the model saw last, and what it answered. */
  async #stored(): Promise<Conversation> {
    const { head } = this.#thread;
    if (head === null) return fresh([]);
    const conversation = conversationIn(this.#format, await this.#thread.context(head));
    const answered = this.#log.latest();
    const isNext = answered !== undefined && answered.anchor === this.#anchor(conversation);
    return isNext ? { ...conversation, history: [...conversation.history, ...answered.entries] } : conversation;
  }

  async #begin({ list, previous }: RelayTurn<ModelReply>, name: string): Promise<Begun> {
    const format = this.#format;
    const asNew = (): CallerEntry[] => list.map((item) => callerEntry(format, item));
    if (previous !== undefined) {
      // Results of our calls in that reply, of which the caller knows nothing.
      const results = (this.#log.byId(previous)?.entries ?? []).filter(
        ({ own, item }) => own !== null && item !== undefined && format.answers(item) !== undefined,
      );
      return { conversation: { history: [...results, ...asNew()], previous, start: "" } };
    }
    const last = await this.#known();
    // What the server held is not in the caller's list.
    const { history, known, from } = follow(format, last.previous === undefined ? last.history : [], list);
    if (from === undefined) return { conversation: fresh(history, last.start) };
    const news = asNew();
    const begins = !news.some(speaks(format));
    const begun = last.history.some(speaks(format));
    // Sent again: its reply was lost on the way.
    const isRetry = this.#log.latestName() === name;
    if (known === 0 ? begins || !begun : begins && !isRetry && this.#log.isFinished()) {
      return { conversation: this.#anew(news) };
    }
    if (known > 0) return this.#cut(last, history, from);
    for (const { anchor } of boundariesOf(format, news)) {
      const row = this.#thread.checkpoints({ all: true }).findLast((one) => one.anchor === anchor);
      if (row === undefined) continue;
      const then = conversationIn(format, await this.#thread.context(row.id));
      const again = follow(format, then.history, list);
      return again.from === undefined
        ? { conversation: { ...then, history: again.history } }
        : this.#cut(then, again.history, again.from);
    }
    throw historyUnknown(this.#thread.name, list.length);
  }

  /** What names the boundaries may be cut off: they are named anew, by where the caller stands. */
  #cut(before: Conversation, history: History, from: Line): Begun {
    const line = { ...before, history: from.history };
    const start = from.whole ? before.start : (this.#anchor(line) ?? this.#thread.head ?? "");
    return { conversation: { ...before, history, start }, cut: { line, news: from.news } };
  }

  /** A conversation that begins on the files as they are. What was learned in the thread is told in front. */
  #anew(news: readonly CallerEntry[]): Conversation {
    const format = this.#format;
    const lessons = this.#thread.reminder(news.map(({ item }) => format.text(item as Item)));
    const told: Entry[] = lessons === null ? [] : [{ own: "told", item: format.message(lessons) }];
    return fresh([...told, ...news], this.#thread.head ?? "");
  }
}
