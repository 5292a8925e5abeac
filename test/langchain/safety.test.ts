// A person's work beside a LangChain agent: edits while the agent waits, rewinds that cannot be done, and those that would wait for themselves.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { tool } from "@langchain/core/tools";
import { Command, MemorySaver, StateSchema } from "@langchain/langgraph";
import { isRewindError } from "agentrewind";
import { humanInTheLoopMiddleware } from "langchain";
import { afterEach, expect, test } from "vitest";
import { z } from "zod";
import {
  call,
  calls,
  fileTool,
  lastText,
  makeAgent,
  onThread,
  openScene,
  run,
  type Scene,
  start,
  texts,
  user,
  write,
} from "./harness.ts";

let scene: Scene;
afterEach(() => scene.close());

const person = (name: string, text: string): void => writeFileSync(join(scene.workspace, name), text);

test("what a person changes while the agent waits for an answer is not the agent's", async () => {
  scene = await openScene((_request, all) => {
    if (all.includes("You are back")) return { content: "end" };
    return calls(
      all.includes("wrote a.txt") ? call("rewind", { checkpoint: "c0", lesson: "no" }) : write("a.txt", "x"),
    );
  });
  const pause = humanInTheLoopMiddleware({ interruptOn: { write_file: true } } as never);
  const agent = makeAgent(scene, { before: [pause], checkpointer: new MemorySaver() });
  expect(await run(agent, start, onThread("t"))).toHaveProperty("__interrupt__");
  person("mine.txt", "a person's");
  const answer = new Command({ resume: { decisions: [{ type: "approve" }] } });
  const state = await run(agent, answer, onThread("t"));
  expect(lastText(state)).toBe("end");
  expect(scene.files()).toEqual(["mine.txt"]);
  expect(texts(state).join("\n")).toContain("Kept, because somebody else changed them: mine.txt.");
});

test("also when the call is rejected and no tool runs", async () => {
  scene = await openScene((_request, all) => {
    if (all.includes("You are back")) return { content: "end" };
    if (all.includes("wrote b.txt")) return calls(call("rewind", { checkpoint: "c0", lesson: "no" }));
    return calls(write(all.includes("rejected") ? "b.txt" : "a.txt", "x"));
  });
  const pause = humanInTheLoopMiddleware({ interruptOn: { write_file: true } } as never);
  const agent = makeAgent(scene, { before: [pause], checkpointer: new MemorySaver() });
  await run(agent, start, onThread("t"));
  person("mine.txt", "a person's");
  const resume = (decision: unknown) => new Command({ resume: { decisions: [decision] } });
  await run(agent, resume({ type: "reject", message: "rejected" }), onThread("t"));
  const state = await run(agent, resume({ type: "approve" }), onThread("t"));
  expect(lastText(state)).toBe("end");
  expect(scene.files()).toEqual(["mine.txt"]);
});

test("a rewind that a tool awaits is refused, and says what to do", async () => {
  scene = await openScene((_request, all) =>
    all.includes("INSIDE_TOOL") ? { content: "end" } : calls(call("selfish", {})),
  );
  const selfish = tool(
    async () => {
      const thread = scene.rewind.thread("t");
      const told: string[] = [];
      for (const work of [() => thread.rewind({ to: "c0" }), () => thread.undo()]) {
        await new Promise((resolve) => setTimeout(resolve, 1));
        await work().catch((error: unknown) =>
          told.push(isRewindError(error) ? `${error.code} ${error.hint}` : "other"),
        );
      }
      return told.join("; ");
    },
    { name: "selfish", description: "Rewinds.", schema: z.object({}) },
  );
  const state = await run(makeAgent(scene, { tools: [selfish] as never }), start, onThread("t"));
  expect(lastText(state)).toBe("end");
  expect(
    texts(state)
      .join("\n")
      .match(/INSIDE_TOOL Return from the tool first/g),
  ).toHaveLength(2);
});

test("what a tool leaves running may rewind when the tool has ended", async () => {
  scene = await openScene((_request, all) => (all.includes("started") ? { content: "end" } : calls(call("later", {}))));
  let later: Promise<unknown> | undefined;
  const background = tool(
    () => {
      person("a.txt", "x");
      const ended = new Promise((resolve) => setTimeout(resolve, 300));
      later = ended.then(() => scene.rewind.thread("t").rewind({ to: "c0" }));
      return "started";
    },
    { name: "later", description: "Rewinds later.", schema: z.object({}) },
  );
  await run(makeAgent(scene, { tools: [background] as never }), start, onThread("t"));
  await later;
  expect(scene.files()).toEqual([]);
});

test("a rewind from outside that an agent could not take over is refused before anything moves", async () => {
  const set = tool(
    (_: unknown, runtime: { toolCallId?: string }) =>
      new Command({
        update: { note: "b", messages: [{ role: "tool", content: "set", tool_call_id: runtime.toolCallId }] },
      }),
    { name: "set", description: "Sets the note.", schema: z.object({}) },
  );
  scene = await openScene((_request, all) => {
    if (all.includes("more")) return { content: "more" };
    return all.includes("wrote a.txt") ? { content: "end" } : calls(write("a.txt", "x"), call("set", {}));
  });
  const stateSchema = new StateSchema({ note: z.string().default("a") });
  const agent = makeAgent(scene, {
    stateSchema,
    tools: [set, fileTool(scene)] as never,
    attach: false,
    checkpointer: new MemorySaver(),
  });
  expect(lastText(await run(agent, start, onThread("t")))).toBe("end");
  const thread = scene.rewind.thread("t");
  await expect(thread.rewind({ to: "c0" })).rejects.toMatchObject({
    code: "NOT_ATTACHED",
    details: { channels: ["note"] },
  });
  expect(scene.files()).toEqual(["a.txt"]);
  expect(thread.head).toBe("c1");
  expect(lastText(await run(agent, user("more"), onThread("t")))).toBe("more");
  await thread.rewind({ to: "c0", scope: "environment" });
  expect(scene.files()).toEqual([]);
});
