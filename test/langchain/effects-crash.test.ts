// F-44 with real kills of a running agent: the resumed run knows what is done in the world, and the mail goes out once.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ModelServer, startModelServer } from "agentrewind/conformance";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { type Bundle, bundle } from "../helpers/bundle.ts";
import { allText, call, calls } from "./harness.ts";

let base: string;
let server: ModelServer;
let agent: Bundle;
beforeAll(async () => {
  agent = await bundle("test/langchain/effect-agent");
});
afterAll(() => agent.remove());

/** One mail; behind it back to before it, and the same mail in other words. */
const decide = (all: string) => {
  if (/This answer is final/.test(all)) return { content: "end" };
  if (all.includes("You are back")) return calls(call("send_mail", { to: "ann", text: "better" }));
  if (all.includes("sent to ann")) return calls(call("rewind", { checkpoint: "c0", lesson: "other words" }));
  return calls(call("send_mail", { to: "ann", text: "hello" }));
};

beforeEach(async () => {
  base = mkdtempSync(join(tmpdir(), "arw-effect-"));
  mkdirSync(join(base, "work"));
  server = await startModelServer({ decide: (request) => decide(allText(request)), latencyMs: 5 });
});
afterEach(async () => {
  await server.close();
  rmSync(base, { recursive: true, force: true });
  expect(server.errors).toEqual([]);
});

async function runAgent(input: string, fault: string) {
  const child = spawn(
    process.execPath,
    [join(agent.folder, "test/langchain/effect-agent.js"), base, server.baseUrl, input],
    { stdio: ["ignore", "pipe", "inherit"], env: { ...process.env, AGENTREWIND_FAULT: fault } },
  );
  let out = "";
  child.stdout.on("data", (data) => {
    out += data;
  });
  const [, signal] = await once(child, "close");
  return { signal, out };
}

const mails = (): string[] =>
  existsSync(join(base, "mails")) ? readFileSync(join(base, "mails"), "utf8").trim().split("\n") : [];

test.each(["effect.recorded", "effect.called", "effect.completed", "rewind.intent", "rewind.committed"])(
  "killed at %s and resumed",
  async (fault) => {
    expect((await runAgent("go", fault)).signal).toBe("SIGKILL");
    const before = mails().length;
    const { signal, out } = await runAgent("", "");
    expect(signal).toBeNull();
    const { texts, effects, findings } = JSON.parse(out) as {
      texts: string[];
      effects: { state: string }[];
      findings: unknown[];
    };
    expect(findings).toEqual([]);
    expect(texts.at(-1)).toBe("end");
    expect(mails(), "once, or not at all where it was only recorded").toHaveLength(before);
    expect(before).toBe(fault === "effect.recorded" ? 0 : 1);
    const unknown = fault === "effect.recorded" || fault === "effect.called";
    expect(effects.map(({ state }) => state)).toEqual([unknown ? "unknown" : "completed"]);
    expect(texts.join("\n")).toContain(
      unknown ? "not known whether this is done already" : "already done at c0: mail to ann",
    );
  },
);
