// Invariants 5, 6 and 9 with real kills: a new process finishes the run, and nothing is done twice.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openRewind } from "agentrewind";
import { type ModelServer, startModelServer } from "agentrewind/conformance";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { type Bundle, bundle } from "../helpers/bundle.ts";
import { allText, call, calls, idBefore, occurrences, write } from "./harness.ts";

let base: string;
let server: ModelServer;

/** good.txt; bad.txt; good.txt is spoilt; back to before bad.txt; better.txt. */
const decide = (all: string) => {
  if (all.includes("You are back at")) {
    return all.includes("wrote better.txt") ? { content: "all done" } : calls(write("better.txt", "ok"));
  }
  if (all.includes("Checkpoints, newest first")) {
    return calls(call("rewind", { checkpoint: idBefore(all, '"path":"bad.txt"'), lesson: "bad.txt was wrong" }));
  }
  if (all.includes("wrote good.txt=spoilt")) return calls(call("list_checkpoints", {}));
  if (all.includes("wrote bad.txt")) return calls(write("good.txt", "spoilt"));
  if (all.includes("wrote good.txt")) return calls(write("bad.txt", "oops"));
  return calls(write("good.txt", "yes"));
};
const toolRuns = ["good.txt=yes", "bad.txt=oops", "good.txt=spoilt", "better.txt=ok"];
const modelCalls = 7;

beforeEach(async () => {
  base = mkdtempSync(join(tmpdir(), "arw-crash-"));
  mkdirSync(join(base, "work"));
  server = await startModelServer({ decide: (request) => decide(allText(request)), latencyMs: 5 });
});
afterEach(async () => {
  await server.close();
  rmSync(base, { recursive: true, force: true });
  expect(server.errors).toEqual([]);
});

let agent: Bundle;
beforeAll(async () => {
  agent = await bundle("test/langchain/crash-agent");
});
afterAll(() => agent.remove());

async function runAgent(given: { input?: string; fault?: string; durability?: string; killIn?: string }) {
  const args = [base, server.baseUrl, given.input ?? "", given.durability ?? "sync", given.killIn ?? ""];
  const child = spawn(process.execPath, [join(agent.folder, "test/langchain/crash-agent.js"), ...args], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, AGENTREWIND_FAULT: given.fault ?? "" },
  });
  let out = "";
  child.stdout.on("data", (data) => {
    out += data;
  });
  const [code, signal] = await once(child, "close");
  return { code, signal, out };
}

const ran = (): string[] => readFileSync(join(base, "tools.log"), "utf8").trim().split("\n");

/** What must hold once the run is complete, however often it was killed. */
async function expectComplete(out: string): Promise<void> {
  const { texts, findings } = JSON.parse(out) as { texts: string[]; findings: unknown[] };
  expect(findings).toEqual([]);
  expect(texts.at(-1)).toBe("all done");
  expect(occurrences(texts.join("\n"), "1. bad.txt was wrong")).toBe(1);
  expect(texts.join("\n")).not.toContain("wrote bad.txt");
  expect(readdirSync(join(base, "work")).sort()).toEqual(["better.txt", "good.txt"]);
  expect(readFileSync(join(base, "work", "good.txt"), "utf8")).toBe("yes");
  const rewind = await openRewind({ workspace: join(base, "work"), store: join(base, "store") });
  const thread = rewind.thread("t");
  expect(thread.lessons().map((one) => one.text)).toEqual(["bad.txt was wrong"]);
  const tree = thread.checkpoints({ all: true });
  expect(tree.filter((one) => one.kind === "safety").length).toBeLessThanOrEqual(1);
  const line = thread.checkpoints();
  expect(line.map((one) => one.turn)).toEqual([1, 2, 3, 4]);
  await rewind.close();
}

const duringRewind = [
  "rewind.safety",
  "rewind.intent",
  "restore.staged-one",
  "restore.removed-one",
  "restore.placed-one",
  "restore.metadata-one",
  "restore.applied",
  "restore.cleaned",
  "rewind.restored",
  "rewind.committed",
];

test.each(duringRewind)("killed at %s: the rewind is finished, and nothing of the run is repeated", async (fault) => {
  expect((await runAgent({ input: "go", fault })).signal).toBe("SIGKILL");
  const { out } = await runAgent({});
  await expectComplete(out);
  expect(ran()).toEqual(toolRuns);
  expect(server.requests).toHaveLength(modelCalls);
});

test("killed between our commit and LangGraph's write, with durability async", async () => {
  expect((await runAgent({ input: "go", fault: "rewind.committed", durability: "async" })).signal).toBe("SIGKILL");
  const { out } = await runAgent({ durability: "async" });
  await expectComplete(out);
  expect(ran()).toEqual(toolRuns);
});

test.each(["checkpoint.before-commit:3", "checkpoint.committed:3", "checkpoint.committed:6"])(
  "killed at %s, while the model was asked: only that call is repeated",
  async (fault) => {
    expect((await runAgent({ input: "go", fault })).signal).toBe("SIGKILL");
    const { out } = await runAgent({});
    await expectComplete(out);
    expect(ran()).toEqual(toolRuns);
    expect(server.requests.length - modelCalls).toBeLessThanOrEqual(1);
  },
);

test("killed inside of a tool: that tool alone runs again", async () => {
  expect((await runAgent({ input: "go", killIn: "good.txt=spoilt" })).signal).toBe("SIGKILL");
  const { out } = await runAgent({});
  await expectComplete(out);
  expect(ran()).toEqual([...toolRuns.slice(0, 3), "good.txt=spoilt", "better.txt=ok"]);
  expect(server.requests).toHaveLength(modelCalls);
});

test("killed at each point one after the other", async () => {
  expect((await runAgent({ input: "go", fault: "restore.placed-one" })).signal).toBe("SIGKILL");
  expect((await runAgent({ fault: "recovery.restored" })).signal).toBe("SIGKILL");
  expect((await runAgent({ fault: "checkpoint.committed:1" })).signal).toBe("SIGKILL");
  const { out } = await runAgent({});
  await expectComplete(out);
  expect(ran()).toEqual(toolRuns);
});

test("a second process goes on from the rewound pair", async () => {
  const first = await runAgent({ input: "go" });
  await expectComplete(first.out);
  const second = await runAgent({ input: "and now?" });
  const { texts } = JSON.parse(second.out) as { texts: string[] };
  expect(texts.slice(-2)).toEqual(["and now?", "all done"]);
  expect(server.requests).toHaveLength(modelCalls + 1);
});
