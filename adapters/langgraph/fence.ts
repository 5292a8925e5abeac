// Nothing that a model call still says after a rewind made it stale gets through.
import type { BaseCallbackHandler } from "@langchain/core/callbacks/base";
import { CallbackManager, type Callbacks } from "@langchain/core/callbacks/manager";
import type { LangGraphRunnableConfig } from "@langchain/langgraph";

/** The config for one model call: its signal aborts with the rewind, and what reports tokens and results is silent from then on. */
export function fenced(config: LangGraphRunnableConfig, stale: AbortSignal): LangGraphRunnableConfig {
  const { signal, callbacks, writer } = config;
  return {
    ...config,
    signal: signal === undefined ? stale : AbortSignal.any([signal, stale]),
    ...(callbacks === undefined ? {} : { callbacks: silenced(callbacks, stale) }),
    ...(writer === undefined ? {} : { writer: (chunk: unknown) => (stale.aborted ? undefined : writer(chunk)) }),
  };
}

/** Rejects as soon as the call is stale, whether it listens to its signal or not. */
export function untilStale<T>(work: Promise<T>, stale: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const drop = (): void => reject(stale.reason);
    if (stale.aborted) drop();
    stale.addEventListener("abort", drop, { once: true });
    work.then(resolve, reject).finally(() => stale.removeEventListener("abort", drop));
  });
}

function silenced(callbacks: Callbacks, stale: AbortSignal): Callbacks {
  const known = new Map<unknown, BaseCallbackHandler>();
  const silence = <Handler>(handler: Handler): Handler => {
    if (typeof (handler as { handleLLMNewToken?: unknown }).handleLLMNewToken !== "function") return handler;
    const proxy = known.get(handler) ?? quiet(handler as BaseCallbackHandler, stale);
    known.set(handler, proxy);
    return proxy as Handler;
  };
  if (!(callbacks instanceof CallbackManager)) return (callbacks as BaseCallbackHandler[]).map(silence);
  const manager = callbacks.copy();
  manager.handlers = manager.handlers.map(silence);
  manager.inheritableHandlers = manager.inheritableHandlers.map(silence);
  return manager;
}

/** LangGraph's own streams also show the message as a whole at the end. */
const streams = new Set(["StreamMessagesHandler", "StreamProtocolMessagesHandler"]);

function quiet(handler: BaseCallbackHandler, stale: AbortSignal): BaseCallbackHandler {
  const silent = new Set<PropertyKey>(["handleLLMNewToken"]);
  if (streams.has(handler.name)) silent.add("handleLLMEnd").add("handleChainEnd").add("handleCustomEvent");
  return new Proxy(handler, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== "function") return value;
      return (...given: unknown[]) => (silent.has(name) && stale.aborted ? undefined : value.apply(target, given));
    },
  });
}
