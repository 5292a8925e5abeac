// Chat Completions.
import { RewindError } from "agentrewind";
import { chatCompletions, type Item, textOfContent } from "agentrewind/relay";
import type { Api, Collector, Json, RequestParts, Shown, StreamEvent } from "./api.ts";
import { type Joining, join, joinProbabilities } from "./joined.ts";
import { chatTools, requireFree, withOwn } from "./own-tools.ts";

const isInstruction = (item: Item): boolean => item.role === "system" || item.role === "developer";

interface Choice {
  readonly index?: number;
  readonly message?: Item;
  readonly finish_reason?: string | null;
}

const choiceOf = (reply: Json): Choice | undefined => (reply.choices as Choice[] | undefined)?.[0];

function read(body: Json): RequestParts {
  if (typeof body.n === "number" && body.n > 1) {
    throw new RewindError(
      "BAD_ARGUMENT",
      `\`n: ${body.n}\` asks for several replies; only one of them could act on the files.`,
      {
        hint: "Ask for one reply, or fork the workspace (`rewind.fork`) and give each branch a request of its own.",
      },
    );
  }
  requireFree(body.tools);
  const messages = Array.isArray(body.messages) ? (body.messages as Item[]) : [];
  const first = messages.findIndex((item) => !isInstruction(item));
  const at = first < 0 ? messages.length : first;
  const choice = body.tool_choice;
  return {
    preamble: messages.slice(0, at),
    list: messages.slice(at),
    previous: undefined,
    hasTools: Array.isArray(body.tools) && body.tools.length > 0,
    fixedChoice: choice === "none" || (typeof choice === "object" && choice !== null),
    stream: body.stream === true,
  };
}

function write(body: Json, messages: readonly Item[], _: unknown, ownTools: boolean): Json {
  return {
    ...body,
    messages,
    ...(ownTools ? { tools: withOwn(body.tools, chatTools) } : {}),
  };
}

const items = (reply: Json): Item[] => {
  const message = choiceOf(reply)?.message;
  return message === undefined ? [] : [forRequest(message)];
};

/** A reply's message as a request takes it: without what only replies have. */
function forRequest(message: Item): Item {
  const { annotations, audio, parsed, ...rest } = message;
  const calls = Array.isArray(rest.tool_calls) && rest.tool_calls.length > 0 ? rest.tool_calls : undefined;
  const { tool_calls: _, refusal, function_call, ...plain } = rest;
  return {
    ...plain,
    ...(typeof refusal === "string" ? { refusal } : {}),
    ...(calls === undefined ? {} : { tool_calls: calls }),
  };
}

function without(reply: Json, dropped: ReadonlySet<string>): Json {
  const choice = choiceOf(reply);
  if (dropped.size === 0 || choice?.message === undefined) return reply;
  const [message = { role: "assistant", content: "" }] = chatCompletions.withoutCalls([choice.message], dropped);
  const left = chatCompletions.calls(message).length > 0;
  const finish = !left && choice.finish_reason === "tool_calls" ? "stop" : choice.finish_reason;
  return { ...reply, choices: [{ ...choice, message, finish_reason: finish }] };
}

interface Part extends Json {
  readonly index?: number;
  readonly id?: string;
}

interface Delta extends Json {
  readonly content?: string | null;
  readonly tool_calls?: readonly Part[] | null;
}

interface ChunkChoice extends Json {
  readonly delta?: Delta;
  readonly finish_reason?: string | null;
  readonly logprobs?: Json | null;
}

interface Chunk extends Json {
  readonly choices?: readonly ChunkChoice[];
  readonly usage?: Json | null;
}

const separator = "\n\n";

const choiceIn = ({ data }: StreamEvent): ChunkChoice | undefined => (data as Chunk).choices?.[0];

class ChatCollector implements Collector {
  readonly #earlier: Shown;
  readonly #head: Record<string, unknown> = {};
  readonly #choice: Record<string, unknown> = { logprobs: null };
  readonly #message: Joining = { role: "assistant", content: null };
  readonly #calls: Joining[] = [];
  /** What has not been given yet. */
  #held: StreamEvent[] = [];
  #finish: string | null = null;
  #holds: boolean;
  #text = "";
  #passed = false;

  constructor(earlier: Shown, live: boolean) {
    this.#earlier = earlier;
    this.#holds = !live;
  }

  get shown(): Shown {
    const { before, begun } = this.#earlier;
    return { begun: begun || this.#passed, before, text: this.#text, items: 0, held: this.#held };
  }

  push(event: StreamEvent): StreamEvent[] {
    const { choices: _, obfuscation: __, ...head } = event.data as Chunk;
    for (const [name, value] of Object.entries(head)) {
      if (value !== null || !(name in this.#head)) this.#head[name] = value;
    }
    const choice = choiceIn(event);
    if (choice !== undefined) this.#take(choice);
    const placed = this.#placed(event);
    this.#holds ||= this.#calls.length > 0 || this.#finish !== null;
    if (!this.#holds && saysSomething(choice)) {
      const passing = [...this.#held, placed].map((one) => this.#parted(one));
      this.#held = [];
      this.#passed = true;
      return passing;
    }
    // The caller of a stream that has begun knows who speaks.
    if (this.#holds || !this.#earlier.begun) this.#held.push(placed);
    return [];
  }

  #take({
    delta: { tool_calls: calls, ...rest } = {},
    finish_reason: finish,
    logprobs,
    index: _,
    ...own
  }: ChunkChoice): void {
    if (finish) this.#finish = finish;
    if (logprobs) this.#choice.logprobs = joinProbabilities(this.#choice.logprobs as Json | null, logprobs);
    join(this.#choice, own);
    join(this.#message, rest, true);
    for (const part of calls ?? []) {
      const { index: __, ...of } = part;
      const place = this.#placeOf(part);
      this.#calls[place] = join(this.#calls[place] ?? { id: "" }, of);
    }
  }

  /** Which call it is a part of. */
  #placeOf({ index, id }: Part): number {
    if (typeof index === "number") return index;
    const known = id ? this.#calls.findIndex((call) => call?.id === id) : this.#calls.length - 1;
    return known < 0 ? this.#calls.length : known;
  }

  /** With an index in each part of a call. */
  #placed(event: StreamEvent): StreamEvent {
    const calls = choiceIn(event)?.delta?.tool_calls;
    if (!calls || calls.every(({ index }) => typeof index === "number")) return event;
    return withDelta(event, (delta) => ({
      ...delta,
      tool_calls: calls.map((part) => ({ ...part, index: this.#placeOf(part) })),
    }));
  }

  /** Words that are given; the first ones stand apart from those of replies that did not count. */
  #parted(event: StreamEvent): StreamEvent {
    const words = choiceIn(event)?.delta?.content ?? "";
    const first = this.#text === "" && this.#earlier.before.text !== "" && words !== "";
    this.#text += words;
    return first ? withWords(event, separator + words) : event;
  }

  reply(): Json | undefined {
    if (this.#finish === null) return undefined;
    const calls = this.#calls.filter((call) => call !== undefined).map(wholeCall);
    const message = { ...this.#message, ...(calls.length === 0 ? {} : { tool_calls: calls }) };
    return {
      ...this.#head,
      object: "chat.completion",
      choices: [{ index: 0, ...this.#choice, message, finish_reason: this.#finish }],
    };
  }
}

/** Not only who speaks, and that nothing is said yet. */
function saysSomething({ delta = {} }: ChunkChoice = {}): boolean {
  const { role: _, ...rest } = delta;
  return Object.values(rest).some((value) => value !== "" && value !== null && value !== undefined);
}

function wholeCall({ id, type, ...call }: Joining): Joining {
  const called = call.function as Json | undefined;
  return {
    id,
    type: type ?? (call.custom === undefined ? "function" : "custom"),
    ...call,
    ...(called === undefined ? {} : { function: { ...called, arguments: called.arguments ?? "" } }),
  };
}

function withDelta(event: StreamEvent, change: (delta: Delta) => Delta, finish?: string | null): StreamEvent {
  const [choice = {}, ...others] = (event.data as Chunk).choices ?? [];
  const changed = {
    ...choice,
    delta: change(choice.delta ?? {}),
    ...(choice.finish_reason && finish !== undefined ? { finish_reason: finish } : {}),
  };
  return { ...event, data: { ...event.data, choices: [changed, ...others] } };
}

const withWords = (event: StreamEvent, content: string): StreamEvent =>
  withDelta(event, (delta) => ({ ...delta, content }));

function events(reply: Json, shown: Shown, body: Json): StreamEvent[] {
  return shown.held === undefined ? wholeReply(reply, body) : [...heldEvents(reply, shown, shown.held)];
}

/** What the server sent and was not given yet, without the calls that are not the caller's. */
function* heldEvents(reply: Json, { before, text }: Shown, held: readonly StreamEvent[]): Generator<StreamEvent> {
  const choice = choiceOf(reply);
  const left = new Set(chatCompletions.calls(choice?.message ?? {}).map(({ id }) => id));
  const ids = new Map<number, string>();
  for (const event of held) {
    for (const { index = 0, id } of choiceIn(event)?.delta?.tool_calls ?? [])
      ids.set(index, id || (ids.get(index) ?? ""));
  }
  const places = [...ids.keys()].sort((a, b) => a - b).filter((index) => left.has(ids.get(index) as string));
  let apart = text === "" && before.text !== "";
  for (const event of held) {
    const delta = choiceIn(event)?.delta;
    if (delta === undefined) {
      yield event;
      continue;
    }
    const { tool_calls: parts, ...rest } = delta;
    const calls = (parts ?? [])
      .map((part) => ({ ...part, index: places.indexOf(part.index ?? 0) }))
      .filter(({ index }) => index >= 0);
    const isGone = parts?.length && calls.length === 0 && !saysSomething({ delta: rest });
    if (isGone && !choiceIn(event)?.finish_reason) continue;
    const given = withDelta(
      event,
      () => (calls.length === 0 ? rest : { ...rest, tool_calls: calls }),
      choice?.finish_reason ?? "stop",
    );
    const words = delta.content ?? "";
    yield apart && words !== "" ? withWords(given, separator + words) : given;
    apart &&= words === "";
  }
}

/** A recorded reply. */
function wholeReply(reply: Json, body: Json): StreamEvent[] {
  const choice = choiceOf(reply);
  const { choices: _, usage, ...head } = reply;
  const chunk = (delta: Json, finish: string | null = null): StreamEvent => ({
    data: { ...head, object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason: finish }] },
  });
  const {
    content,
    tool_calls: calls = [],
    ...rest
  } = (choice?.message ?? {}) as Item & { tool_calls?: readonly Json[] };
  const words = textOfContent(content);
  const all = [chunk(Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== null)))];
  if (words !== "") all.push(chunk({ content: words }));
  for (const [index, call] of calls.entries()) all.push(chunk({ tool_calls: [{ index, ...call }] }));
  all.push(chunk({}, choice?.finish_reason ?? "stop"));
  const wanted = (body.stream_options as { include_usage?: boolean } | null | undefined)?.include_usage === true;
  if (wanted && usage !== undefined) {
    all.push({ data: { ...head, object: "chat.completion.chunk", choices: [], usage } });
  }
  return all;
}

export const chatApi: Api = {
  format: chatCompletions,
  field: "messages",
  read,
  write,
  items,
  idOf: () => undefined,
  without,
  collector: (shown, live) => new ChatCollector(shown, live),
  events,
  end: "data: [DONE]\n\n",
};
