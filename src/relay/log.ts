// The replies that the caller has been given: a loop that starts over with the same first messages gets them again, without a model call.
import { RewindError } from "../errors.ts";
import type { Journal } from "../session/journal.ts";
import { type Call, digest, digestOfStrings, type Entry, type Format, type Item, remembered } from "../wire/index.ts";

/** Whose replies are given again to a loop that starts over. "unfinished": those of a run whose last reply still asked for something. */
export type Replay = "unfinished" | "always" | "never";

export interface LoggedReply {
  /** Names the request before, null for the first. */
  readonly before: string | null;
  /** How many of the request's items stood in the one before, at the same place. */
  readonly shared: number;
  /** Digests of the others: a turn stores what it adds. */
  readonly added: readonly string[];
  /** What the adapter makes the reply of. */
  readonly raw: unknown;
  readonly dropped: readonly string[];
  /** The caller has something to do. */
  readonly asks: boolean;
  /** The boundary at which the model decided. */
  readonly anchor: string | null;
  /** What the reply adds to the conversation. */
  readonly entries: readonly Entry[];
}

/** Nobody changes an item that was given to the relay. */
const digestOf = remembered(digest);

/** What a loop that starts over is given again. */
export interface ReplayedReply extends LoggedReply {
  /** Tools of which nothing is recorded will run again: the files must be where they were. */
  readonly places: boolean;
  /** Nothing was recorded behind it. */
  readonly isLast: boolean;
}

const latestKey = "latest";
const replyKey = (name: string): string => `reply:${name}`;
const idKey = (id: string): string => `id:${id}`;
const toolKey = (name: string, { id }: Call): string => `tool:${name}/${id}`;

export class Log {
  readonly #journal: Journal;
  readonly #format: Format;
  readonly #mode: Replay;
  #replaying: boolean | undefined;
  /** The request answered last, in this process or, before the first, in an earlier one. */
  #at: string | null = null;
  /** While replaying: which request came behind which. */
  #next: Map<string | null, string> = new Map();
  #seen: { readonly items: readonly Item[]; readonly digests: readonly string[] } = { items: [], digests: [] };
  /** While replaying: some tools of replies before the last run again. */
  #reruns = false;
  /** Digests of the request at `#at`. */
  #list: readonly string[] = [];

  constructor(journal: Journal, format: Format, mode: Replay) {
    this.#journal = journal;
    this.#format = format;
    this.#mode = mode;
  }

  /** Names the request; the tools of its reply are recorded under this name. */
  nameOf(list: readonly Item[], previous: string | undefined): string {
    return digestOfStrings([this.#format.name, previous ?? null, this.#digests(list)]);
  }

  /** The recorded reply to this request of a loop that starts over. @throws REPLAY_DIVERGED when it went another way */
  replay(list: readonly Item[], previous: string | undefined): ReplayedReply | undefined {
    if (this.#replaying === undefined) this.#replaying = this.#begins(list, previous);
    if (!this.#replaying) return undefined;
    const name = this.nameOf(list, previous);
    const expected = this.#next.get(this.#at);
    if (expected === name) {
      this.#at = name;
      this.#list = this.#digests(list);
      const reply = this.#get(name) as LoggedReply;
      const isLast = !this.#next.has(name);
      const calls = this.#callsOf(reply);
      const untouched = isLast && calls.length > 0 && calls.every((call) => this.toolResult(name, call) === undefined);
      return { ...reply, places: this.#reruns || untouched, isLast };
    }
    if (expected !== undefined) throw this.#diverged(list, this.#get(expected) as LoggedReply);
    this.#replaying = false;
    return undefined;
  }

  /** Before the caller gets the reply. */
  async record(
    name: string,
    list: readonly Item[],
    { previous, id }: { readonly previous: string | undefined; readonly id: string | undefined },
    reply: Omit<LoggedReply, "before" | "shared" | "added">,
  ): Promise<void> {
    const digests = this.#digests(list);
    // Before the model has said anything a run begins: it may start over from here.
    const begins = previous === undefined && list.every((item) => this.#format.speaker(item) !== "model");
    const before = begins ? null : this.#at;
    const shared = begins ? 0 : sharedLength(this.#list, digests);
    const logged: LoggedReply = { ...reply, before, shared, added: digests.slice(shared) };
    this.#at = name;
    this.#list = digests;
    await this.#journal.put({
      [replyKey(name)]: logged,
      [latestKey]: name,
      ...(id === undefined ? {} : { [idKey(id)]: name }),
    });
  }

  latest(): LoggedReply | undefined {
    const name = this.#journal.get(latestKey);
    return typeof name === "string" ? this.#get(name) : undefined;
  }

  /** The last reply asked for nothing more. */
  isFinished(): boolean {
    return this.latest()?.asks === false;
  }

  latestName(): string | undefined {
    const name = this.#journal.get(latestKey);
    return typeof name === "string" ? name : undefined;
  }

  /** The reply to which the server gave this name. */
  byId(id: string): LoggedReply | undefined {
    const name = this.#journal.get(idKey(id));
    return typeof name === "string" ? this.#get(name) : undefined;
  }

  /** What a tool returned for a call of the reply to this request. */
  toolResult(name: string, call: Call): { readonly value: unknown } | undefined {
    return this.#journal.get(toolKey(name, call)) as { readonly value: unknown } | undefined;
  }

  putToolResult(name: string, call: Call, value: unknown): Promise<void> {
    return this.#journal.put({ [toolKey(name, call)]: { value } }, { ofTools: true });
  }

  /** Of the newest reply, what the caller was given. */
  openItems(): Item[] {
    const { entries = [] } = this.latest() ?? {};
    return entries.flatMap(({ own, item }) => (own === null && item !== undefined ? [item] : []));
  }

  /** Calls of the newest reply whose results are recorded. */
  recordedCalls(): string[] {
    const name = this.latestName();
    const reply = this.latest();
    if (name === undefined || reply === undefined) return [];
    return this.#callsOf(reply)
      .filter((call) => this.toolResult(name, call) !== undefined)
      .map(({ id }) => id);
  }

  /** The calls that are the caller's. */
  #callsOf({ entries, dropped }: LoggedReply): Call[] {
    const given = entries.flatMap(({ own, item }) => (own === null && item !== undefined ? [item] : []));
    return given.flatMap((item) => this.#format.calls(item)).filter(({ id }) => !dropped.includes(id));
  }

  #get = (name: string): LoggedReply | undefined => this.#journal.get(replyKey(name)) as LoggedReply | undefined;

  /** Of lists that begin with the same objects the beginning is taken over. */
  #digests(list: readonly Item[]): readonly string[] {
    const { items, digests } = this.#seen;
    let shared = 0;
    while (shared < items.length && shared < list.length && items[shared] === list[shared]) shared++;
    if (shared < list.length || shared < items.length) {
      this.#seen = { items: list, digests: [...digests.slice(0, shared), ...list.slice(shared).map(digestOf)] };
    }
    return this.#seen.digests;
  }

  #begins(list: readonly Item[], previous: string | undefined): boolean {
    const last = this.#journal.get(latestKey);
    if (this.#mode === "never" || typeof last !== "string") return false;
    const first = this.nameOf(list, previous);
    // The first of a recorded run, or nothing to look for: most loops go on where they were.
    if (this.#get(first)?.before !== null || (this.#mode === "unfinished" && this.#get(last)?.asks !== true)) {
      this.#at = last;
      return false;
    }
    const next = new Map<string | null, string>();
    for (let name: string | null = last; name !== null; ) {
      const reply = this.#get(name);
      // A request that was sent again later stands behind itself.
      if (reply === undefined || next.has(reply.before)) break;
      next.set(reply.before, name);
      const request = name;
      this.#reruns ||=
        name !== last && this.#callsOf(reply).some((call) => this.toolResult(request, call) === undefined);
      name = reply.before;
    }
    this.#next = next;
    this.#at = null;
    return next.get(null) === first;
  }

  #diverged(list: readonly Item[], expected: LoggedReply): RewindError {
    const recorded = [...this.#list.slice(0, expected.shared), ...expected.added];
    const at = sharedLength(recorded, this.#digests(list));
    const item = list[at];
    const what =
      item === undefined
        ? `ends after ${list.length} messages, the recorded one has ${recorded.length}`
        : `differs from the recorded one in message ${at + 1} (${this.#describe(item)})`;
    return new RewindError("REPLAY_DIVERGED", `The conversation was begun again, and its request ${what}.`, {
      hint: "Make what the loop does before that message the same each time (wrap its tools with `rewind.tool`), go on from `rewind.resume()`, or use a new thread.",
      details: { message: at + 1 },
    });
  }

  #describe(item: Item): string {
    const answered = this.#format.answers(item);
    return answered === undefined ? `of the ${this.#format.speaker(item)}` : `the result of ${answered}`;
  }
}

function sharedLength(a: readonly string[], b: readonly string[]): number {
  let at = 0;
  while (at < a.length && at < b.length && a[at] === b[at]) at++;
  return at;
}
