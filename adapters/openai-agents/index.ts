// agentrewind/openai-agents: rewind below the runner of OpenAI's agents SDK.
import type {
  Model,
  ModelProvider,
  ModelRequest,
  ModelResponse,
  SerializedTool,
  StreamEvent,
} from "@openai/agents-core";
import { type Rewind, RewindError } from "agentrewind";
import {
  type ConversationHandle,
  type ConversationOptions,
  handleOf,
  type Item,
  type ModelReply,
  openRelay,
  ownTools,
  type Relay,
} from "agentrewind/relay";
import { agentItems } from "./format.ts";

const tools: readonly SerializedTool[] = ownTools.map((one) => ({
  ...one,
  type: "function",
  parameters: one.parameters as never,
  strict: false,
}));

/**
 * The same provider, whose models' conversation can be taken back: `new Runner({ modelProvider: withRewind(provider, rewind, { thread: "t1" }) })`. Agents and
 * tools stay as they are; one conversation a provider.
 */
export function withRewind(
  provider: ModelProvider,
  rewind: Rewind,
  options: ConversationOptions,
): ModelProvider & { readonly rewind: ConversationHandle } {
  const handoffs = new Set<string>();
  const relay = openRelay(rewind, agentItems, { ...options, handsOver: ({ name }) => handoffs.has(name) });
  return {
    getModel: async (name) => noting(handoffs, modelOver(await provider.getModel(name), relay)),
    rewind: handleOf(relay, callId),
  };
}

/** Which tools of the runs hand over to another agent. */
function noting(handoffs: Set<string>, model: Model): Model {
  const note = ({ handoffs: given }: ModelRequest): void => {
    for (const { toolName } of given) handoffs.add(toolName);
  };
  return {
    ...model,
    getResponse(request) {
      note(request);
      return model.getResponse(request);
    },
    getStreamedResponse(request) {
      note(request);
      return model.getStreamedResponse(request);
    },
  };
}

interface Answer extends ModelReply {
  readonly response: ModelResponse;
}

function modelOver(model: Model, relay: Relay): Model {
  return {
    ...(model.getRetryAdvice === undefined ? {} : { getRetryAdvice: model.getRetryAdvice.bind(model) }),

    async getResponse(request) {
      if (!isTurn(request)) return model.getResponse(request);
      const { reply, dropped } = await relay.turn<Answer>({
        ...turnOf(request),
        ask: async (items, { ownTools: own, previous }) =>
          answerOf(await model.getResponse(asked(request, items, previous, own))),
        again: (raw) => answerOf(raw as ModelResponse),
      });
      return without(reply.response, dropped);
    },

    async *getStreamedResponse(request) {
      if (!isTurn(request)) {
        yield* model.getStreamedResponse(request);
        return;
      }
      const passing = new Passing();
      const running = relay
        .turn<Answer>({
          ...turnOf(request),
          async ask(items, { ownTools: own, previous }) {
            const done = await passing.take(model.getStreamedResponse(asked(request, items, previous, own)));
            const { id: responseId, output, usage } = done.response;
            return answerOf({ responseId, output, usage } as unknown as ModelResponse);
          },
          again: (raw) => answerOf(raw as ModelResponse),
        })
        .then(({ reply, dropped }) => passing.end(without(reply.response, dropped)))
        .catch((error: unknown) => passing.fail(error));
      yield* passing.events();
      await running;
    },
  };
}

/** Words pass as they come; everything else waits until the reply counts. */
class Passing {
  #queue: StreamEvent[] = [];
  #wake: () => void = () => {};
  #over = false;
  #error: unknown;
  /** Waits for the first words: until then nothing has been given, and the runner may ask again. */
  #start: StreamEvent | undefined;
  #started = false;

  async take(events: AsyncIterable<StreamEvent>): Promise<Extract<StreamEvent, { type: "response_done" }>> {
    let done: Extract<StreamEvent, { type: "response_done" }> | undefined;
    for await (const event of events) {
      if (event.type === "response_done") done = event;
      if (event.type === "response_started") this.#start ??= event;
      if (event.type === "output_text_delta") {
        this.#begin();
        this.#push(event);
      }
    }
    if (done === undefined) throw new Error("The model's stream ended before the reply was whole.");
    return done;
  }

  end({ responseId, output, usage }: ModelResponse): void {
    const response = { id: responseId ?? "", output, usage };
    this.#begin();
    this.#push({ type: "response_done", response } as unknown as StreamEvent);
    this.#over = true;
  }

  fail(error: unknown): void {
    this.#error = error;
    this.#over = true;
    this.#wake();
  }

  async *events(): AsyncGenerator<StreamEvent> {
    for (;;) {
      for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) yield next;
      if (this.#error !== undefined) throw this.#error;
      if (this.#over && this.#queue.length === 0) return;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
        if (this.#queue.length > 0 || this.#over) resolve();
      });
    }
  }

  #begin(): void {
    if (this.#start !== undefined && !this.#started) this.#push(this.#start);
    this.#started = true;
  }

  #push(event: StreamEvent): void {
    this.#queue.push(event);
    this.#wake();
  }
}

/** The runner gives a tool its context and, behind that, its call. */
const callId = ([, details]: readonly unknown[]): string | undefined =>
  (details as { toolCall?: { callId?: string } } | undefined)?.toolCall?.callId;

const isTurn = ({ tools: given, modelSettings: { toolChoice } }: ModelRequest): boolean =>
  given.length > 0 && (toolChoice === undefined || toolChoice === "auto" || toolChoice === "required");

function turnOf(request: ModelRequest) {
  if (request.conversationId !== undefined) {
    throw new RewindError(
      "BAD_ARGUMENT",
      "`conversationId` keeps the messages on the server, where they cannot be taken back.",
      {
        hint: "Use `previousResponseId`, a session, or send the items with each run.",
      },
    );
  }
  const { input, previousResponseId, signal } = request;
  const items = typeof input === "string" ? [{ type: "message", role: "user", content: input }] : input;
  return { list: items as unknown as readonly Item[], previous: previousResponseId, signal };
}

const asked = (
  request: ModelRequest,
  items: readonly Item[],
  previous: string | undefined,
  own: boolean,
): ModelRequest => {
  const { previousResponseId: _, ...rest } = request;
  return {
    ...rest,
    input: items as unknown as Exclude<ModelRequest["input"], string>,
    ...(previous === undefined ? {} : { previousResponseId: previous }),
    tools: [...request.tools, ...(own ? tools : [])],
  };
};

function answerOf(response: ModelResponse): Answer {
  const { responseId, output, usage } = response;
  return {
    response,
    raw: { responseId, output, usage: { ...usage } },
    items: output as unknown as readonly Item[],
    ...(responseId === undefined ? {} : { id: responseId }),
  };
}

function without(response: ModelResponse, dropped: ReadonlySet<string>): ModelResponse {
  if (dropped.size === 0) return response;
  const output = agentItems.withoutCalls(response.output as unknown as readonly Item[], dropped);
  return { ...response, output: output as unknown as ModelResponse["output"] };
}
