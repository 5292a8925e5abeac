// AgentRewind's turns, captures and rewinds as OpenTelemetry spans.
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { type Attributes, type Span, SpanStatusCode, type TracerProvider, trace } from "@opentelemetry/api";
import type { CaptureEvent, DurableEvent, RewindEvent, TurnEvent } from "agentrewind";

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

/**
 * Makes a span `agentrewind.turn`, `agentrewind.capture` or `agentrewind.rewind` of each operation that begins from now on, below the span that is active where it
 * begins, with attributes `agentrewind.*` (docs/events.md); a span `agentrewind.durable` without length tells when a checkpoint has reached the disk.
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
  const onDurable = (message: unknown): void =>
    tracer.startSpan("agentrewind.durable", { attributes: prefixed({ ...(message as DurableEvent) }) }).end();
  subscribe("agentrewind:checkpoint:durable", onDurable);
  begun.push(["agentrewind:checkpoint:durable", onDurable]);
  return () => {
    for (const [channel, listener] of begun) unsubscribe(channel, listener);
  };
}

const prefixed = (attributes: Attributes): Attributes =>
  Object.fromEntries(Object.entries(attributes).map(([name, value]) => [`agentrewind.${name}`, value]));
