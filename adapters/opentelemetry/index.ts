// AgentRewind's turns, captures and rewinds as OpenTelemetry spans.
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { type Attributes, type Span, SpanStatusCode, type TracerProvider, trace } from "@opentelemetry/api";
import type { CaptureEvent, RewindEvent, TurnEvent } from "agentrewind";

export interface TraceOptions {
  /** Default: the global one. */
  readonly tracerProvider?: TracerProvider;
}

/** Span's name -> the attributes that its start knows, and those that its end adds. */
const kinds = {
  turn: {
    start: ({ thread, checkpoint, kind }: TurnEvent): Attributes => ({ thread, checkpoint, kind }),
    end: ({ state, abandoned, timings }: TurnEvent): Attributes => ({
      state,
      abandoned,
      exposed_ms: timings?.exposedMs,
      overlapped_ms: timings?.overlappedMs,
      bytes: timings?.bytes,
    }),
  },
  capture: {
    start: ({ environment }: CaptureEvent): Attributes => ({ environment }),
    end: ({ files, processes, bytes, problems }: CaptureEvent): Attributes => ({
      files: files ?? undefined,
      processes: processes ?? undefined,
      bytes,
      problems,
    }),
  },
  rewind: {
    start: ({ thread, kind, by, scope, from, to }: RewindEvent): Attributes => ({
      ...{ thread, kind, by, scope, to },
      from: from ?? undefined,
    }),
    end: ({ epoch, exposedMs, notRestored }: RewindEvent): Attributes => ({
      epoch,
      exposed_ms: exposedMs,
      not_restored: notRestored,
    }),
  },
} as const;

/** Channels with one message -> the span's name. */
const moments = [
  ["agentrewind:checkpoint:durable", "durable"],
  ["agentrewind:skip", "skip"],
  ["agentrewind:job:promoted", "promoted"],
  ["agentrewind:loss", "loss"],
] as const;

/**
 * Makes a span `agentrewind.turn`, `agentrewind.capture` or `agentrewind.rewind` of each operation that begins from now on, below the span that is active where it
 * begins, with attributes `agentrewind.*` (docs/events.md). What has one message has a span without length: `agentrewind.durable`, `agentrewind.skip`, `agentrewind.promoted` and
 * `agentrewind.loss`.
 * @returns what ends that; spans of what is under way are ended with their operations all the same
 */
export function traceAgentRewind({ tracerProvider }: TraceOptions = {}): () => void {
  const tracer = (tracerProvider ?? trace).getTracer("agentrewind");
  const spans = new WeakMap<object, Span>();
  const begun: [string, (message: unknown) => void][] = [];
  for (const [name, { start, end }] of Object.entries(kinds)) {
    const onStart = (message: unknown): void => {
      const attributes = prefixed(start(message as never));
      spans.set(message as object, tracer.startSpan(`agentrewind.${name}`, { attributes }));
    };
    const onEnd = (message: unknown): void => {
      const span = spans.get(message as object);
      if (span === undefined) return;
      span.setAttributes(prefixed(end(message as never)));
      const { error } = message as TurnEvent;
      if (error !== undefined) {
        span.recordException(error instanceof Error ? error : String(error));
        span.setStatus({ code: SpanStatusCode.ERROR, message: error instanceof Error ? error.message : String(error) });
      }
      span.end();
    };
    subscribe(`agentrewind:${name}:start`, onStart);
    subscribe(`agentrewind:${name}:end`, onEnd);
    begun.push([`agentrewind:${name}:start`, onStart]);
  }
  for (const [channel, name] of moments) {
    const onMessage = (message: unknown): void =>
      tracer.startSpan(`agentrewind.${name}`, { attributes: prefixed(inWords(message as object)) }).end();
    subscribe(channel, onMessage);
    begun.push([channel, onMessage]);
  }
  return () => {
    for (const [channel, listener] of begun) unsubscribe(channel, listener);
  };
}

/** Names as OpenTelemetry has them: `waitedMs` is `waited_ms`. */
const inWords = (message: object): Attributes =>
  Object.fromEntries(
    Object.entries(message).map(([name, value]) => [name.replace(/[A-Z]/g, (one) => `_${one.toLowerCase()}`), value]),
  );

const prefixed = (attributes: Attributes): Attributes =>
  Object.fromEntries(Object.entries(attributes).map(([name, value]) => [`agentrewind.${name}`, value]));
