// What is published on diagnostics channels, and what becomes of it as OpenTelemetry spans.
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { context, SpanStatusCode, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { traceAgentRewind } from "agentrewind/opentelemetry";
import { afterEach, expect, test } from "vitest";
import { reportLoss, reportPromoted } from "../src/events.ts";
import { makePlace, useRewind } from "./helpers/workspace.ts";

const ended: (() => void)[] = [];
afterEach(() => {
  for (const end of ended.splice(0)) end();
});

interface Heard {
  readonly channel: string;
  /** As it was then. */
  readonly fields: Record<string, unknown>;
  readonly message: object;
}

function listen(): Heard[] {
  const heard: Heard[] = [];
  const names = ["turn", "capture", "rewind"].flatMap((name) => [`${name}:start`, `${name}:end`]);
  for (const name of [...names, "checkpoint:durable"]) {
    const listener = (message: unknown): void =>
      void heard.push({ channel: name, fields: { ...(message as object) }, message: message as object });
    subscribe(`agentrewind:${name}`, listener);
    ended.push(() => unsubscribe(`agentrewind:${name}`, listener));
  }
  return heard;
}

const timings = { exposedMs: expect.any(Number), overlappedMs: expect.any(Number), bytes: expect.any(Number) };

test("turns, captures, rewinds and durable checkpoints are told, from their beginning to their end", async () => {
  const place = makePlace();
  const heard = listen();
  const rewind = await useRewind(place);
  const thread = rewind.thread("t");
  const first = await thread.beginTurn({ messages: ["0"] }, { anchor: "a" });
  await first.gate();
  await first.durable;
  writeFileSync(join(place.workspace, "f"), "1");
  const abandoned = await thread.beginTurn({ messages: ["0", "1"] }, { anchor: "b" });
  await abandoned.captured;
  const again = await thread.beginTurn({ messages: ["0", "1"] }, { anchor: "b" });
  await again.gate();
  again.end();
  await thread.settled();
  await thread.rewind({ to: "c0", lesson: "it was wrong" });
  await thread.undo();
  const of = (channel: string) => heard.filter((one) => one.channel === channel).map(({ fields }) => fields);
  expect(of("turn:start")).toEqual([
    { thread: "t", checkpoint: "c0", kind: "turn" },
    { thread: "t", checkpoint: "c1", kind: "turn" },
    { thread: "t", checkpoint: "c1", kind: "retry" },
  ]);
  expect(of("turn:end")).toEqual([
    { thread: "t", checkpoint: "c0", kind: "turn", state: expect.any(String), timings },
    { thread: "t", checkpoint: "c1", kind: "turn", abandoned: true },
    { thread: "t", checkpoint: "c1", kind: "retry", state: expect.any(String) },
  ]);
  const moved = { thread: "t", by: "caller", scope: "both", epoch: expect.any(Number), notRestored: 0 };
  expect(of("rewind:end")).toEqual([
    { ...moved, kind: "rewind", from: "c1", to: "c0", exposedMs: expect.any(Number) },
    { ...moved, kind: "undo", from: "c0", to: "c1", exposedMs: expect.any(Number) },
  ]);
  const captures = of("capture:end");
  expect(captures).toHaveLength(4);
  expect(captures[0]).toEqual({
    ...{ environment: "directory", files: thread.get("c0").environment.files, processes: null },
    ...{ bytes: expect.any(Number), problems: 0 },
  });
  expect(of("checkpoint:durable")).toContainEqual({ thread: "t", checkpoint: "c0" });
  for (const { channel, message } of heard.filter((one) => one.channel.endsWith(":end")))
    expect(heard.filter((one) => one.message === message).map((one) => one.channel)).toEqual([
      channel.replace("end", "start"),
      channel,
    ]);
});

test("spans lie below the one that is active, and tell of failures", async () => {
  const place = makePlace();
  const exporter = new InMemorySpanExporter();
  const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  const stop = traceAgentRewind({ tracerProvider });
  ended.push(() => context.disable(), stop);
  const thread = (await useRewind(place)).thread("t");
  const agent = tracerProvider.getTracer("agent").startSpan("agent");
  await context.with(trace.setSpan(context.active(), agent), async () => {
    const turn = await thread.beginTurn({ messages: ["0"] });
    await turn.gate();
    await turn.durable;
    await thread.rewind({ to: "c0" });
    await expect(thread.rewind({ to: "c0", verify: "false" })).rejects.toMatchObject({ code: "VERIFY_FAILED" });
  });
  stop();
  await (await thread.beginTurn({ messages: ["0", "1"] })).gate();
  const spans = exporter.getFinishedSpans();
  const named = (name: string) => spans.filter((span) => span.name === `agentrewind.${name}`);
  expect(["turn", "capture", "rewind", "durable"].map((name) => named(name).length)).toEqual([1, 3, 2, 1]);
  for (const span of spans) expect(span.parentSpanContext?.spanId, span.name).toBe(agent.spanContext().spanId);
  expect(named("turn")[0]?.attributes).toMatchObject({
    "agentrewind.thread": "t",
    "agentrewind.checkpoint": "c0",
    "agentrewind.exposed_ms": expect.any(Number),
  });
  expect(named("rewind").map(({ status }) => status.code)).toEqual([SpanStatusCode.UNSET, SpanStatusCode.ERROR]);
  expect(named("rewind")[1]?.events[0]?.name).toBe("exception");
});

test("turns that are not captured, promoted jobs and losses are told, and have spans", async () => {
  const exporter = new InMemorySpanExporter();
  const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  ended.push(traceAgentRewind({ tracerProvider }));
  const place = makePlace();
  const thread = (await useRewind(place, { capture: "explicit" })).thread("t");
  await thread.checkpoint({ context: { messages: ["0"] } });
  await (await thread.beginTurn({ messages: ["0", "1"] })).gate();
  reportLoss({ watcher: "fanotify", path: place.workspace });
  reportPromoted({ job: "capture", environment: "e", waitedMs: 3 });
  const attributesOf = (name: string) =>
    exporter.getFinishedSpans().flatMap((span) => (span.name === `agentrewind.${name}` ? [span.attributes] : []));
  const policy = { "agentrewind.thread": "t", "agentrewind.checkpoint": "c1", "agentrewind.reason": "policy" };
  expect(attributesOf("skip")).toEqual([policy]);
  expect(attributesOf("loss")).toEqual([{ "agentrewind.watcher": "fanotify", "agentrewind.path": place.workspace }]);
  expect(attributesOf("promoted")).toContainEqual(
    expect.objectContaining({ "agentrewind.job": "capture", "agentrewind.waited_ms": 3 }),
  );
});
