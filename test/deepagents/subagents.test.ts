// Subagents share the environment; rewinding is the main agent's, and a rewind ends what they do.
import { execFile } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { tool } from "@langchain/core/tools";
import { MemorySaver } from "@langchain/langgraph";
import { rewindBackend } from "agentrewind/deepagents";
import { afterEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { commandFile } from "../helpers/library.ts";
import { codeOf } from "../helpers/workspace.ts";
import {
  allText,
  call,
  calls,
  lastText,
  occurrences,
  onThread,
  openScene,
  run,
  type Scene,
  start,
  textOfMessage,
  texts,
} from "../langchain/harness.ts";
import { execute, makeDeepAgent, task, write } from "./harness.ts";

let scene: Scene;
afterEach(() => scene.close());

const rewindTools = ["rewind", "list_checkpoints", "checkpoint"];
const namesIn = (request: { tools?: readonly { function: { name: string } }[] }): string[] =>
  (request.tools ?? []).map((one) => one.function.name);
const said = (request: { messages: readonly { role: string }[] }): string =>
  allText({ ...request, messages: request.messages.filter(({ role }) => role !== "system") } as never);

/** The task of the subagent that asks; undefined for the main agent. */
const subtaskIn = (request: { messages: readonly { role: string }[] }): string | undefined =>
  request.messages
    .filter(({ role }) => role === "user")
    .map((message) => /SUB\w+$/.exec(textOfMessage(message as never))?.[0])
    .find((found) => found !== undefined);

const worker = { name: "worker", description: "Works.", systemPrompt: "WORKER" };
const fork = { name: "fork", description: "Works on.", mode: "fork" as const };

test.each([
  ["isolated", "worker"],
  ["general-purpose", "general-purpose"],
  ["forked", "fork"],
])(
  "a subagent (%s) has no rewind tools, works in the main agent's files, and is taken back as a whole",
  async (_, name) => {
    scene = await openScene((request) => {
      const all = said(request);
      if (subtaskIn(request) !== undefined) {
        if (all.includes("sub.txt'")) return { content: "sub done" };
        expect(namesIn(request).filter((one) => rewindTools.includes(one))).toEqual([]);
        expect(scene.files()).toEqual(["main.txt"]);
        return calls(write("/sub.txt", "x"), execute("echo spoilt > main.txt"));
      }
      if (all.includes("You are back at")) return { content: "end" };
      if (all.includes("sub done")) return calls(call("rewind", { checkpoint: "c1", lesson: "do it yourself" }));
      if (all.includes("main.txt'")) return calls(task("SUBTASK", name));
      return calls(write("/main.txt", "mine"));
    });
    const agent = makeDeepAgent(scene, { subagents: [worker, fork] as never, checkpointer: new MemorySaver() });
    const state = await run(agent, start, onThread("t"));
    expect(lastText(state)).toBe("end");
    expect(scene.files()).toEqual(["main.txt"]);
    expect(Buffer.from(await scene.rewind.environment.readFile("main.txt")).toString()).toBe("mine");
    expect(scene.rewind.threads()).toEqual(["t"]);
  },
);

test("a subagent that calls rewind all the same is told why not, and nothing moves", async () => {
  scene = await openScene((request) => {
    const all = said(request);
    if (subtaskIn(request) !== undefined) {
      if (all.includes("A subagent cannot rewind")) return { content: "sub done" };
      return calls(call("rewind", { checkpoint: "c0", lesson: "mine" }));
    }
    if (all.includes("sub done")) return { content: "end" };
    return calls(all.includes("main.txt'") ? task("SUBTASK", "fork") : write("/main.txt", "mine"));
  });
  const agent = makeDeepAgent(scene, { subagents: [fork] as never });
  expect(lastText(await run(agent, start, onThread("t")))).toBe("end");
  expect(scene.files()).toEqual(["main.txt"]);
  expect(scene.rewind.thread("t").lessons()).toEqual([]);
});

test("subagents beside each other share the files, and one rewind takes back both", async () => {
  scene = await openScene((request) => {
    const all = said(request);
    const own = subtaskIn(request)?.slice(-1);
    if (own !== undefined) {
      return all.includes(`sub${own}.txt'`) ? { content: `done ${own}` } : calls(write(`/sub${own}.txt`, "x"));
    }
    if (all.includes("You are back at")) return { content: "end" };
    if (all.includes("done 1")) return calls(call("rewind", { checkpoint: "c0", lesson: "no" }));
    return calls(task("SUB1", "worker"), task("SUB2", "worker"));
  });
  const state = await run(makeDeepAgent(scene, { subagents: [worker] as never }), start, onThread("t"));
  expect(lastText(state)).toBe("end");
  expect(scene.files()).toEqual([]);
});

describe.each(["worker", "fork"])("a rewind while a subagent (%s) runs", (name) => {
  /** A subagent that is never done by itself: it goes on writing files, each after a model call. Resolves in its midst. */
  async function begin(act: (count: number) => ReturnType<typeof call>) {
    let begun = (): void => {};
    const running = new Promise<void>((resolve) => {
      begun = resolve;
    });
    scene = await openScene(
      (request) => {
        const all = said(request);
        if (subtaskIn(request) !== undefined) {
          const count = occurrences(all, "Successfully wrote to '/sub") + 1;
          if (count === 3) begun();
          return calls(act(count));
        }
        if (all.includes("You are back at")) return { content: "end" };
        return calls(all.includes("main.txt'") ? task("SUBTASK", name) : write("/main.txt", "mine"));
      },
      { latencyMs: 30 },
    );
    const agent = makeDeepAgent(scene, { subagents: [worker, fork] as never, checkpointer: new MemorySaver() });
    const ended = run(agent, start, onThread("t"));
    await running;
    return { ended };
  }

  async function expectEnded(ended: ReturnType<typeof run>): Promise<void> {
    const state = await ended;
    expect(lastText(state)).toBe("end");
    expect(texts(state).join("\n")).not.toContain("/sub");
    const asked = scene.server.requests.length;
    await sleep(300);
    expect(scene.files()).toEqual([]);
    expect(scene.server.requests.length).toBe(asked);
  }

  test("by a program, while its model thinks: it ends, its late results are dropped, the run goes on", async () => {
    const { ended } = await begin((count) => write(`/sub${count}.txt`, "x"));
    const { left } = await scene.rewind.thread("t").rewind({ to: "c0" });
    expect(left?.id).not.toBe("c0");
    await expectEnded(ended);
  });

  test("by a program, while its command runs: the command is ended too", async () => {
    const { ended } = await begin((count) =>
      count < 3 ? write(`/sub${count}.txt`, "x") : execute("touch begun; sleep 30; touch late.txt"),
    );
    while (!scene.files().includes("begun")) await sleep(5);
    await scene.rewind.thread("t").rewind({ to: "c0" });
    await expectEnded(ended);
  });

  test("by the command, which does not wait for the subagent", async () => {
    const { ended } = await begin((count) => write(`/sub${count}.txt`, "x"));
    const place = ["--workspace", scene.workspace, "--store", scene.store, "--thread", "t"];
    await promisify(execFile)(process.execPath, [commandFile, ...place, "rewind", "c0"]);
    await expectEnded(ended);
  });

  test("a rewind that is refused ends nothing", async () => {
    let release = false;
    const { ended } = await begin((count) => (release ? call("ls", { path: "/" }) : write(`/sub${count}.txt`, "x")));
    expect(await codeOf(scene.rewind.thread("t").rewind({ to: "c77" }))).toBe("UNKNOWN_CHECKPOINT");
    expect(await codeOf(scene.rewind.thread("t").undo())).toBe("NOTHING_TO_UNDO");
    const files = scene.files().length;
    while (scene.files().length < files + 2) await sleep(5);
    release = true;
    await scene.rewind.thread("t").rewind({ to: "c0" });
    await expectEnded(ended);
  });
});

test("what a subagent that was ended still tries is refused by the backend", async () => {
  let late: Promise<unknown> | undefined;
  let begun = (): void => {};
  const running = new Promise<void>((resolve) => {
    begun = resolve;
  });
  const stubborn = tool(
    () => {
      const backend = rewindBackend(scene.rewind);
      begun();
      late = sleep(200).then(async () => [await backend.write("/late.txt", "x"), await backend.ls("/")]);
      return late.then(() => "late");
    },
    { name: "stubborn", description: "Takes no notice of signals.", schema: z.object({}) },
  );
  scene = await openScene((request) => {
    const all = said(request);
    if (subtaskIn(request) !== undefined) return calls(call("stubborn", {}));
    if (all.includes("You are back at")) return { content: "end" };
    return calls(task("SUBTASK", "worker"));
  });
  const agent = makeDeepAgent(scene, { subagents: [{ ...worker, tools: [stubborn] }] as never });
  const ended = run(agent, start, onThread("t"));
  await running;
  await scene.rewind.thread("t").rewind({ to: "c0" });
  expect(lastText(await ended)).toBe("end");
  for (const one of (await late) as { error?: string }[])
    expect(one.error).toContain("before the conversation was rewound");
  expect(scene.files()).toEqual([]);
});
