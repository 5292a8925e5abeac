// deepagents over the environment: files and commands go back with the conversation, todos, the files channel and the summary.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { MemorySaver } from "@langchain/langgraph";
import { rewindBackend } from "agentrewind/deepagents";
import { rewindMiddleware } from "agentrewind/langchain";
import { createDeepAgent, createSummarizationMiddleware, StateBackend } from "deepagents";
import { todoListMiddleware } from "langchain";
import { afterEach, expect, test } from "vitest";
import {
  allText,
  call,
  calls,
  chatModel,
  idBefore,
  lastText,
  onThread,
  openScene,
  run,
  type Scene,
  start,
  stored,
} from "../langchain/harness.ts";
import { execute, makeDeepAgent, write } from "./harness.ts";

let scene: Scene;
afterEach(() => scene.close());

/** Without the system prompts, which name tools and files too. */
const said = (request: { messages: readonly { role: string }[] }): string =>
  allText({ ...request, messages: request.messages.filter(({ role }) => role !== "system") } as never);

test("a wrong step with files and a command is taken back, and the same run goes on", async () => {
  scene = await openScene((request) => {
    const all = said(request);
    if (all.includes("You are back at")) {
      if (all.includes("better.txt'")) return { content: "all done" };
      return calls(write("/better.txt", "ok"));
    }
    if (all.includes("Checkpoints, newest first")) {
      return calls(call("rewind", { checkpoint: idBefore(all, "rm good.txt"), lesson: "good.txt is needed" }));
    }
    if (all.includes("succeeded with exit code 0")) return calls(call("list_checkpoints", {}));
    if (all.includes("good.txt'")) return calls(execute("rm good.txt; echo spoilt > bad.txt; pwd"));
    return calls(write("/good.txt", "yes"));
  });
  const state = await run(makeDeepAgent(scene, { checkpointer: new MemorySaver() }), start, onThread("t"));
  expect(lastText(state)).toBe("all done");
  expect(scene.files()).toEqual(["better.txt", "good.txt"]);
  const names = scene.server.requests[0]?.tools?.map((one) => one.function.name) ?? [];
  for (const name of ["ls", "read_file", "write_file", "edit_file", "delete", "glob", "grep", "execute", "rewind"]) {
    expect(names).toContain(name);
  }
  expect(said(scene.server.requests.at(-1) as never)).not.toContain("succeeded with exit code 0");
});

test("case 78: after a rewind the agent makes all of its three calls", async () => {
  scene = await openScene((request) => {
    const all = said(request);
    if (!all.includes("You are back at")) {
      return calls(
        all.includes("bad.txt'") ? call("rewind", { checkpoint: "c0", lesson: "no" }) : write("/bad.txt", "x"),
      );
    }
    const next = [1, 2, 3].find((number) => !all.includes(`/${number}.txt'`));
    return next === undefined ? { content: "end" } : calls(write(`/${next}.txt`, "x"));
  });
  const state = await run(makeDeepAgent(scene), start, onThread("t"));
  expect(lastText(state)).toBe("end");
  expect(scene.files()).toEqual(["1.txt", "2.txt", "3.txt"]);
});

test("case 73: the todo list is as it was", async () => {
  const todo = (content: string, status: string) => ({ content, status });
  scene = await openScene((request) => {
    const all = said(request);
    if (all.includes("You are back at")) return { content: "end" };
    if (all.includes("second")) return calls(call("rewind", { checkpoint: "c1", lesson: "no" }));
    if (all.includes("first")) {
      return calls(call("write_todos", { todos: [todo("first", "completed"), todo("second", "pending")] }));
    }
    return calls(call("write_todos", { todos: [todo("first", "pending")] }));
  });
  const agent = makeDeepAgent(scene, { before: [todoListMiddleware()], checkpointer: new MemorySaver() });
  const state = await run(agent, start, onThread("t"));
  expect(lastText(state)).toBe("end");
  expect((await stored(agent, onThread("t"))).values.todos).toEqual([todo("first", "pending")]);
});

test.each(["before", "after"])(
  "a rewind to %s a summary: the model sees what it saw then, and the lesson",
  async (where) => {
    let turns = 0;
    scene = await openScene((request) => {
      const all = said(request);
      if (request.tools === undefined) return { content: "SUMMARY" };
      if (all.includes("You are back at")) return { content: "end" };
      turns++;
      if (turns <= 8) return calls(write(`/f${turns}.txt`, "x"));
      return calls(call("rewind", { checkpoint: where === "before" ? "c2" : "c7", lesson: "the lesson" }));
    });
    const model = chatModel(scene.server);
    const summaries = createSummarizationMiddleware({
      model,
      backend: rewindBackend(scene.rewind),
      trigger: { type: "messages", value: 10 },
      keep: { type: "messages", value: 4 },
    });
    const agent = makeDeepAgent(scene, { before: [summaries], checkpointer: new MemorySaver() });
    const state = await run(agent, start, onThread("t"));
    expect(lastText(state)).toBe("end");
    const last = said(scene.server.requests.at(-1) as never);
    expect(last).toContain("the lesson");
    expect(last.includes("SUMMARY")).toBe(where === "after");
    expect(last.includes("/f1.txt")).toBe(where === "before");
    expect(last).not.toContain("/f8.txt'");
    const files = scene.files().filter((name) => name.startsWith("f"));
    expect(files).toEqual((where === "before" ? [1, 2] : [1, 2, 3, 4, 5, 6, 7]).map((number) => `f${number}.txt`));
  },
);

test("files that deepagents keeps in its state go back with the messages", async () => {
  scene = await openScene((request) => {
    const all = said(request);
    if (all.includes("You are back at")) return { content: "end" };
    if (all.includes("bad.txt'")) return calls(call("rewind", { checkpoint: "c1", lesson: "no" }));
    return calls(write(all.includes("good.txt'") ? "/bad.txt" : "/good.txt", "x"));
  });
  const rw = rewindMiddleware(scene.rewind);
  const agent = rw.attach(
    createDeepAgent({ model: chatModel(scene.server), backend: new StateBackend(), middleware: [rw] }),
  );
  const state = await run(agent, start, onThread("t"));
  expect(lastText(state)).toBe("end");
  expect(Object.keys(state.files as object)).toEqual(["/good.txt"]);
});

test("a person's rewind beside the agent reaches a deep agent too", async () => {
  scene = await openScene((request) => {
    const all = said(request);
    if (all.includes("You are back at")) return { content: "taken over" };
    if (all.includes("next")) return { content: "too late" };
    return all.includes("a.txt'") ? { content: "first" } : calls(write("/a.txt", "x"));
  });
  const agent = makeDeepAgent(scene, { checkpointer: new MemorySaver() });
  await run(agent, start, onThread("t"));
  writeFileSync(join(scene.workspace, "mine.txt"), "x");
  await scene.rewind.thread("t").rewind({ to: "c0" });
  const state = await run(agent, { messages: [{ role: "user", content: "next" }] }, onThread("t"));
  expect(lastText(state)).toBe("taken over");
  expect(scene.files()).toEqual([]);
});

test("a person's rewind is taken over in the very call in which deepagents summarizes", async () => {
  scene = await openScene((request) => {
    const all = said(request);
    if (request.tools === undefined) return { content: "SUMMARY" };
    if (all.includes("and then")) return { content: "still here" };
    if (all.includes("You are back at")) return { content: "taken over" };
    const next = [1, 2, 3, 4, 5].find((number) => !all.includes(`/f${number}.txt'`));
    return next === undefined ? { content: "first" } : calls(write(`/f${next}.txt`, "x"));
  });
  const summaries = createSummarizationMiddleware({
    model: chatModel(scene.server),
    backend: rewindBackend(scene.rewind),
    trigger: { type: "messages", value: 13 },
    keep: { type: "messages", value: 4 },
  });
  const agent = makeDeepAgent(scene, { before: [summaries], checkpointer: new MemorySaver() });
  await run(agent, start, onThread("t"));
  await scene.rewind.thread("t").rewind({ to: "c2", lesson: "the lesson" });
  const user = (content: string) => ({ messages: [{ role: "user", content }] });
  expect(lastText(await run(agent, user("next"), onThread("t")))).toBe("taken over");
  expect(scene.server.requests.some((request) => request.tools === undefined)).toBe(true);
  expect(lastText(await run(agent, user("and then"), onThread("t")))).toBe("still here");
  const last = said(scene.server.requests.at(-1) as never);
  for (const part of ["go\n", "/f2.txt'", "the lesson", "next", "taken over"]) expect(last).toContain(part);
  for (const part of ["SUMMARY", "/f3.txt'"]) expect(last).not.toContain(part);
});
