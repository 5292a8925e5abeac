// The loop below somebody else's loop: between a caller that only ever adds to its list of messages and the model. It records a pair at every model decision,
// answers calls of the rewind tools itself, and leaves abandoned turns out of what the model sees.
import { isRewindError, type RewindError } from "../errors.ts";
import { refusalText, staleRefusal } from "../session/texts.ts";
import type { Thread } from "../session/thread.ts";
import { rewindTool } from "../session/tools.ts";
import type { Turn } from "../session/turn.ts";
import { type Entry, type Format, follow, type Item, paired, shownItems, shownSince } from "../wire/index.ts";
import { activityOf } from "./activity.ts";
import {
  type Conversation,
  contextOf,
  conversationIn,
  isFromPerson,
  repliedBy,
  takeOver,
  toSend,
} from "./conversation.ts";
import { Log } from "./log.ts";
import { type OpenReply, openReply } from "./open-reply.ts";
import { carryOut, ownExchange, ownToolNames, sharedReply } from "./own-tools.ts";
import { Place } from "./place.ts";
import { crossesHandoff, crossesPerson } from "./refusals.ts";
import type { ModelReply, Relayed, RelayOptions, RelayTurn } from "./types.ts";

/** Replies in a row that only called our tools, after which the model is asked without them. */
const patience = 8;

const textOfResult = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

interface Received<Reply> {
  readonly conversation: Conversation;
  /** What the reply added. */
  readonly entries: readonly Entry[];
  /** Set when the reply is the caller's. */
  readonly relayed?: Relayed<Reply> & { readonly calls: number };
  readonly moved?: boolean;
}

export class Relay {
  readonly #options: RelayOptions;
  readonly #thread: Thread;
  readonly #format: Format;
  readonly #log: Log;
  readonly #place: Place;
  #last: Conversation | undefined;
  #open: OpenReply | undefined;
  /** Of an earlier process, what may be open still. */
  #left: OpenReply | undefined;
  #tail: Promise<unknown> = Promise.resolve();

  constructor(options: RelayOptions) {
    this.#options = options;
    this.#thread = options.thread;
    this.#format = options.format;
    this.#log = new Log(options.thread.journal, options.format, options.replay ?? "unfinished");
    this.#place = new Place(options.thread, options.format, this.#log);
  }

  get thread(): Thread {
    return this.#thread;
  }

  /** What the model sees of the conversation now, instructions included. */
  async effective(): Promise<Item[]> {
    const { history, preamble } = await this.#known();
    return [...preamble, ...shownItems(history)];
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
      const recorded = this.#log.toolResult(name as string, call);
      const result = recorded && this.#format.result(call, textOfResult(recorded.value), true);
      if (result !== undefined) items.push(result);
    }
    // Those without a result are for the caller to make.
    this.#thread.runsAgain(open.map(({ id }) => id));
    return items;
  }

  /**
   * Runs a tool of the caller for a call of its last reply: once for each call, also when the loop starts over. What was rewound meanwhile does not run.
   * @param id of the call, where the caller knows it; else it is found by the arguments, or is the next of this tool
   */
  async runTool<Args, Result>(
    tool: string,
    args: Args,
    run: (args: Args) => Promise<Result> | Result,
    id?: string,
  ): Promise<Result | string> {
    const open = this.#open;
    const call = open?.claim(tool, args, id);
    if (open === undefined) this.#runsBeforeAsked(tool, args, id);
    if (open === undefined || call === undefined) return run(args);
    const recorded = this.#thread.observed ? undefined : this.#log.toolResult(open.name, call);
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
      await this.#log.putToolResult(open.name, call, outcome.result ?? null);
      return outcome.result;
    } catch (error) {
      if (isRewindError(error, "STALE_EPOCH")) return refusalText(error);
      throw error;
    } finally {
      running();
    }
  }

  /** A caller that has kept its list in an earlier process goes on with the calls that were open. */
  #runsBeforeAsked(tool: string, args: unknown, id: string | undefined): void {
    if (!this.#thread.lacks) return;
    this.#left ??= openReply(this.#format, "", null, this.#log.openItems(), new Set());
    const call = this.#left.claim(tool, args, id);
    if (call !== undefined) this.#thread.runsAgain([call.id]);
  }

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
    const logged = this.#thread.observed ? undefined : this.#log.replay(list, previous);
    if (logged !== undefined) {
      if (logged.places && logged.anchor !== null) await this.#thread.align([{ anchor: logged.anchor, tool: false }]);
      const reply = request.again(logged.raw);
      const dropped = new Set(logged.dropped);
      this.#open = openReply(this.#format, name, logged.anchor, reply.items, dropped);
      if (logged.isLast) this.#thread.runsAgain(this.#callsOf(reply));
      return { reply, dropped };
    }
    if (this.#thread.lacks) this.#thread.runsAgain(this.#log.recordedCalls());
    let { conversation, cut } = await this.#place.begin(request, name, await this.#known(), this.#open !== undefined);
    for (let owned = 0; ; ) {
      request.signal?.throwIfAborted();
      const { external } = this.#options;
      const alignment = await this.#thread.align(this.#place.boundaries(conversation, cut), { external });
      cut = undefined;
      if (alignment.status === "deliver") {
        conversation = takeOver(this.#options, conversation, alignment.results);
        this.#last = conversation;
      }
      const anchor = this.#place.anchor(conversation);
      let turn: Turn | undefined;
      try {
        turn = await this.#thread.beginTurn(contextOf(this.#format, conversation), {
          ...(anchor === undefined ? {} : { anchor }),
          activity: activityOf(this.#format, this.#thread, conversation.history),
          epoch: alignment.epoch,
          ...(request.signal === undefined ? {} : { signal: request.signal }),
        });
        const { held, preamble } = conversation;
        const reply = await request.ask(toSend(this.#format, conversation), {
          ownTools: owned < patience && !this.#thread.observed,
          previous: held?.reply,
          preamble: held === undefined ? preamble : [],
        });
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
          this.#thread.runsAgain(this.#callsOf(reply));
          const reached = conversation;
          this.#thread.reached(() => contextOf(this.#format, reached));
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

  #callsOf = ({ items }: ModelReply): string[] => items.flatMap((item) => this.#format.calls(item)).map(({ id }) => id);

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
    await turn.gate({
      tools: isOwn.includes(false) && calls.every(({ name }) => name !== rewindTool.name),
      calls: calls.map(({ name, arguments: input }) => ({ tool: name, input })),
    });
    const outcome = await carryOut(this.#thread, calls, {
      key: (call) => `${anchor ?? "start"}/${call.id}`,
      current: () => contextOf(format, conversation),
      external: this.#options.external,
      verify: this.#options.verify,
      crossing: (target) => this.#crossing(conversation, target),
    });
    if (outcome.kind === "rewound") return { conversation, entries: [], moved: true };
    const { results } = outcome;
    if (calls.length > 0 && results.size === calls.length) {
      const exchange = ownExchange(format, reply.items, results);
      return { conversation: { ...conversation, history: [...history, ...exchange] }, entries: [] };
    }
    const entries = sharedReply(format, reply, results);
    const dropped = new Set(results.keys());
    const replied = repliedBy(format, reply.id, history, entries);
    return {
      conversation: { ...conversation, history: [...history, ...entries], replied },
      entries,
      relayed: { reply, dropped, calls: calls.length - dropped.size },
    };
  }

  async #crossing(conversation: Conversation, target: string): Promise<RewindError | undefined> {
    const { format, humanMessages, handsOver } = this.#options;
    if (humanMessages !== "refuse" && handsOver === undefined) return undefined;
    const then = conversationIn(format, await this.#thread.context(target));
    const since = shownSince(conversation.history, then.history);
    const fromPerson = humanMessages === "refuse" ? since.filter(isFromPerson(format)).length : 0;
    if (fromPerson > 0) return crossesPerson(fromPerson);
    const calls = since.flatMap(({ item }) => (item === undefined ? [] : format.calls(item)));
    return calls.some((call) => handsOver?.(call) === true) ? crossesHandoff() : undefined;
  }

  async #known(): Promise<Conversation> {
    this.#last ??= await this.#place.stored();
    return this.#last;
  }
}
