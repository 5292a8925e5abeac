// Real kills between our commits and LangGraph's, in both orders: a new process finishes the run, and every state still finds its files (F-46, F-47).
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openRewind } from "agentrewind";
import { type ModelServer, startModelServer } from "agentrewind/conformance";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { type Bundle, bundle } from "../helpers/bundle.ts";
import { allText, call, calls, durabilities, idBefore, occurrences, write } from "./harness.ts";

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

function prepare(): void {
  base = mkdtempSync(join(tmpdir(), "arw-crash-"));
  mkdirSync(join(base, "work"));
}
beforeEach(async () => {
  prepare();
  server = await startModelServer({ decide: (request) => decide(allText(request)), latencyMs: 5 });
});
afterEach(async () => {
  await server.close();
  rmSync(base, { recursive: true, force: true });
  expect(server.errors).toEqual([]);
});

let agent: Bundle;
beforeAll(async () => {
  agent = await bundle("test/langgraph/crash-agent");
});
afterAll(() => agent.remove());

interface Given {
  readonly input?: string;
  readonly fault?: string;
  readonly durability?: string;
  readonly killIn?: string;
  readonly killAt?: string;
}

async function runAgent({ input = "go", fault = "", durability = "sync", killIn = "", killAt = "" }: Given) {
  const args = [base, server.baseUrl, input, durability, killIn, killAt];
  const child = spawn(process.execPath, [join(agent.folder, "test/langgraph/crash-agent.js"), ...args], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, AGENTREWIND_FAULT: fault },
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
  const { texts, findings, wrong } = JSON.parse(out) as { texts: string[]; findings: unknown[]; wrong: string[] };
  expect(findings).toEqual([]);
  expect(wrong).toEqual([]);
  expect(texts.at(-1)).toBe("all done");
  expect(occurrences(texts.join("\n"), "1. bad.txt was wrong")).toBe(1);
  expect(texts.join("\n")).not.toContain("wrote bad.txt");
  expect(readdirSync(join(base, "work")).sort()).toEqual(["better.txt", "good.txt"]);
  expect(readFileSync(join(base, "work", "good.txt"), "utf8")).toBe("yes");
  const rewind = await openRewind({ workspace: join(base, "work"), store: join(base, "store") });
  expect(
    rewind
      .thread("t")
      .lessons()
      .map((one) => one.text),
  ).toEqual(["bad.txt was wrong"]);
  await rewind.close();
}

test("nothing killed: the run as it should be", async () => {
  const { out } = await runAgent({});
  await expectComplete(out);
  expect(ran()).toEqual(toolRuns);
  expect(JSON.parse(out).states).toBeGreaterThan(10);
});

test.each(["rewind.intent", "restore.placed-one", "rewind.committed"])(
  "killed at %s: the rewind is finished, and nothing of the run is repeated",
  async (fault) => {
    expect((await runAgent({ fault })).signal).toBe("SIGKILL");
    const { out } = await runAgent({});
    await expectComplete(out);
    expect(ran()).toEqual(toolRuns);
  },
);

test.each(["checkpoint.before-commit:3", "checkpoint.committed:5"])(
  "killed at %s, while the model was asked",
  async (fault) => {
    expect((await runAgent({ fault })).signal).toBe("SIGKILL");
    const { out } = await runAgent({});
    await expectComplete(out);
    expect(ran()).toEqual(toolRuns);
  },
);

test("killed inside of a tool: that tool alone runs again", async () => {
  expect((await runAgent({ killIn: "good.txt=spoilt" })).signal).toBe("SIGKILL");
  const { out } = await runAgent({});
  await expectComplete(out);
  expect(ran()).toEqual([...toolRuns.slice(0, 3), "good.txt=spoilt", "better.txt=ok"]);
});

const long = process.env.AGENTREWIND_LONG === "1";
// A run has 16 checkpoints; a write is killed on either side of LangGraph's commit. In between lies what we committed before it.
for (const durability of durabilities) {
  for (const moment of ["before", "after"]) {
    test.each(long ? [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14] : durability === "sync" ? [4, 12] : [5, 13])(
      `durability ${durability}: killed ${moment} LangGraph's put number %i`,
      async (which) => {
        expect((await runAgent({ durability, killAt: `put:${moment}:${which}` })).signal).toBe("SIGKILL");
        const { out } = await runAgent({ durability });
        await expectComplete(out);
        // With "async" a tool may have run whose result was not stored; it runs again.
        if (durability === "sync") expect(ran()).toEqual(toolRuns);
        else expect(new Set(ran())).toEqual(new Set(toolRuns));
      },
    );
  }
  test.each(long ? [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12] : [10])(
    `durability ${durability}: killed at either side of putWrites number %i`,
    async (which) => {
      expect((await runAgent({ durability, killAt: `putWrites:before:${which}` })).signal).toBe("SIGKILL");
      await runAgent({ durability, killAt: `putWrites:after:${which}` });
      const { out } = await runAgent({ durability });
      await expectComplete(out);
      expect(new Set(ran())).toEqual(new Set(toolRuns));
    },
  );
}
