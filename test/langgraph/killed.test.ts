// A process is killed while a tool, or a node behind the gate, changes the files: the resumed run begins it again on the files from which it began (F-48).
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openRewind } from "agentrewind";
import { type ChatRequest, type ModelServer, startModelServer } from "agentrewind/conformance";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Bundle, bundle } from "../helpers/bundle.ts";
import { textOfMessage } from "../langchain/harness.ts";
import { allText, call, calls, durabilities } from "./harness.ts";

let base: string;
let server: ModelServer;
/** Notes of each turn. */
let plan: string[][];

const personIn = ({ messages }: ChatRequest): string =>
  messages
    .filter(({ role }) => role === "user")
    .map(textOfMessage)
    .join("\n");
const note = (text: string) => call("note", { text });
const task = () => call("task", { description: "SUBTASK", subagent_type: "general-purpose" });

function decide(all: string, asked: string) {
  if (delegated && !asked.includes("SUBTASK")) return all.includes("end") ? { content: "over" } : calls(task());
  const next = plan.find((turn) => turn.some((text) => !all.includes(`noted ${text}`)));
  return next === undefined ? { content: "end" } : calls(...next.map(note));
}
let delegated: boolean;

beforeEach(async () => {
  delegated = false;
  base = mkdtempSync(join(tmpdir(), "arw-killed-"));
  mkdirSync(join(base, "work"));
  server = await startModelServer({ decide: (request) => decide(allText(request), personIn(request)), latencyMs: 5 });
});
afterEach(async () => {
  await server.close();
  rmSync(base, { recursive: true, force: true });
  expect(server.errors).toEqual([]);
});

let agent: Bundle;
beforeAll(async () => {
  agent = await bundle("test/langgraph/killed-agent");
});
afterAll(() => agent.remove());

interface Given {
  readonly kind: string;
  readonly durability?: string;
  readonly killIn?: string;
  readonly before?: string;
}

interface Told {
  readonly left: string[];
  readonly findings: unknown[];
  readonly paused: boolean;
}

async function start({ kind, durability = "sync", killIn = "", before = "" }: Given) {
  const args = [base, server.baseUrl, kind, durability, killIn, before];
  const child = spawn(process.execPath, [join(agent.folder, "test/langgraph/killed-agent.js"), ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let out = "";
  child.stdout.on("data", (data) => {
    out += data;
  });
  const [, signal] = await once(child, "close");
  return { signal, told: out === "" ? undefined : (JSON.parse(out) as Told) };
}

async function killedThenResumed(given: Given): Promise<Told> {
  expect((await start(given)).signal).toBe("SIGKILL");
  const { told } = await start(given);
  expect(told?.findings).toEqual([]);
  return told as Told;
}

const log = (): string[] =>
  readFileSync(join(base, "work", "log.txt"), "utf8")
    .trim()
    .split("\n");
const isThere = (name: string): boolean => existsSync(join(base, "work", name));

describe.each(durabilities)("durability %s", (durability) => {
  test.each(["langchain", "langgraph"])("F-48: %s: its traces are gone, and can be reached", async (kind) => {
    plan = [["one"], ["two"], ["three"]];
    const { left } = await killedThenResumed({ kind, durability, killIn: "two" });
    expect(log()).toEqual(["one", "two", "three"]);
    expect(isThere("half")).toBe(false);
    expect(left).toHaveLength(1);
    const rewind = await openRewind({ workspace: join(base, "work"), store: join(base, "store") });
    await rewind.thread("t").rewind({ to: left[0] as string, scope: "environment" });
    expect(log()).toEqual(["one", "two"]);
    expect(isThere("half")).toBe(true);
    await rewind.close();
  });

  test.each(["one", "two", "three", "four"])("a node of one's own, also in a part of the graph: %s", async (killIn) => {
    await killedThenResumed({ kind: "nodes", durability, killIn });
    expect(log()).toEqual(["one", "two", "three", "four"]);
    expect(isThere("half")).toBe(false);
  });
});

test.each(["langchain", "langgraph"])("%s: several tools at once, of which none had ended", async (kind) => {
  plan = [["one"], ["two", "late three"], ["four"]];
  await killedThenResumed({ kind, killIn: "two" });
  expect(log()).toEqual(["one", "two", "late three", "four"]);
});

test.each(["langchain", "langgraph"])("%s: what a tool beside it had done stays", async (kind) => {
  plan = [["one"], ["two", "late three"], ["four"]];
  await killedThenResumed({ kind, killIn: "late three" });
  expect(log()).toContain("two");
  expect(isThere("half")).toBe(true);
});

test("what a person changed while the tools waited for an approval stays", async () => {
  plan = [["one"]];
  const given = { kind: "langgraph", killIn: "one", before: "tools" };
  expect((await start(given)).told?.paused).toBe(true);
  writeFileSync(join(base, "work", "mine"), "x");
  await killedThenResumed(given);
  expect(log()).toEqual(["one"]);
  expect(isThere("half")).toBe(false);
  expect(isThere("mine")).toBe(true);
});

test.each(["langchain", "langgraph"])("%s: what a person changed while a tool asked stays", async (kind) => {
  plan = [["one"], ["ask two"]];
  const given = { kind, killIn: "ask two" };
  expect((await start(given)).told?.paused).toBe(true);
  writeFileSync(join(base, "work", "mine"), "x");
  await killedThenResumed(given);
  expect(isThere("mine")).toBe(true);
  expect(log()[0]).toBe("one");
});

test("a subagent that goes on from where it was keeps what its tools had done", async () => {
  delegated = true;
  plan = [["one"], ["two"]];
  await killedThenResumed({ kind: "deepagents", killIn: "two" });
  expect(log()).toEqual(["one", "two", "two"]);
});

test("a subagent that had done nothing yet begins on the files of its task", async () => {
  delegated = true;
  plan = [["one"], ["two"]];
  await killedThenResumed({ kind: "deepagents", killIn: "one" });
  expect(log()).toEqual(["one", "two"]);
  expect(isThere("half")).toBe(false);
});
