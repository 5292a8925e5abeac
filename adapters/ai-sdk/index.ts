// agentrewind/ai-sdk: rewind below generateText, streamText and agents of the Vercel AI SDK.
import type { Rewind } from "agentrewind";
import {
  type AskOptions,
  type ConversationHandle,
  type ConversationOptions,
  handleOf,
  type Item,
  type ModelReply,
  openRelay,
  ownTools,
  type Relay,
  recordTools,
} from "agentrewind/relay";
import { type LanguageModelMiddleware, wrapLanguageModel } from "ai";
import { joinResults, prompts, splitResults } from "./format.ts";
import { type Generated, itemsOf, type Raw, rawOf, type Streamed, without } from "./reply.ts";
import { Outgoing } from "./stream.ts";

export { environmentTools } from "./environment-tools.ts";

export interface WithRewindOptions extends ConversationOptions {
  /** "live" (the default): words pass as they arrive. "buffer": nothing passes before the reply counts. */
  readonly streaming?: "live" | "buffer";
}

type Wrapping = Parameters<typeof wrapLanguageModel>[0];
type Model = ReturnType<typeof wrapLanguageModel>;
type CallOptions = Parameters<NonNullable<LanguageModelMiddleware["wrapGenerate"]>>[0]["params"];

const tools = ownTools.map(({ name, description, parameters }) => ({
  type: "function" as const,
  name,
  description,
  inputSchema: parameters as never,
}));

/**
 * The same model, whose conversation can be taken back: `const model = withRewind(openai("…"), rewind, { thread: "t1" })`. What is built on it stays as it is;
 * one conversation a model.
 */
export function withRewind(
  model: Wrapping["model"],
  rewind: Rewind,
  options: WithRewindOptions,
): Model & { readonly rewind: ConversationHandle } {
  const relay = openRelay(rewind, prompts, options);
  recordTools(rewind, options.thread, (...call) => relay.runTool(...call));
  const middleware = middlewareOf(relay, options.streaming ?? "live");
  return Object.assign(wrapLanguageModel({ model, middleware }), { rewind: handleOf(relay, callId) });
}

function middlewareOf(relay: Relay, streaming: "live" | "buffer"): LanguageModelMiddleware {
  return {
    specificationVersion: "v3",

    async wrapGenerate({ doGenerate, model, params }) {
      if (!isTurn(params)) return doGenerate();
      const { reply, dropped } = await relay.turn<ModelReply & { readonly result: Generated }>({
        ...split(params),
        signal: params.abortSignal,
        async ask(items, options) {
          const result = await model.doGenerate(asked(params, items, options));
          return { result, raw: rawOf(result), items: itemsOf(result.content) };
        },
        again(raw) {
          const result: Generated = { ...(raw as Raw), warnings: [] };
          return { result, raw, items: itemsOf(result.content) };
        },
      });
      return without(reply.result, dropped);
    },

    async wrapStream({ doStream, model, params }) {
      if (!isTurn(params)) return doStream();
      const stopped = new AbortController();
      params.abortSignal?.addEventListener("abort", () => stopped.abort(params.abortSignal?.reason));
      return new Promise<Streamed>((resolve, reject) => {
        let about: Omit<Streamed, "stream"> = {};
        const out: Outgoing = new Outgoing(streaming === "live", {
          onBegin: () => resolve({ ...about, stream: out.stream }),
          onCancel: () => stopped.abort(new DOMException("The stream was given up.", "AbortError")),
        });
        let recorded = false;
        relay
          .turn<ModelReply & { readonly raw: Raw }>({
            ...split(params),
            signal: stopped.signal,
            async ask(items, options) {
              const { stream, ...rest } = await model.doStream(asked(params, items, options));
              about = rest;
              const raw = await out.take(stream);
              return {
                raw: rawOf(raw),
                items: itemsOf(raw.content),
                ...(out.before === "" ? {} : { prefix: out.before }),
              };
            },
            again(raw) {
              recorded = true;
              return { raw: raw as Raw, items: itemsOf((raw as Raw).content) };
            },
          })
          .then(({ reply, dropped }) => {
            if (recorded) out.again(reply.raw, dropped);
            else out.end(reply.raw, dropped);
          })
          .catch((error: unknown) => {
            if (!out.fail(error)) reject(error);
          });
      });
    },
  };
}

/** The AI SDK gives a tool its call's id behind the arguments. */
const callId = ([options]: readonly unknown[]): string | undefined =>
  (options as { toolCallId?: string } | undefined)?.toolCallId;

/** A call without tools is no turn of the agent; one that must call a certain tool cannot call ours. */
const isTurn = ({ tools: given = [], toolChoice }: CallOptions): boolean =>
  given.length > 0 && toolChoice?.type !== "none" && toolChoice?.type !== "tool";

function split({ prompt }: CallOptions): { preamble: readonly Item[]; list: readonly Item[] } {
  const items = prompt as unknown as readonly Item[];
  const first = items.findIndex(({ role }) => role !== "system");
  const at = first < 0 ? items.length : first;
  return { preamble: items.slice(0, at), list: splitResults(items.slice(at)) };
}

const asked = (params: CallOptions, items: readonly Item[], { preamble, ownTools: own }: AskOptions): CallOptions => ({
  ...params,
  prompt: [...preamble, ...joinResults(items)] as unknown as CallOptions["prompt"],
  tools: [...(params.tools ?? []), ...(own ? tools : [])],
});
