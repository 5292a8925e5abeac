// The parts of the demo alone: the trap, the scripted model's decisions, the tools, the digest.
import { exec } from "node:child_process";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ChatRequest, Message, Reply } from "agentrewind/conformance";
import { startModelServer } from "agentrewind/conformance";
import { ToolMessage } from "langchain";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { readTree } from "../examples/demo/digest.ts";
import { changedLines } from "../examples/demo/line-diff.ts";
import { createModel } from "../examples/demo/model.ts";
import { decide } from "../examples/demo/script.ts";
import { createTools, type Workspace } from "../examples/demo/tools.ts";
import { createRepository, suitePasses } from "../examples/demo/workspace.ts";
import { checkRequest } from "../src/conformance/model-server/check.ts";

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "agentrewind-test-"));
});

afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

function workspaceAt(root: string): Workspace {
  return {
    exec: (command, { env }) =>
      new Promise((resolve) => {
        exec(command, { cwd: root, env: { ...process.env, ...env } }, (error, stdout, stderr) => {
          resolve({
            exitCode: error === null ? 0 : (error.code ?? null),
            signal: null,
            stdout,
            stderr,
            timedOut: false,
          });
        });
      }),
    readFile: (path) => readFile(join(root, path)),
    writeFile: (path, data) => writeFile(join(root, path), data),
  };
}

/** Calls a tool as an agent does and returns the text of its answer. */
async function use(root: string, name: string, args: Record<string, unknown>): Promise<ToolMessage> {
  const found = createTools(workspaceAt(root)).find((one) => one.name === name);
  const call = { name, args, id: "call_1", type: "tool_call" as const };
  const answer: unknown = await (found as { invoke(call: object, config: object): Promise<unknown> }).invoke(call, {
    toolCallId: "call_1",
  });
  if (!ToolMessage.isInstance(answer)) throw new Error(`${name} gave no tool message`);
  return answer;
}

describe("the trap", () => {
  const run = async (command: string) => (await use(folder, "bash", { command })).text;

  async function fixSource(): Promise<void> {
    const { toolCalls = [] } = decide(
      request([lessonMessage(), ...asked("read_file", { path: source }, read(source))]),
    );
    await use(folder, "edit_file", toolCalls[0]?.args as Record<string, unknown>);
  }

  beforeEach(() => createRepository(folder));

  test("at first the suite is red because of the notation, and the export is the bank's", async () => {
    const output = await run("npm test");
    expect(output).toMatch(/^exit code 1\n/);
    expect(output).toContain("bad amount");
    expect(output).not.toContain("not the file that the bank sent");
    expect(suitePasses(folder)).toBe(false);
  });

  test("the advised command makes it red in another way, for good", async () => {
    expect(await run("npm run normalize")).toMatch(/^exit code 0\n/);
    const output = await run("npm test");
    expect(output).toMatch(/^exit code 1\n/);
    expect(output).not.toContain("bad amount");
    expect(output).toContain("not the file that the bank sent");
    await fixSource();
    expect(suitePasses(folder)).toBe(false);
  });

  test("git neither sees the damage nor can undo it", async () => {
    await run("npm run normalize");
    expect(await run("git status --porcelain")).toBe("exit code 0");
    expect(await run("git checkout -- . && git stash --include-untracked")).toMatch(/^exit code 0\n/);
    expect(readFileSync(join(folder, "data/export.csv"), "utf8")).not.toContain("1.420,35");
  });

  test("the other way makes it green", async () => {
    await fixSource();
    expect(await run("npm test")).toMatch(/^exit code 0\n/);
    expect(suitePasses(folder)).toBe(true);
  });

  test("the verdict does not believe tests that were edited", async () => {
    rmSync(join(folder, "test/export.test.js"));
    writeFileSync(join(folder, "test/settle.test.js"), "");
    expect(await run("npm test")).toMatch(/^exit code 0\n/);
    expect(suitePasses(folder)).toBe(false);
  });

  function read(path: string): string {
    return readFileSync(join(folder, path), "utf8");
  }
});

const source = "src/amount.js";
const tools = ["bash", "read_file", "edit_file", "list_checkpoints", "rewind", "checkpoint"].map((name) => ({
  type: "function" as const,
  function: { name },
}));

let ids = 0;

function request(messages: readonly Message[]): ChatRequest {
  const body = {
    model: "scripted",
    messages: [{ role: "user" as const, content: "Make it green." }, ...messages],
    tools,
  };
  expect(checkRequest(body)).toEqual({ request: body });
  return body;
}

/** An assistant message with one call, and its result. */
function asked(name: string, args: Record<string, unknown>, content: string): Message[] {
  const id = `call_${ids++}`;
  return [
    { role: "assistant", tool_calls: [{ id, type: "function", function: { name, arguments: JSON.stringify(args) } }] },
    { role: "tool", tool_call_id: id, content },
  ];
}

function lessonMessage(): Message {
  const instead = `Instead: edit ${source} so that parseAmount reads both notations.`;
  return { role: "user", content: `You are back at c2, before: bash.\n\nLessons so far, newest first:\n1. ${instead}` };
}

describe("the scripted model", () => {
  const red = asked("bash", { command: "npm test" }, 'exit code 1\nError: bad amount "1.420,35"');
  const readme = asked("read_file", { path: "README.md" }, "Run `npm run normalize`, then `npm test`.");
  const code = asked("read_file", { path: source }, readFileSync(`examples/demo/repo/${source}`, "utf8"));
  const fallen = asked("bash", { command: "npm run normalize" }, "exit code 0\nnormalized 15 rows");
  const damaged = asked(
    "bash",
    { command: "npm test" },
    "exit code 1\ndata/export.csv is not the file that the bank sent",
  );
  const toTrap = [...red, ...readme, ...code];
  const noticed = [...toTrap, ...fallen, ...damaged];
  const list = [
    "Checkpoints, newest first.",
    "c14 [turn 5] now",
    'c13 [turn 4] before: bash {"command":"npm test"} -> "exit code 1"',
    'c11 [turn 3] before: bash {"command":"npm run normalize"} -> "exit code 0"; files changed: data/export.csv',
    'c9 [turn 2] before: read_file {"path":"README.md"} -> "Run `npm run normalize`"',
    'c2 [turn 1] before: bash {"command":"npm run normalize"} -> "exit code 0"',
  ].join("\n");

  const next = (messages: readonly Message[]): Reply => decide(request(messages));
  const calls = (messages: readonly Message[]) => next(messages).toolCalls?.map(({ name, args }) => [name, args]);

  test("runs the suite, reads, falls into the trap, and runs the suite again", () => {
    expect(calls([])).toEqual([["bash", { command: "npm test" }]]);
    expect(calls(red)).toEqual([
      ["read_file", { path: "README.md" }],
      ["read_file", { path: source }],
    ]);
    expect(calls(toTrap)).toEqual([["bash", { command: "npm run normalize" }]]);
    expect(calls([...toTrap, ...fallen])).toEqual([["bash", { command: "npm test" }]]);
  });

  test("asks for the checkpoints only when a check shows the damage", () => {
    expect(calls(noticed)).toEqual([["list_checkpoints", {}]]);
    const otherwise = asked("bash", { command: "npm test" }, "exit code 1\nsomething else");
    expect(next([...toTrap, ...fallen, ...otherwise]).content).toMatch(/could not/);
  });

  test("takes the id from the newest line whose action is the trap", () => {
    const [[name, args] = []] = calls([...noticed, ...asked("list_checkpoints", {}, list)]) ?? [];
    expect(name).toBe("rewind");
    expect(args).toMatchObject({ checkpoint: "c11", lesson: expect.stringContaining(`Instead: edit ${source}`) });
    const without = list.split("\n").filter((line) => !line.includes('command":"npm run normalize'));
    expect(next([...noticed, ...asked("list_checkpoints", {}, without.join("\n"))]).content).toMatch(/could not/);
  });

  test("takes the other way only with the lesson in its context", () => {
    const back: Message = { role: "user", content: "You are back at c11, before: bash npm run normalize." };
    expect(calls([...toTrap, back])).toEqual([["bash", { command: "npm run normalize" }]]);
    expect(calls([...toTrap, lessonMessage()])?.[0]?.[0]).toBe("edit_file");
    expect(calls([...red, lessonMessage()])).toEqual([["read_file", { path: source }]]);
  });

  test("ends with what the suite says", () => {
    const edited = [...toTrap, lessonMessage(), ...asked("edit_file", { path: source }, `edited ${source}`)];
    expect(calls(edited)).toEqual([["bash", { command: "npm test" }]]);
    const green = asked("bash", { command: "npm test" }, "exit code 0\nℹ pass 14\nℹ fail 0");
    expect(next([...edited, ...green])).toEqual({ content: expect.stringContaining("green: 14 tests pass") });
    expect(next([...edited, ...damaged])).toEqual({ content: expect.stringContaining("could not") });
  });

  test("gives up when a rewind is refused", () => {
    const refused = asked("rewind", { checkpoint: "c11", lesson: "x" }, "Not done: the budget is spent.");
    const { content, toolCalls } = next([...noticed, ...asked("list_checkpoints", {}, list), ...refused]);
    expect(content).toContain("the budget is spent");
    expect(toolCalls).toBeUndefined();
  });

  test("answers the same request in the same way, and none without its tools", () => {
    expect(next(noticed)).toEqual(next(noticed));
    expect(() => decide({ model: "scripted", messages: [{ role: "user", content: "x" }] })).toThrow(/no tool bash/);
  });
});

describe("the model", () => {
  afterEach(() => {
    vi.unstubAllEnvs();
  });

  test("with a key it is the one that the environment names", async () => {
    await using server = await startDisposable();
    vi.stubEnv("OPENAI_API_KEY", "key");
    vi.stubEnv("OPENAI_BASE_URL", server.baseUrl);
    vi.stubEnv("OPENAI_MODEL", "some-model");
    await using model = await createModel({ latencyMs: 0, scripted: false });
    expect(model.name).toBe("some-model");
    expect(model.server).toBeUndefined();
    expect((await model.chat.invoke("hello")).text).toBe("real");
    expect(server.requests[0]?.model).toBe("some-model");
  });

  test("without a key it is the scripted one, on loopback", async () => {
    vi.stubEnv("OPENAI_API_KEY", "");
    vi.stubEnv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1");
    await using model = await createModel({ latencyMs: 0, scripted: false });
    expect(model.name).toBe("scripted");
    const reply = await model.chat.bindTools(tools).invoke("Make it green.");
    expect(reply.tool_calls).toMatchObject([{ name: "bash", args: { command: "npm test" } }]);
    expect(model.server?.requests).toHaveLength(1);
  });

  async function startDisposable() {
    const server = await startModelServer({ decide: () => ({ content: "real" }), latencyMs: 0 });
    return { ...server, [Symbol.asyncDispose]: server.close };
  }
});

describe("the tools", () => {
  test("bash tells the exit code and both outputs, bounded", async () => {
    expect((await use(folder, "bash", { command: "echo out; echo err >&2; exit 3" })).text).toBe(
      "exit code 3\nout\nerr",
    );
    const long = (await use(folder, "bash", { command: "yes | head -c 100000" })).text;
    expect(long.length).toBeLessThan(13_000);
    expect(long).toContain("characters left out");
  });

  test("edit_file replaces one exact piece, and says why not", async () => {
    writeFileSync(join(folder, "a.txt"), "one $& two two");
    expect((await use(folder, "edit_file", { path: "a.txt", old: "one", new: "$&" })).text).toBe("edited a.txt");
    expect(readFileSync(join(folder, "a.txt"), "utf8")).toBe("$& $& two two");
    const refused = await use(folder, "edit_file", { path: "a.txt", old: "two", new: "2" });
    expect(refused).toMatchObject({ status: "error", content: expect.stringContaining("occurs 2 times") });
  });

  test("read_file returns text, and a failure that the model can read", async () => {
    writeFileSync(join(folder, "a.txt"), "");
    expect((await use(folder, "read_file", { path: "a.txt" })).text).toBe("(the file is empty)");
    expect(await use(folder, "read_file", { path: "none.txt" })).toMatchObject({
      status: "error",
      content: expect.stringContaining("no such file"),
    });
  });
});

describe("the digest", () => {
  const digest = () => readTree(folder).digest;

  beforeEach(() => {
    mkdirSync(join(folder, "d/empty"), { recursive: true });
    writeFileSync(join(folder, "d/a"), "text");
    utimesSync(join(folder, "d/a"), 5, 5);
    symlinkSync("a", join(folder, "d/link"));
    writeFileSync(Buffer.concat([Buffer.from(`${folder}/`), Buffer.from([0xff, 0x0a])]), "");
  });

  test.each<[string, () => void]>([
    [
      "content alone",
      () => {
        writeFileSync(join(folder, "d/a"), "texT");
        utimesSync(join(folder, "d/a"), 5, 5);
      },
    ],
    ["a mode", () => chmodSync(join(folder, "d/a"), 0o600)],
    ["a time", () => utimesSync(join(folder, "d/a"), 1, 1)],
    ["the time of a directory", () => utimesSync(join(folder, "d"), 1, 1)],
    ["an empty directory", () => rmSync(join(folder, "d/empty"), { recursive: true })],
    [
      "a link's target",
      () => {
        rmSync(join(folder, "d/link"));
        symlinkSync("b", join(folder, "d/link"));
      },
    ],
    ["a name of any bytes", () => rmSync(Buffer.concat([Buffer.from(`${folder}/`), Buffer.from([0xff, 0x0a])]))],
  ])("changes with %s", (_, change) => {
    const before = digest();
    expect(digest()).toBe(before);
    change();
    expect(digest()).not.toBe(before);
  });
});

test("the line diff names what was left out and what came in", () => {
  expect(changedLines("a\nb\nc\n", "a\nc\nd\n")).toEqual([
    { sign: "-", line: "b" },
    { sign: "+", line: "d" },
  ]);
  expect(changedLines("same", "same")).toEqual([]);
});
