// The example of a workflow engine: its journal holds ids alone, and a killed workflow goes on from them.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type ModelServer, startModelServer, textOf } from "agentrewind/conformance";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { type Bundle, bundle } from "./helpers/bundle.ts";
import { makePlace } from "./helpers/workspace.ts";

const outputBytes = 50 * 1024;
const megabyte = 1 << 20;
const long = process.env.AGENTREWIND_LONG === "1";

let example: Bundle;
beforeAll(async () => {
  example = await bundle("examples/temporal-style/main");
});
afterAll(() => example.remove());

/** Works for `turns` turns. */
async function model(turns: number): Promise<ModelServer> {
  const server = await startModelServer({
    latencyMs: 0,
    decide({ messages }) {
      const turn = Number(/turn (\d+)/.exec(textOf(messages.at(-1)?.content))?.[1]);
      return { content: turn > turns ? "done" : `turn ${turn}` };
    },
  });
  onTestFinished(() => server.close());
  return server;
}

interface Ended {
  readonly signal: string | null;
  readonly out: string;
}

/** @param killWhen looked at while it runs; SIGKILL when it says so */
async function run(
  folder: string,
  server: ModelServer,
  options: { fault?: string; killWhen?: () => boolean } = {},
): Promise<Ended> {
  const main = join(example.folder, "examples/temporal-style/main.js");
  const child = spawn(process.execPath, [main, folder, server.baseUrl, String(outputBytes)], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, AGENTREWIND_FAULT: options.fault ?? "" },
  });
  let out = "";
  child.stdout.on("data", (data) => {
    out += data;
  });
  const watch = setInterval(() => {
    if (options.killWhen?.() === true) child.kill("SIGKILL");
  }, 2);
  const [, signal] = await once(child, "close");
  clearInterval(watch);
  return { signal, out };
}

const journalOf = (folder: string): string => {
  const file = join(folder, "journal.jsonl");
  return existsSync(file) ? readFileSync(file, "utf8") : "";
};
const ledgerOf = (folder: string): string[] =>
  readFileSync(join(folder, "workspace", "ledger.txt"), "utf8")
    .trim()
    .split("\n");
const expectedLedger = (turns: number): string[] => Array.from({ length: turns }, (_, index) => `turn ${index + 1}`);

test.runIf(long)(
  "2,000 turns with 50 KB of tool output each: the journal stays under 1 MB",
  { timeout: 3_600_000 },
  () => measured(2_000),
);
test("40 turns with 50 KB of tool output each: the journal takes less than 1 MB / 2,000 for each", () => measured(40));

async function measured(turns: number): Promise<void> {
  const { base } = makePlace();
  const server = await model(turns);
  const { out } = await run(base, server);
  const result = JSON.parse(out);
  expect(result).toMatchObject({ turns, ran: turns, findings: [] });
  expect(ledgerOf(base)).toEqual(expectedLedger(turns));
  const { journalBytes } = result as { journalBytes: number };
  expect(journalBytes).toBeLessThan((megabyte / 2_000) * turns);
  expect(journalOf(base)).not.toContain("report of");
  // No line gets longer with the turns but for the digits of its numbers.
  const longest = Math.max(
    ...journalOf(base)
      .split("\n")
      .map((line) => line.length),
  );
  expect(longest * 2_000).toBeLessThan(megabyte);
}

/** Each kill in a place of its own: a turn whose tool has acted, one whose checkpoint is there and whose line is not, one with a line that is cut. */
test("killed again and again, it goes on from its ids, and no turn's work is there twice", async () => {
  const { base } = makePlace();
  const turns = 12;
  const server = await model(turns);
  const lines = (): number => journalOf(base).split("\n").length - 1;

  expect((await run(base, server, { killWhen: () => lines() >= 4 })).signal).toBe("SIGKILL");
  const known = lines();
  expect((await run(base, server, { fault: "checkpoint.before-commit:2" })).signal).toBe("SIGKILL");
  expect(ledgerOf(base).length).toBeGreaterThan(lines() - 1);
  expect((await run(base, server, { fault: "durable.committed:2" })).signal).toBe("SIGKILL");
  expect(lines()).toBeGreaterThanOrEqual(known);
  writeFileSync(join(base, "journal.jsonl"), `${journalOf(base)}{"event":"turn-comp`);

  const { out } = await run(base, server);
  const result = JSON.parse(out);
  expect(result).toMatchObject({ turns, findings: [] });
  expect(result.ran).toBeLessThan(turns);
  expect(ledgerOf(base)).toEqual(expectedLedger(turns));
  const journal = journalOf(base)
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(journal.filter(({ event }) => event === "turn-completed").map(({ turn }) => turn)).toEqual(
    expectedLedger(turns).map((_, index) => index + 1),
  );

  const asked = server.requests.length;
  const again = JSON.parse((await run(base, server)).out);
  expect(again).toMatchObject({ ran: 0, turns });
  expect(server.requests.length).toBe(asked);
});
