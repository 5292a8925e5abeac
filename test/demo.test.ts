// The demo end to end: the agent takes its wrong step back; without the lesson or without the files it does not get through.
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { promisify } from "node:util";
import { type ChatRequest, type Message, textOf } from "agentrewind/conformance";
import { beforeAll, describe, expect, test } from "vitest";
import { createPrinter } from "../examples/demo/print.ts";
import { type DemoRun, runDemo, type StartEvent } from "../examples/demo/run.ts";

const options = { latencyMs: 20, scripted: true };

function callsOf(messages: readonly Message[]): { id: string; name: string; args: string }[] {
  const calls = messages.flatMap((message) => (message.role === "assistant" ? (message.tool_calls ?? []) : []));
  return calls.map(({ id, function: { name, arguments: args } }) => ({ id, name, args }));
}

/** Ids of all calls of one command, over all requests. */
function runsOf(requests: readonly ChatRequest[], command: string): Set<string> {
  const calls = requests.flatMap(({ messages }) => callsOf(messages));
  return new Set(calls.filter(({ name, args }) => name === "bash" && args.includes(command)).map(({ id }) => id));
}

const isBack = (message: Message | undefined): boolean =>
  message?.role === "user" && textOf(message.content).startsWith("You are back at c");

/** Index of the first request after the rewind. */
function firstBack({ requests }: DemoRun): number {
  const index = requests.findIndex(({ messages }) => isBack(messages.at(-1)));
  expect(index).toBeGreaterThan(0);
  return index;
}

/** Without the native addon times come back to the microsecond only, and the digest sees it. */
const exact = ({ lacks }: DemoRun): boolean => !lacks.some((lack) => lack.includes("times"));

describe("with both halves", () => {
  let run: DemoRun;
  let start: StartEvent | undefined;
  const lines: string[] = [];

  beforeAll(async () => {
    const printer = createPrinter((line) => lines.push(line), false);
    run = await runDemo({
      ...options,
      tell: (event) => {
        if (event.type === "start") start = event;
        printer.tell(event);
      },
    });
    printer.summary(run);
  });

  test("the agent rewinds once, and the suite passes", () => {
    expect(run.report).toMatchObject({ model: "scripted", turns: 9, rewinds: 1, testsPass: true });
    expect(run.report.lessons).toEqual([expect.stringContaining("npm run normalize")]);
    expect(run.report.checkpoints).toBe(run.checkpoints.length);
    expect(run.report.exposedMs).toBeGreaterThanOrEqual(0);
    expect(run.errors).toEqual([]);
    expect(run.findings).toEqual([]);
  });

  test("the tree after the rewind is the tree at the checkpoint", () => {
    expect(run.report.treeDigestAtCheckpoint).toMatch(/^[0-9a-f]{64}$/);
    if (exact(run)) expect(run.report.treeDigestAfterRewind).toBe(run.report.treeDigestAtCheckpoint);
    expect(run.rewinds[0]?.left.tree.digest).not.toBe(run.report.treeDigestAtCheckpoint);
  });

  test("the restored context is the old one and one message", () => {
    const back = run.requests[firstBack(run)]?.messages ?? [];
    const before = run.requests.find(({ messages }) => messages.length === back.length - 1);
    expect(back.slice(0, -1)).toEqual(before?.messages);
  });

  test("the abandoned turns are in no later request", () => {
    const index = firstBack(run);
    const kept = new Set(callsOf(run.requests[index]?.messages ?? []).map(({ id }) => id));
    const earlier = run.requests.slice(0, index).flatMap(({ messages }) => callsOf(messages));
    const abandoned = earlier.filter(({ id }) => !kept.has(id));
    expect(new Set(abandoned.map(({ name }) => name))).toEqual(new Set(["bash", "list_checkpoints"]));
    for (const { messages } of run.requests.slice(index)) {
      const text = JSON.stringify(messages);
      for (const { id } of abandoned) expect(text).not.toContain(id);
      expect(text.split(run.report.lessons[0] ?? "?")).toHaveLength(2);
    }
  });

  test("the abandoned branch stays in the tree of checkpoints", () => {
    const abandoned = run.checkpoints.filter(({ active }) => !active);
    expect(abandoned.length).toBeGreaterThanOrEqual(3);
    expect(abandoned.some(({ changes }) => changes?.changed.includes("data/export.csv"))).toBe(true);
    expect(run.checkpoints.filter(({ head }) => head)).toHaveLength(1);
  });

  test("a person sees the turns, the tree, what came back, and the times", () => {
    const text = lines.join("\n");
    for (const part of ["a scripted one", "turn 9", "├─", "abandoned", "<- the agent came back here"]) {
      expect(text).toContain(part);
    }
    expect(text).toContain("  + 01cb363aec;2026-03-02;INV-2102;Brightwater Ltd;89.95");
    expect(text).toMatch(/captures +\d+ ms beside the model's thinking, \d+ ms waited for/);
    expect(text).toContain(exact(run) ? "(equal)" : "snapshots lack on this machine: times finer than a microsecond");
    expect(text).not.toContain("\u001b");
  });

  test("nothing is left behind", () => {
    expect(start?.workspace).toMatch(/agentrewind-demo-/);
    expect(existsSync(start?.workspace ?? "/")).toBe(false);
    expect(existsSync(start?.store ?? "/")).toBe(false);
  });
});

test("without the lesson it falls into the trap again", async () => {
  const run = await runDemo({ ...options, withoutLesson: true });
  expect(run.report).toMatchObject({ rewinds: 1, testsPass: false });
  if (exact(run)) expect(run.report.treeDigestAfterRewind).toBe(run.report.treeDigestAtCheckpoint);
  expect(runsOf(run.requests, "npm run normalize").size).toBe(2);
  const index = firstBack(run);
  for (const message of run.requests[index]?.messages ?? []) expect(textOf(message.content)).not.toContain("Instead");
  expect(run.answer).toMatch(/^I could not make the suite pass/);
  expect(run.errors).toEqual([]);
  expect(run.findings).toEqual([]);
});

test("without the files the lesson does not help", async () => {
  const run = await runDemo({ ...options, withoutFiles: true });
  expect(run.report).toMatchObject({ rewinds: 1, testsPass: false });
  expect(run.report.treeDigestAfterRewind).not.toBe(run.report.treeDigestAtCheckpoint);
  expect(runsOf(run.requests, "npm run normalize").size).toBe(1);
  expect(callsOf(run.requests.at(-1)?.messages ?? []).some(({ name }) => name === "edit_file")).toBe(true);
  expect(run.answer).toMatch(/^I could not make the suite pass/);
  expect(run.errors).toEqual([]);
  expect(run.findings).toEqual([]);
});

test("npm run demo -- --json prints one object and nothing else", async () => {
  const { OPENAI_API_KEY: _, ...env } = process.env;
  const run = promisify(execFile)("npm", ["run", "--silent", "demo", "--", "--json"], { env });
  const { stdout, stderr } = await run;
  expect(stderr).toBe("");
  const report = JSON.parse(stdout);
  expect(Object.keys(report)).toEqual([
    "model",
    "turns",
    "checkpoints",
    "rewinds",
    "lessons",
    "testsPass",
    "treeDigestAtCheckpoint",
    "treeDigestAfterRewind",
    "exposedMs",
  ]);
  expect(report).toMatchObject({ model: "scripted", rewinds: 1, testsPass: true });
  expect(report.treeDigestAfterRewind).toMatch(/^[0-9a-f]{64}$/);
});
