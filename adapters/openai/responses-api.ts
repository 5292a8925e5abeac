// The Responses API.
import { RewindError } from "agentrewind";
import { type Item, responses } from "agentrewind/relay";
import type { Api, Collector, Json, RequestParts, Shown, StreamEvent } from "./api.ts";
import { requireFree, responsesTools, withOwn } from "./own-tools.ts";

const isInstruction = (item: Item): boolean => item.role === "system" || item.role === "developer";

function read(body: Json): RequestParts {
  if (body.conversation !== undefined && body.conversation !== null) {
    throw new RewindError(
      "BAD_ARGUMENT",
      "`conversation` keeps the messages on the server, where they cannot be taken back.",
      {
        hint: "Use `previous_response_id`, or send the items with each request.",
      },
    );
  }
  if (body.background === true) {
    throw new RewindError("BAD_ARGUMENT", "`background: true` answers before the reply is there.", {
      hint: "Leave it out: the reply's tools wait for the checkpoint of this moment.",
    });
  }
  requireFree(body.tools);
  const given = typeof body.input === "string" ? [{ role: "user", content: body.input }] : body.input;
  const input = Array.isArray(given) ? (given as Item[]) : [];
  const previous = typeof body.previous_response_id === "string" ? body.previous_response_id : undefined;
  // What is new to a server that has the rest is all of the conversation.
  const first = previous === undefined ? input.findIndex((item) => !isInstruction(item)) : 0;
  const at = first < 0 ? input.length : first;
  const choice = body.tool_choice;
  return {
    preamble: input.slice(0, at),
    list: input.slice(at),
    previous,
    hasTools: Array.isArray(body.tools) && body.tools.length > 0,
    fixedChoice: choice === "none" || (typeof choice === "object" && choice !== null),
    stream: body.stream === true,
  };
}

function write(body: Json, input: readonly Item[], previous: string | undefined, ownTools: boolean): Json {
  const { previous_response_id: _, ...rest } = body;
  return {
    ...rest,
    input,
    ...(previous === undefined ? {} : { previous_response_id: previous }),
    ...(ownTools ? { tools: withOwn(body.tools, responsesTools) } : {}),
  };
}

const items = (reply: Json): Item[] => (Array.isArray(reply.output) ? (reply.output as Item[]) : []);

function without(reply: Json, dropped: ReadonlySet<string>): Json {
  return dropped.size === 0 ? reply : { ...reply, output: responses.withoutCalls(items(reply), dropped) };
}

/** How a stream of this API ends. */
const endings: ReadonlySet<unknown> = new Set(["response.completed", "response.incomplete", "response.failed"]);
const beginnings: ReadonlySet<unknown> = new Set(["response.created", "response.in_progress", "response.queued"]);

class ResponsesCollector implements Collector {
  readonly #earlier: Shown;
  #holds: boolean;
  #passed = false;
  #items = 0;
  #reply: Json | undefined;
  readonly #done: Item[] = [];
  #waiting: StreamEvent[] = [];

  constructor(earlier: Shown, live: boolean) {
    this.#earlier = earlier;
    this.#holds = !live;
  }

  get shown(): Shown {
    const { before, begun } = this.#earlier;
    return { begun: begun || this.#passed, before, text: "", items: this.#items };
  }

  push(event: StreamEvent): StreamEvent[] {
    const { data } = event;
    if (endings.has(data.type)) this.#reply = data.response as Json;
    if (beginnings.has(data.type) && this.#earlier.begun) return [];
    const item = data.item as Item | undefined;
    if (data.type === "response.output_item.done" && item !== undefined) this.#done.push(item);
    this.#holds ||= endings.has(data.type) || (item !== undefined && responses.calls(item).length > 0);
    if (this.#holds) return [];
    this.#waiting.push(event);
    if (!this.#passed && isSilent(event)) return [];
    this.#passed = true;
    const passing = this.#waiting;
    this.#waiting = [];
    this.#items += passing.filter(({ data: { type } }) => type === "response.output_item.done").length;
    return passing.map((one) => moved(one, this.#earlier.before.items.length));
  }

  /** Some servers give the items only as they are done. */
  reply(): Json | undefined {
    const reply = this.#reply;
    return reply === undefined || items(reply).length > 0 ? reply : { ...reply, output: this.#done };
  }
}

/** Tells that there is a reply, or a thought without words. */
function isSilent({ data }: StreamEvent): boolean {
  if (beginnings.has(data.type)) return true;
  const { type, summary, content } = (data.item ?? {}) as Item;
  const isEmpty = (parts: unknown): boolean => !Array.isArray(parts) || parts.length === 0;
  return type === "reasoning" && isEmpty(summary) && isEmpty(content);
}

/** The event behind so many items that the caller has been given before. */
const moved = (event: StreamEvent, by: number): StreamEvent =>
  by === 0 || typeof event.data.output_index !== "number"
    ? event
    : { ...event, data: { ...event.data, output_index: event.data.output_index + by } };

const named = (type: string, data: Json): StreamEvent => ({ event: type, data: { type, ...data } });

function events(reply: Json, { begun, before, items: given }: Shown): StreamEvent[] {
  const all: StreamEvent[] = [];
  const output = items(reply);
  if (!begun) {
    const opened = { ...reply, status: "in_progress", output: [] };
    all.push(named("response.created", { response: opened }), named("response.in_progress", { response: opened }));
  }
  for (const [index, item] of output.entries()) {
    if (index >= given) all.push(...itemEvents(item, before.items.length + index));
  }
  const type =
    reply.status === "failed" || reply.status === "incomplete" ? `response.${reply.status}` : "response.completed";
  all.push(named(type, { response: { ...reply, output: [...before.items, ...output] } }));
  return all;
}

function itemEvents(item: Item, index: number): StreamEvent[] {
  const at = { item_id: item.id, output_index: index };
  const all: StreamEvent[] = [];
  if (item.type === "function_call") {
    all.push(
      named("response.output_item.added", {
        output_index: index,
        item: { ...item, arguments: "", status: "in_progress" },
      }),
    );
    all.push(named("response.function_call_arguments.delta", { ...at, delta: item.arguments }));
    all.push(named("response.function_call_arguments.done", { ...at, arguments: item.arguments, name: item.name }));
  } else if (item.type === "message") {
    all.push(
      named("response.output_item.added", {
        output_index: index,
        item: { ...item, content: [], status: "in_progress" },
      }),
    );
    for (const [place, part] of ((item.content ?? []) as Item[]).entries())
      all.push(...partEvents(part, { ...at, content_index: place }));
  } else all.push(named("response.output_item.added", { output_index: index, item }));
  all.push(named("response.output_item.done", { output_index: index, item }));
  return all;
}

function partEvents(part: Item, at: Json): StreamEvent[] {
  const kind = part.type === "refusal" ? "refusal" : "output_text";
  const words = part.type === "refusal" ? part.refusal : part.text;
  const field = part.type === "refusal" ? "refusal" : "text";
  return [
    named("response.content_part.added", { ...at, part: { ...part, [field]: "" } }),
    named(`response.${kind}.delta`, { ...at, delta: words }),
    named(`response.${kind}.done`, { ...at, [field]: words }),
    named("response.content_part.done", { ...at, part }),
  ];
}

export const responsesApi: Api = {
  format: responses,
  field: "input",
  read,
  write,
  items,
  idOf: (reply) => (typeof reply.id === "string" ? reply.id : undefined),
  without,
  collector: (shown, live) => new ResponsesCollector(shown, live),
  events,
  end: "",
};
