// The agent's other state goes back with the pair: todos, the user's own channels, private ones; counters do not.
import { HumanMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { Command, MemorySaver, ReducedValue, StateSchema } from "@langchain/langgraph";
import { createMiddleware, modelCallLimitMiddleware, todoListMiddleware } from "langchain";
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
  type Script,
  start,
  texts,
  user,
  write,
} from "./harness.ts";

let scene: Scene;
afterEach(() => scene.close());

/** A tool that sets channels, for example {"note": "x"}. */
const setTool = tool(
  ({ values }: { values: Record<string, unknown> }, runtime: { toolCallId?: string }) =>
    new Command({
      update: {
        ...values,
        messages: [{ role: "tool", content: `set ${JSON.stringify(values)}`, tool_call_id: runtime.toolCallId }],
      },
    }),
  { name: "set", description: "Set channels.", schema: z.object({ values: z.record(z.string(), z.unknown()) }) },
);
const set = (values: Record<string, unknown>) => call("set", { values });

/** Sets `first`, then `second`, rewinds to between them, ends. */
const setTwice =
  (first: Record<string, unknown>, second: Record<string, unknown>): Script =>
  (_request, all) => {
    if (all.includes("You are back") || all.includes("Not done:")) return { content: "end" };
    if (all.includes(`set ${JSON.stringify(second)}`)) return calls(call("rewind", { checkpoint: "c1", lesson: "no" }));
    return calls(set(all.includes(`set ${JSON.stringify(first)}`) ? second : first));
  };

const stateSchema = new StateSchema({
  note: z.string().optional(),
  late: z.string().optional(),
  _hidden: z.string().optional(),
  log: new ReducedValue(
    z.array(z.string()).default(() => []),
    { inputSchema: z.array(z.string()), reducer: (old, more) => [...old, ...more] },
  ),
});

test("case 73: todos are those of the checkpoint again", async () => {
  const todos = (...done: string[]) => [
    { content: "one", status: done[0] },
    { content: "two", status: done[1] },
  ];
  scene = await openScene((_request, all) => {
    if (all.includes("You are back")) return { content: "end" };
    if (all.includes('"completed"')) return calls(call("rewind", { checkpoint: "c1", lesson: "not done" }));
    return calls(
      call("write_todos", {
        todos: all.includes("in_progress") ? todos("completed", "completed") : todos("in_progress", "pending"),
      }),
    );
  });
  const state = await run(makeAgent(scene, { before: [todoListMiddleware()] }), start);
  expect(lastText(state)).toBe("end");
  expect(state.todos).toEqual(todos("in_progress", "pending"));
});

test("LastValue, reducer and private channels go back; one first set after the checkpoint is unset again", async () => {
  const first = { note: "a", log: ["1"], _hidden: "x" };
  scene = await openScene(setTwice(first, { note: "b", late: "z", log: ["2"], _hidden: "y" }));
  const agent = makeAgent(scene, { stateSchema, tools: [setTool] as never, checkpointer: new MemorySaver() });
  const state = await run(agent, { ...start, note: "given" }, onThread("t"));
  expect(lastText(state)).toBe("end");
  const { values } = await (
    agent as unknown as { graph: { getState(c: unknown): Promise<{ values: object }> } }
  ).graph.getState(onThread("t"));
  expect(values).toMatchObject({ note: "a", log: ["1"], _hidden: "x" });
  expect((values as { late?: string }).late).toBeUndefined();
});

test("case 86: what was given at the start stays", async () => {
  scene = await openScene(setTwice({ note: "k1" }, { late: "k2" }));
  const schema = new StateSchema({
    tenant: z.string(),
    note: z.string().optional(),
    late: z.string().optional(),
  });
  const agent = makeAgent(scene, { stateSchema: schema, tools: [setTool] as never });
  const state = await run(agent, { ...start, tenant: "t1" });
  expect(state.tenant).toBe("t1");
  expect(state.note).toBe("k1");
  expect(state.late).toBeUndefined();
});

test("case 70: a private channel that holds a message is one again", async () => {
  const summarizer = createMiddleware({
    name: "Summarizer",
    stateSchema: z.object({ _event: z.object({ cutoff: z.number(), summary: z.instanceof(HumanMessage) }).optional() }),
    beforeModel: (state) =>
      state.messages.length === 3 || state.messages.length === 5
        ? { _event: { cutoff: state.messages.length, summary: new HumanMessage(`summary ${state.messages.length}`) } }
        : undefined,
  });
  scene = await openScene((_request, all) => {
    if (all.includes("You are back")) return { content: "end" };
    if (all.includes("wrote b")) return calls(call("rewind", { checkpoint: "c1", lesson: "no" }));
    return calls(write(all.includes("wrote a") ? "b" : "a", "x"));
  });
  const seen: unknown[] = [];
  const spy = createMiddleware({
    name: "Spy",
    stateSchema: z.object({ _event: z.any() }),
    beforeModel: (state) => void seen.push((state as { _event?: unknown })._event),
  });
  const state = await run(makeAgent(scene, { before: [summarizer, spy] }), start);
  expect(lastText(state)).toBe("end");
  const last = seen.at(-1) as { cutoff: number; summary: HumanMessage };
  expect(last.cutoff).toBe(3);
  expect(HumanMessage.isInstance(last.summary)).toBe(true);
  expect(last.summary.text).toBe("summary 3");
});

test("not attached: a differing channel refuses the rewind, with the line to add, and changes nothing", async () => {
  scene = await openScene((_request, all) => {
    if (all.includes("Not done:")) return { content: "end" };
    if (all.includes("set {")) return calls(call("rewind", { checkpoint: "c0", lesson: "no" }));
    return calls(write("a.txt", "x"), set({ note: "b" }));
  });
  const tools = [setTool, fileTool(scene)];
  const state = await run(makeAgent(scene, { stateSchema, tools: tools as never, attach: false }), start);
  expect(texts(state).join("\n")).toContain('The state "note" differs from the checkpoint');
  expect(texts(state).join("\n")).toContain("const agent = rw.attach(createAgent({ …, middleware: [rw] }))");
  expect(state.note).toBe("b");
  expect(scene.files()).toEqual(["a.txt"]);
});

test("not attached and no channel differs: the rewind is done", async () => {
  scene = await openScene((_request, all) => {
    if (all.includes("You are back")) return { content: "end" };
    if (all.includes("wrote a.txt")) return calls(call("rewind", { checkpoint: "c0", lesson: "no" }));
    return calls(write("a.txt", "x"));
  });
  expect(lastText(await run(makeAgent(scene, { attach: false }), start))).toBe("end");
  expect(scene.files()).toEqual([]);
});

test("call limits are not won back: a loop of rewinds ends", async () => {
  let step = 0;
  scene = await openScene(
    () => {
      step++;
      return calls(
        step % 2 === 0 ? call("rewind", { checkpoint: "c0", lesson: `again ${step}` }) : write(`f${step}`, "x"),
      );
    },
    { budget: { rewinds: 100, perCheckpoint: 100 } },
  );
  const limit = modelCallLimitMiddleware({ runLimit: 5, exitBehavior: "end" } as never);
  const state = await run(makeAgent(scene, { before: [limit] }), start);
  expect(scene.server.requests).toHaveLength(5);
  expect(scene.rewind.thread(scene.rewind.threads()[0] ?? "").lessons()).toHaveLength(2);
  expect(lastText(state)).toContain("limit");
});

test("case 87: what a rewound turn chose is not in force in the next one, also after a restart", async () => {
  scene = await openScene((_request, all) => {
    if (all.includes("who are you")) return { content: all.includes("You are B") ? "B" : "A" };
    if (all.includes("You are back")) return { content: "end" };
    if (all.includes("set {")) return calls(call("rewind", { checkpoint: "c0", lesson: "stay" }));
    return calls(set({ note: "B" }));
  });
  const route = createMiddleware({
    name: "Route",
    stateSchema: z.object({ note: z.string().optional() }),
    wrapModelCall: (request, handler) =>
      handler({ ...request, systemPrompt: request.state.note === "B" ? "You are B" : "You are A" }),
  });
  const checkpointer = new MemorySaver();
  const agentOf = () => makeAgent(scene, { before: [route], tools: [setTool] as never, checkpointer });
  await run(agentOf(), start, onThread("t"));
  expect(lastText(await run(agentOf(), user("who are you"), onThread("t")))).toBe("A");
  await scene.reopen();
  expect(lastText(await run(agentOf(), user("who are you"), onThread("t")))).toBe("A");
});
