// Chat Completions.
import { RewindError } from "agentrewind";
import { chatCompletions, type Item, textOfContent } from "agentrewind/relay";
import type { Api, Collector, Json, RequestParts, Shown, StreamEvent } from "./api.ts";
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

interface Delta extends Json {
  readonly content?: string | null;
  readonly tool_calls?: readonly {
    index?: number;
    id?: string;
    type?: string;
    function?: { name?: string; arguments?: string };
  }[];
}

interface Chunk extends Json {
  readonly id?: string;
  readonly choices?: readonly { index?: number; delta?: Delta; finish_reason?: string | null }[];
  readonly usage?: Json | null;
}

const separator = "\n\n";

class ChatCollector implements Collector {
  readonly #earlier: Shown;
  #head: Json = {};
  #message: Record<string, unknown> = { role: "assistant", content: null };
  readonly #calls: { id: string; type: string; function: { name: string; arguments: string } }[] = [];
  #finish: string | null = null;
  #usage: Json | undefined;
  #holds: boolean;
  #text = "";

  #passed = false;

  constructor(earlier: Shown, live: boolean) {
    this.#earlier = earlier;
    this.#holds = !live;
  }

  get shown(): Shown {
    const { before, begun } = this.#earlier;
    return { begun: begun || this.#passed, before, text: this.#text, items: 0 };
  }

  push({ data }: StreamEvent): StreamEvent | null {
    const chunk = data as Chunk;
    if (this.#head.id === undefined) {
      const { choices: _, usage: __, ...head } = chunk;
      this.#head = head;
    }
    if (chunk.usage) this.#usage = chunk.usage;
    const choice = chunk.choices?.[0];
    if (choice === undefined) return null;
    if (choice.finish_reason) this.#finish = choice.finish_reason;
    this.#take(choice.delta ?? {});
    this.#holds ||= this.#calls.length > 0 || this.#finish !== null;
    if (this.#holds) return null;
    this.#passed = true;
    const words = choice.delta?.content ?? "";
    const parted = this.#text === "" && this.#earlier.before.text !== "" && words !== "";
    this.#text += words;
    if (!parted) return { data };
    return { data: { ...chunk, choices: [{ ...choice, delta: { ...choice.delta, content: separator + words } }] } };
  }

  #take({ tool_calls: calls = [], role: _, ...rest }: Delta): void {
    for (const [name, value] of Object.entries(rest)) {
      if (typeof value === "string") this.#message[name] = `${(this.#message[name] as string | null) ?? ""}${value}`;
      else if (value !== null && value !== undefined) this.#message[name] = value;
    }
    for (const [at, part] of calls.entries()) {
      const index = part.index ?? at;
      let call = this.#calls[index];
      if (call === undefined) {
        call = { id: "", type: "function", function: { name: "", arguments: "" } };
        this.#calls[index] = call;
      }
      if (part.id) call.id = part.id;
      if (part.type) call.type = part.type;
      if (part.function?.name) call.function.name += part.function.name;
      if (part.function?.arguments) call.function.arguments += part.function.arguments;
    }
  }

  reply(): Json | undefined {
    if (this.#finish === null) return undefined;
    const calls = this.#calls.filter((call) => call !== undefined);
    const message = { ...this.#message, ...(calls.length === 0 ? {} : { tool_calls: calls }) };
    return {
      ...this.#head,
      object: "chat.completion",
      choices: [{ index: 0, message, logprobs: null, finish_reason: this.#finish }],
      ...(this.#usage === undefined ? {} : { usage: this.#usage }),
    };
  }
}

function events(reply: Json, { begun, before, text: given }: Shown, body: Json): StreamEvent[] {
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
  const left = textOfContent(content).slice(given.length);
  const all: StreamEvent[] = [];
  if (!begun) all.push(chunk(Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== null))));
  if (left !== "") all.push(chunk({ content: given === "" && before.text !== "" ? separator + left : left }));
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
