// `agentrewind observe` around an agent that uses AgentRewind, as processes of their own: LangChain on the model server.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openRewind } from "agentrewind";
import { type ModelServer, startModelServer } from "agentrewind/conformance";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { type Bundle, bundle } from "../helpers/bundle.ts";
import { base, run, start, workspace } from "../helpers/command.ts";
import { digestTree } from "../helpers/digest.ts";
import { allText, call, calls } from "../langchain/harness.ts";

let agent: Bundle;
let server: ModelServer;
beforeAll(async () => {
  agent = await bundle("test/observe/agent");
});
afterAll(() => agent.remove());
afterEach(async () => {
  await server.close();
  expect(server.errors).toEqual([]);
});

const lines = [
  "ls",
  "mkdir made && echo one > made/one",
  "cat made/one",
  "sleep 300 > /dev/null 2>&1 & echo $! > made/pid",
  "cat made/pid",
  "kill $(cat made/pid)",
  "rm made/one",
];

/** Runs the lines one after the other, then sends a mail. */
async function serve(commands: readonly string[]): Promise<void> {
  server = await startModelServer({
    latencyMs: 5,
    decide(request) {
      const all = allText(request);
      const done = all.split("exit code").length - 1;
      const line = commands[done];
      if (line !== undefined) return calls(call("bash", { command: line }));
      return all.includes("sent to") ? { content: "tidied" } : calls(call("send_mail", { to: "ann@example.org" }));
    },
  });
}

const command = (ending = ""): string[] => [
  process.execPath,
  join(agent.folder, "test/observe/agent.js"),
  base,
  server.baseUrl,
  ending,
];
const observe = (ending = "", ...options: string[]): string[] => [...options, "observe", "--", ...command(ending)];

test("the turns of a LangChain agent are classified, and nothing is recorded", async () => {
  writeFileSync(join(workspace, "mine"), "untouched");
  const before = digestTree(workspace).filter((line) => line.includes("mine"));
  await serve(lines);
  const ran = await run(observe("", "--json"));
  expect(ran.status, ran.stderr).toBe(0);
  expect(ran.stderr).toBe("tidied\n");
  const report = JSON.parse(ran.stdout);
  expect(report).toMatchObject({ exitCode: 0, signal: null, source: "turns", workspaces: [workspace] });
  // A turn for each line, for the mail, and for the end.
  expect(report).toMatchObject({ turns: 9, uncompared: 1, classes: { none: { turns: 4 }, both: { turns: 1 } } });
  expect(report.classes).toMatchObject({ files: { turns: 2 }, processes: { turns: 1 } });
  const causes = new Map(report.causes.map((one: { call: string }) => [one.call, one]));
  expect(causes.get("bash: rm")).toMatchObject({ turns: 1, files: 1, processes: 0 });
  expect(causes.get("bash: sleep")).toMatchObject({ turns: 1, files: 1, processes: 1 });
  expect(causes.get("bash: kill")).toMatchObject({ turns: 1, files: 0, processes: 1 });
  expect(causes.get("send_mail")).toMatchObject({ turns: 1, files: 0, processes: 0 });
  const before9 = report.policies.find((one: { capture: string }) => one.capture.startsWith("{ before"));
  // The lines that begin other programs are not judged, rm deletes, and the mail is irreversible.
  expect(before9.captured).toBeGreaterThanOrEqual(2);
  expect(report.policies[0]).toMatchObject({ capture: '"every"', captured: 5, unchanged: 4, notCaptured: 0 });
  expect(report.fits.capture).not.toBe('"explicit"');

  expect(readFileSync(join(base, "mails"), "utf8")).toBe("ann@example.org\n");
  expect(existsSync(join(base, "store"))).toBe(false);
  expect(digestTree(workspace).filter((line) => line.includes("mine"))).toEqual(before);
  for (const { tools } of server.requests)
    expect(tools?.map((one) => one.function.name).sort()).toEqual(["bash", "send_mail"]);
});

test("what a person reads goes to stderr, and the agent's output is its own", async () => {
  await serve(lines.slice(0, 2));
  // It never closes what it opened.
  const ran = await run(observe("open"));
  expect(ran).toMatchObject({ status: 0, stdout: "tidied\n" });
  expect(ran.stderr).toMatch(/^Observed 4 turns in .*; nothing was captured\n/);
  expect(ran.stderr).toMatch(/\nCHANGED .*WOULD STORE/);
  expect(ran.stderr).toMatch(/\nfiles +1 +33\.3 %/);
  expect(ran.stderr).toMatch(/\nCALL .*\nbash: mkdir +1 +1 +0/);
  expect(ran.stderr).toMatch(/\nFits: capture: /);
});

test("beside a process that records the same workspace: its lock and its store stay as they are", async () => {
  const store = join(base, "store");
  const recording = await openRewind({ workspace, store });
  writeFileSync(join(workspace, "a"), "a");
  await recording.thread("t").checkpoint();
  await recording.durable();
  const stored = digestTree(join(store, "packs"));
  await serve(lines.slice(0, 2));
  const ran = await run(observe("", "--json"));
  expect(ran.status, ran.stderr).toBe(0);
  expect(JSON.parse(ran.stdout)).toMatchObject({ turns: 4, classes: { files: { turns: 1 } } });
  expect(digestTree(join(store, "packs"))).toEqual(stored);
  expect(recording.threads()).toEqual(["t"]);
  await recording.close();
});

test("an agent that is killed in the middle of a tool: the turns until then are told", async () => {
  await serve([...lines.slice(0, 2), "kill the agent"]);
  const ran = await run(observe("", "--json"));
  expect(ran.status).toBe(137);
  const report = JSON.parse(ran.stdout);
  expect(report).toMatchObject({ exitCode: null, signal: "SIGKILL", source: "turns", turns: 3 });
  expect(report.classes).toMatchObject({ none: { turns: 1 }, files: { turns: 1 } });
});

test("a signal to us reaches the agent, and the table comes behind its end", async () => {
  await serve([...lines.slice(0, 2), "sleep 30"]);
  const running = start(observe());
  const started = Date.now();
  while (server.requests.length < 3 && Date.now() - started < 60_000) await new Promise((done) => setTimeout(done, 20));
  running.child.kill("SIGTERM");
  const ran = await running.ended;
  expect(ran.status).toBe(143);
  // The signal may come before the third was told.
  expect(ran.stderr).toMatch(/^Observed [23] turns/);
});
