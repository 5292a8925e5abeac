// The owner of an environment is killed at three moments of a turn, and its agent resumed as its user would: what the conversation tells is what is there, or it is refused
// with what to do, and doing that helps. What nothing takes back is done once.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ChatRequest, type ModelServer, startModelServer } from "agentrewind/conformance";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { lacking } from "../capabilities.ts";
import { type Bundle, bundle } from "../helpers/bundle.ts";
import { allText, call, calls, textOfMessage } from "../langchain/harness.ts";
import { needed } from "../sandbox/machine.ts";
import type { Given } from "./owner.ts";

interface Told {
  readonly refused: { readonly code: string; readonly message: string; readonly hint: string } | null;
  readonly log: string[];
  readonly findings: unknown[];
}

let base: string;
let server: ModelServer;
/** Texts of each turn. */
let plan: string[][];
/** A subagent does it. */
let delegates: boolean;
let agent: Bundle;
const task = call("task", { description: "SUBTASK", subagent_type: "general-purpose" });
const asked = ({ messages }: ChatRequest): string =>
  messages
    .filter(({ role }) => role === "user")
    .map(textOfMessage)
    .join("\n");

/** In a result, or in what a rewind told of the world. */
const isKnown = (all: string, text: string): boolean =>
  all.includes(`noted ${text}`) || all.includes(`send {"text":"${text}"}`);

beforeAll(async () => {
  agent = await bundle("test/owner/agent");
});
afterAll(() => agent.remove());
beforeEach(async () => {
  plan = [["one"], ["two"], ["three"]];
  delegates = false;
  base = mkdtempSync(join(tmpdir(), "arw-owner-"));
  mkdirSync(join(base, "work"));
  server = await startModelServer({
    latencyMs: 5,
    decide(request) {
      const all = allText(request);
      if (delegates && !asked(request).includes("SUBTASK"))
        return all.includes("end") ? { content: "over" } : calls(task);
      const next = plan.find((turn) => turn.some((text) => !isKnown(all, text)));
      if (next === undefined) return { content: "end" };
      return calls(...next.map((text) => call(text.startsWith("send") ? "send" : "note", { text })));
    },
  });
});
afterEach(async () => {
  await server.close();
  rmSync(base, { recursive: true, force: true });
  expect(server.errors).toEqual([]);
});

type Asked = Omit<Given, "base" | "baseURL">;

async function start(asked: Asked, env: Record<string, string> = {}): Promise<Told | "killed"> {
  const given: Given = { base, baseURL: server.baseUrl, ...asked };
  const child = spawn(process.execPath, [join(agent.folder, "test/owner/agent.js"), JSON.stringify(given)], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, ...env },
  });
  let out = "";
  child.stdout.on("data", (data) => {
    out += data;
  });
  const [, signal] = await once(child, "close");
  if (signal === "SIGKILL") return "killed";
  const told = JSON.parse(/^result (.*)$/m.exec(out)?.[1] ?? "{}") as Told;
  expect(told.findings).toEqual([]);
  return told;
}

const resumed = async (asked: Asked): Promise<Told> => (await start(asked)) as Told;

/** What the model was told last. */
const toldLast = (): string => allText(server.requests.at(-1) as never);
const texts = (): string[] => plan.flat();

/** All of the plan is known and there, each once. */
function expectWhole({ log }: Told): void {
  expect([...log].sort()).toEqual([...texts()].sort());
  for (const text of texts()) expect(isKnown(toldLast(), text), text).toBe(true);
}

/** Those that run their tools again by themselves. */
const startOver = ["chat", "chat bare", "chat resume", "responses", "ai-sdk", "agents", "plain"];
/** Those whose framework or user keeps the results. */
const keep = [
  "langchain",
  "langgraph",
  "deepagents",
  "chat keeps",
  "chat keeps bare",
  "responses keeps",
  "ai-sdk keeps",
  "plain keeps",
];

describe.skipIf(lacking(...needed))("in a sandbox, which ends with its owner", () => {
  const environment = "sandbox";

  describe.each([...startOver, ...keep])("%s", (kind) => {
    test("killed while a tool runs: it runs again, on what was there before", async () => {
      expect(await start({ kind, environment, killIn: "two" })).toBe("killed");
      const told = await resumed({ kind, environment, killIn: "two", choice: "stay" });
      // Of a tool that is not wrapped nobody knows in which process it ran.
      expect(told.refused?.code).toBe(kind === "chat keeps bare" ? "PAIR_DIVERGED" : undefined);
      expectWhole(told);
    });

    test("killed when the next pair is captured: nothing runs again", async () => {
      expect(await start({ kind, environment }, { AGENTREWIND_FAULT: "checkpoint.committed:3" })).toBe("killed");
      const told = await resumed({ kind, environment });
      expect(told.refused).toBeNull();
      expectWhole(told);
    });
  });

  test.each(startOver)("%s: killed before the next pair is captured: the tool runs again", async (kind) => {
    expect(await start({ kind, environment }, { AGENTREWIND_FAULT: "checkpoint.before-commit:3" })).toBe("killed");
    const told = await resumed({ kind, environment });
    expect(told.refused).toBeNull();
    expectWhole(told);
  });

  describe.each(keep)("%s: killed when the result is stored and before the next pair is captured", (kind) => {
    const killStored = "two";
    const asked = { kind, environment, killStored } as const;
    beforeEach(async () => expect(await start(asked)).toBe("killed"));

    test("it is refused, also by the process after that, until one goes back: then the tool runs again", async () => {
      const asks = server.requests.length;
      for (let time = 0; time < 2; time++) {
        const { refused, log } = await resumed(asked);
        expect(refused?.code).toBe("PAIR_DIVERGED");
        expect(log).toEqual(["one"]);
      }
      expect(server.requests).toHaveLength(asks);
      const told = await resumed({ ...asked, choice: "back" });
      expect(told.refused?.hint).toMatch(/^Rewind the thread to c1: /);
      expectWhole(told);
    });

    test("or goes on with the files as they were left", async () => {
      const told = await resumed({ ...asked, choice: "files" });
      expect(told.refused?.hint).toMatch(/rewind to c\d+ with scope "environment"/);
      expect(told.log).toEqual(texts());
      for (const text of texts()) expect(toldLast()).toContain(`noted ${text}`);
    });

    test("or goes on with what is there, as was said", async () => {
      const told = await resumed({ ...asked, choice: "stay" });
      expect(told.log).toEqual(["one", "three"]);
    });
  });

  test.each(["langchain", "langgraph"])("%s: a new message of the person changes nothing of that", async (kind) => {
    const asked = { kind, environment, killStored: "two" } as const;
    expect(await start(asked)).toBe("killed");
    const says = "and more";
    for (let time = 0; time < 2; time++)
      expect((await resumed({ ...asked, says })).refused?.code).toBe("PAIR_DIVERGED");
    const told = await resumed({ ...asked, choice: "back" });
    expectWhole(told);
    expect(toldLast()).toContain(says);
  });

  // Of a tool that is not wrapped nothing is recorded.
  test.each(keep.filter((kind) => !kind.includes("bare")))(
    "%s: what nothing takes back is done once, and told behind the way back",
    async (kind) => {
      plan = [["one"], ["send two"], ["three"]];
      const asked = { kind, environment, killStored: "send two", strict: true } as const;
      expect(await start(asked)).toBe("killed");
      const told = await resumed({ ...asked, choice: "back" });
      expect(told.refused?.code).toBe("PAIR_DIVERGED");
      expect(told.refused?.hint).toMatch(/^Rewind the thread to c1, with `crossEffects`: /);
      expect(readFileSync(join(base, "sent.txt"), "utf8")).toBe("send two\n");
    },
  );

  test.each(["chat", "responses", "ai-sdk", "agents"])(
    "%s: what nothing takes back is not done again",
    async (kind) => {
      plan = [["one"], ["send two"], ["three"]];
      expect(await start({ kind, environment }, { AGENTREWIND_FAULT: "checkpoint.before-commit:3" })).toBe("killed");
      await resumed({ kind, environment });
      expect(readFileSync(join(base, "sent.txt"), "utf8")).toBe("send two\n");
    },
  );

  test.each(["langchain", "langgraph", "deepagents"])(
    "%s: a tool had ended and one beside it had not: the one runs again, and the conversation that knows the other is refused",
    async (kind) => {
      plan = [["one"], ["two", "late three"], ["four"]];
      const asked = { kind, environment, killStored: "pending two" } as const;
      expect(await start(asked)).toBe("killed");
      expect((await resumed(asked)).refused?.code).toBe("PAIR_DIVERGED");
      const told = await resumed({ ...asked, choice: "back" });
      expect(told.refused?.code).toBe("PAIR_DIVERGED");
      expectWhole(told);
    },
  );

  test.each([{ killIn: "two" }, { killStored: "two" }])(
    "a subagent that has results, none of which a pair holds, is not gone on with: its task begins again (%o)",
    async (moment) => {
      delegates = true;
      const asked = { kind: "deepagents subagent", environment, ...moment } as const;
      expect(await start(asked)).toBe("killed");
      const { refused, log } = await resumed(asked);
      expect([refused?.code, log]).toEqual(["PAIR_DIVERGED", [""]]);
      const told = await resumed({ ...asked, choice: "back" });
      expect(told.log).toEqual(texts());
    },
  );

  test("a subagent that has none begins again by itself", async () => {
    delegates = true;
    const asked = { kind: "deepagents subagent", environment, killIn: "one" } as const;
    expect(await start(asked)).toBe("killed");
    const told = await resumed(asked);
    expect([told.refused, told.log]).toEqual([null, texts()]);
  });

  test.each(["two", "pending two"])("nodes of one's own: their results are stored (%s)", async (killStored) => {
    plan = [["one"], ["two", "late three"], ["four"]];
    const asked = { kind: "nodes", environment, killStored } as const;
    expect(await start(asked)).toBe("killed");
    const { refused, log } = await resumed(asked);
    expect([refused?.code, log]).toEqual(["PAIR_DIVERGED", ["one"]]);
    const told = await resumed({ ...asked, choice: "files" });
    expect([...told.log].sort()).toEqual([...texts()].sort());
  });

  test("nodes of one's own: killed in one of them", async () => {
    const asked = { kind: "nodes", environment, killIn: "four" } as const;
    expect(await start(asked)).toBe("killed");
    expect((await resumed(asked)).log.at(-1)).toBe("four");
  });
});

describe("in a directory, whose files stay", () => {
  test.each([...keep, "chat", "responses", "ai-sdk"])(
    "%s: killed when the result is stored: nothing runs again",
    async (kind) => {
      const asked = { kind, environment: "directory", killStored: "two" } as const;
      expect(await start(asked)).toBe("killed");
      const told = await resumed(asked);
      expect(told.refused).toBeNull();
      expectWhole(told);
      expect(existsSync(join(base, "work", "log.txt"))).toBe(true);
    },
  );
});
