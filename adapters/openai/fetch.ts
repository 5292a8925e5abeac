// A `fetch` for OpenAI's client: requests that are turns of the agent go through the relay, all others pass as they are.
import { setInterval as every } from "node:timers";
import { isRewindError, type RewindError } from "agentrewind";
import type { AskOptions, ModelReply, Relay, RelayTurn } from "agentrewind/relay";
import type { Api, Json, RequestParts, Shown, StreamEvent } from "./api.ts";
import { chatApi } from "./chat-api.ts";
import { Prefix } from "./prefix.ts";
import { responsesApi } from "./responses-api.ts";
import { encodeEvent, encodeText, eventsOf } from "./sse.ts";

export type Fetch = (input: string | URL | Request, init?: RequestInit) => Promise<Response>;

export interface RewindFetchOptions {
  readonly fetch: Fetch;
  readonly relay: (api: Api) => Relay;
  /** "live": words pass as they arrive. "buffer": nothing passes before the reply counts. */
  readonly streaming: "live" | "buffer";
  /** The client's own error for what a server answers. */
  readonly failure?: Failure | undefined;
}

export type Failure = (status: number, body: unknown, text: string | undefined, headers: Headers) => Error;

const apis: readonly (readonly [string, Api])[] = [
  ["/chat/completions", chatApi],
  ["/responses", responsesApi],
];

const keepAliveMs = 10_000;

/** What the model's server answered instead of a reply: the client's own error handling and retries see it. */
class Refused extends Error {
  readonly response: Response;

  constructor(response: Response) {
    super(`The model's server answered ${response.status}.`);
    this.response = response;
  }
}

/** What the model's server said in a stream instead of the rest of its reply: the client makes its error of it. */
class Failed extends Error {
  readonly event: StreamEvent;

  constructor(event: StreamEvent) {
    super("The model's server broke its reply off with an error.");
    this.event = event;
  }
}

const isFailure = ({ event, data }: StreamEvent): boolean =>
  event === "error" || data.type === "error" || (Boolean(data.error) && !("type" in data));

interface Answer extends ModelReply {
  readonly raw: Json;
  readonly shown: Shown;
  readonly headers: Headers;
}

/** Between the words of a reply that did not count and those of the next. */
const separator = "\n\n";

const nothingShown: Shown = { begun: false, before: { text: "", items: [] }, text: "", items: 0 };

export function rewindFetch(options: RewindFetchOptions): Fetch {
  const prefixes = new Map(apis.map(([, api]) => [api, new Prefix(api.field)]));
  return async (input, init) => {
    const url = new URL(input instanceof Request ? input.url : input);
    const api = apis.find(([path]) => url.pathname.endsWith(path))?.[1];
    if (api === undefined || init?.method?.toUpperCase() !== "POST" || typeof init.body !== "string") {
      return options.fetch(input, init);
    }
    const prefix = prefixes.get(api) as Prefix;
    const body = prefix.parse(init.body);
    try {
      const parts = api.read(body);
      const exchange = new Exchange(api, body, parts, (changed) =>
        options.fetch(input, withBody(init, prefix.stringify(changed))),
      );
      const relay = options.relay(api);
      if (!parts.hasTools || parts.fixedChoice) return await exchange.aside(relay);
      return parts.stream
        ? await exchange.stream(relay, options, init.signal ?? undefined)
        : await exchange.whole(relay, init.signal ?? undefined);
    } catch (error) {
      if (error instanceof Refused) return error.response;
      if (isRewindError(error)) return refusal(error);
      throw error;
    }
  };
}

/** The client makes an error of it whose message is ours, and does not try again. */
function refusal(error: RewindError): Response {
  const { code, message, hint, details } = error.toJSON();
  const told = {
    message: hint === undefined ? message : `${message} ${hint}`,
    type: "agentrewind",
    code,
    param: null,
    details,
  };
  return Response.json({ error: told }, { status: 400, headers: { "x-should-retry": "false" } });
}

function withBody(init: RequestInit, body: string): RequestInit {
  const headers = new Headers(init.headers);
  headers.delete("content-length");
  return { ...init, headers, body };
}

/** Of the server's headers what still holds for another body. */
function headersFor(type: string, headers: Headers): Headers {
  const kept = new Headers(headers);
  for (const name of ["content-length", "content-encoding", "transfer-encoding"]) kept.delete(name);
  kept.set("content-type", type);
  return kept;
}

type Send = (body: Json) => Promise<Response>;

/** One request of the caller. */
class Exchange {
  readonly #api: Api;
  readonly #body: Json;
  readonly #parts: RequestParts;
  readonly #send: Send;

  constructor(api: Api, body: Json, parts: RequestParts, send: Send) {
    this.#api = api;
    this.#body = body;
    this.#parts = parts;
    this.#send = send;
  }

  /** Not a turn of the agent; of its conversation the abandoned turns are left out all the same. */
  async aside(relay: Relay): Promise<Response> {
    const { list, previous, preamble } = this.#parts;
    const items = previous === undefined && list.length > 0 ? await relay.view(list) : undefined;
    return this.#send(
      items === undefined ? this.#body : this.#api.write(this.#body, [...preamble, ...items], previous, false),
    );
  }

  async whole(relay: Relay, signal: AbortSignal | undefined): Promise<Response> {
    const { reply, dropped } = await relay.turn<Answer>({
      ...this.#turn,
      signal,
      ask: async (items, options) => {
        const response = await this.#ask(items, options);
        return this.#answer((await response.json()) as Json, nothingShown, response.headers);
      },
      again: (raw) => this.#answer(raw as Json, nothingShown, new Headers()),
    });
    const raw = this.#api.without(reply.raw, dropped);
    return new Response(JSON.stringify(raw), { status: 200, headers: headersFor("application/json", reply.headers) });
  }

  get #turn(): Pick<RelayTurn<Answer>, "list" | "previous" | "preamble"> {
    const { list, previous, preamble } = this.#parts;
    return { list, previous, preamble };
  }

  async #ask(items: readonly Json[], { preamble, previous, ownTools }: AskOptions): Promise<Response> {
    const response = await this.#send(this.#api.write(this.#body, [...preamble, ...items], previous, ownTools));
    if (!response.ok) throw new Refused(response);
    return response;
  }

  /**
   * Resolves when there is something to give, or the wait for it has been long: until then what the model's server refuses is the client's to see as it is, and to
   * send again.
   */
  stream(relay: Relay, { streaming, failure }: RewindFetchOptions, signal: AbortSignal | undefined): Promise<Response> {
    return new Promise((resolve, reject) => {
      let out: ReadableStreamDefaultController<Uint8Array> | undefined;
      let shown = nothingShown;
      let number = 0;
      let answered: Headers | undefined;
      const emit = (event: StreamEvent): void => {
        const { data } = event;
        open();
        out?.enqueue(
          encodeEvent(
            "sequence_number" in data || event.event !== undefined
              ? { ...event, data: { ...data, sequence_number: number++ } }
              : event,
          ),
        );
      };
      const open = (): void => {
        if (out !== undefined) return;
        const headers = headersFor("text/event-stream; charset=utf-8", answered ?? new Headers());
        const body = new ReadableStream<Uint8Array>({
          start(controller) {
            out = controller;
          },
          cancel: () => stopped.abort(new DOMException("The stream was given up.", "AbortError")),
        });
        resolve(new Response(body, { status: 200, headers }));
      };
      const stopped = new AbortController();
      const alive = every(() => {
        if (answered !== undefined) open();
        out?.enqueue(encodeText(": keep-alive\n\n"));
      }, keepAliveMs);
      const stop = (): void => stopped.abort(signal?.reason);
      signal?.addEventListener("abort", stop);
      relay
        .turn<Answer>({
          ...this.#turn,
          signal: stopped.signal,
          ask: async (items, options) => {
            const response = await this.#ask(items, options);
            answered ??= response.headers;
            const earlier = shown;
            const collector = this.#api.collector(earlier, streaming === "live");
            if (response.body !== null) {
              for await (const event of eventsOf(response.body)) {
                stopped.signal.throwIfAborted();
                if (isFailure(event)) throw new Failed(event);
                for (const passing of collector.push(event)) emit(passing);
              }
            }
            const raw = collector.reply();
            if (raw === undefined) throw new Error("The model's server ended its stream before the reply was whole.");
            const answer = this.#answer(raw, collector.shown, response.headers);
            shown = after(answer);
            return answer;
          },
          again: (raw) => this.#answer(raw as Json, nothingShown, new Headers()),
        })
        .then(({ reply, dropped }) => {
          for (const event of this.#api.events(this.#api.without(reply.raw, dropped), reply.shown, this.#body))
            emit(event);
          if (this.#api.end !== "") out?.enqueue(encodeText(this.#api.end));
          out?.close();
        })
        .catch(async (error: unknown) => {
          if (error instanceof Failed) {
            emit(error.event);
            out?.close();
          } else if (out === undefined) reject(error);
          else out.error(error instanceof Refused ? await thrown(error, failure) : error);
        })
        .finally(() => {
          clearInterval(alive);
          signal?.removeEventListener("abort", stop);
        });
    });
  }

  #answer(raw: Json, shown: Shown, headers: Headers): Answer {
    const { text, items } = shown.before;
    const words = this.#api.items(raw).some((item) => this.#api.format.text(item) !== "");
    return {
      raw,
      shown,
      headers,
      items: this.#api.items(raw),
      id: this.#api.idOf(raw),
      ...(text === "" ? {} : { prefix: words ? `${text}${separator}` : text }),
      ...(items.length === 0 ? {} : { before: items }),
    };
  }
}

/** What the client would have thrown, had nothing been shown before. */
async function thrown(refused: Refused, failure: Failure | undefined): Promise<Error> {
  const { response } = refused;
  const text = await response.text();
  let body: Json | undefined;
  try {
    body = JSON.parse(text) as Json;
  } catch {
    // Not every refusal is JSON.
  }
  if (failure !== undefined)
    return failure(response.status, body, body === undefined ? text : undefined, response.headers);
  return Object.assign(refused, { status: response.status, error: body?.error });
}

/** What the next model call of the same request finds shown, if this one does not count. */
function after({ shown, items }: Answer): Shown {
  const { before, begun } = shown;
  const text = [before.text, shown.text].filter((one) => one !== "").join(separator);
  return { begun, before: { text, items: [...before.items, ...items.slice(0, shown.items)] }, text: "", items: 0 };
}
