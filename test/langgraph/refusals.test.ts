// What is refused, with a stable code, and when: before anything is done that nobody could take back.
import { AIMessage, ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { END, MemorySaver, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { ToolNode } from "@langchain/langgraph/prebuilt";
import { type RewindError, refusalText } from "agentrewind";
import { rewindCheckpointer, rewindGraph } from "agentrewind/langgraph";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { chatModel } from "../langchain/harness.ts";
import {
  afterModel,
  call,
  calls,
  durabilities,
  fileTool,
  lastText,
  makeGraph,
  onThread,
  openScene,
  pointAt,
  run,
  type Scene,
  start,
  texts,
  write,
} from "./harness.ts";

let scene: Scene;
let decide: (all: string) => ReturnType<typeof calls>;
beforeEach(async () => {
  scene = await openScene((_request, all) => decide(all));
  decide = (all) => (all.includes("wrote") ? { content: "end" } : calls(write("a.txt", "1")));
});
afterEach(() => scene.close());

const config = onThread("t");

describe.each(durabilities)("durability %s", (durability) => {
  function ungated(prepared: boolean, checkpointer = rewindCheckpointer(new MemorySaver(), scene.rewind)) {
    const rg = prepared ? rewindGraph(scene.rewind) : undefined;
    const model = chatModel(scene.server).bindTools([fileTool(scene)]);
    const ask = async (state: typeof MessagesAnnotation.State) => ({ messages: [await model.invoke(state.messages)] });
    return new StateGraph(MessagesAnnotation)
      .addNode("agent", rg?.modelNode(ask) ?? ask)
      .addNode("tools", new ToolNode([fileTool(scene)]))
      .addEdge(START, "agent")
      .addConditionalEdges("agent", afterModel, ["tools", END])
      .addEdge("tools", "agent")
      .compile({ checkpointer });
  }

  test("a wrapped checkpointer alone: GATE_MISSING before the first tool", async () => {
    await expect(run(ungated(false), start, { ...config, durability })).rejects.toMatchObject({ code: "GATE_MISSING" });
    expect(scene.files()).toEqual([]);
    expect(scene.server.requests).toHaveLength(1);
  });

  test.each([true, false])(
    "beside another graph of the same workspace that has gates, with a model node: %s",
    async (prepared) => {
      const { app, rg } = makeGraph(scene);
      expect(lastText(await run(app, start, { ...onThread("other"), durability }))).toBe("end");
      const refusal = { code: "GATE_MISSING" };
      await expect(run(ungated(prepared), start, { ...config, durability })).rejects.toMatchObject(refusal);
      const shared = rewindCheckpointer(new MemorySaver(), scene.rewind);
      const gated = new StateGraph(MessagesAnnotation)
        .addNode("tools", rg.toolNode([fileTool(scene)]))
        .addEdge(START, "tools")
        .compile({ checkpointer: shared });
      rg.attach(gated);
      await expect(run(ungated(prepared, shared), start, { ...config, durability })).rejects.toMatchObject(refusal);
      expect(lastText(await run(app, start, { ...onThread("third"), durability }))).toBe("end");
    },
  );

  test("a node that answers a call before any tool has run is not taken for a tool without a gate", async () => {
    const rg = rewindGraph(scene.rewind);
    const model = chatModel(scene.server).bindTools([fileTool(scene)]);
    let asked = 0;
    decide = () => (++asked === 3 ? { content: "end" } : calls(write("a.txt", "1")));
    const review = ({ messages }: typeof MessagesAnnotation.State) => {
      const id = (messages.at(-1) as AIMessage).tool_calls?.[0]?.id as string;
      return { messages: [new ToolMessage({ tool_call_id: id, content: "not now" })] };
    };
    const app = rg.attach(
      new StateGraph(MessagesAnnotation)
        .addNode(
          "agent",
          rg.modelNode(async ({ messages }) => ({ messages: [await model.invoke(messages)] })),
        )
        .addNode("review", review)
        .addNode("tools", rg.toolNode([fileTool(scene)]))
        .addEdge(START, "agent")
        .addConditionalEdges("agent", (state) => (afterModel(state) === END ? END : asked === 1 ? "review" : "tools"), [
          "review",
          "tools",
          END,
        ])
        .addEdge("review", "agent")
        .addEdge("tools", "agent")
        .compile({ checkpointer: rewindCheckpointer(new MemorySaver(), scene.rewind) }),
    );
    expect(lastText(await run(app, start, { ...config, durability }))).toBe("end");
    expect(scene.files()).toEqual(["a.txt"]);
  });

  test("a model node and LangGraph's ToolNode: GATE_MISSING at the first tool, and the model is not asked again", async () => {
    await expect(run(ungated(true), start, { ...config, durability })).rejects.toMatchObject({ code: "GATE_MISSING" });
    expect(scene.server.requests).toHaveLength(1);
  });
});

test("a graph without tools needs no gate", async () => {
  const app = new StateGraph(MessagesAnnotation)
    .addNode("agent", () => ({ messages: [new AIMessage("hello")] }))
    .addEdge(START, "agent")
    .compile({ checkpointer: rewindCheckpointer(new MemorySaver(), scene.rewind) });
  expect(lastText(await run(app, start, config))).toBe("hello");
});

describe('durability "exit"', () => {
  test("with a wrapped checkpointer: DURABILITY_EXIT, nothing ran", async () => {
    const { app } = makeGraph(scene);
    await expect(run(app, start, { ...config, durability: "exit" })).rejects.toMatchObject({ code: "DURABILITY_EXIT" });
    expect(scene.files()).toEqual([]);
    expect(scene.server.requests).toHaveLength(0);
  });

  test("at the tools of a graph whose model node is its own", async () => {
    const rg = rewindGraph(scene.rewind);
    const model = chatModel(scene.server).bindTools([fileTool(scene)]);
    const app = rg.attach(
      new StateGraph(MessagesAnnotation)
        .addNode("agent", async (state) => ({ messages: [await model.invoke(state.messages)] }))
        .addNode("tools", rg.toolNode([fileTool(scene)]))
        .addEdge(START, "agent")
        .addConditionalEdges("agent", afterModel, ["tools", END])
        .addEdge("tools", "agent")
        .compile({ checkpointer: rewindCheckpointer(new MemorySaver(), scene.rewind) }),
    );
    await expect(run(app, start, { ...config, durability: "exit" })).rejects.toMatchObject({ code: "DURABILITY_EXIT" });
    expect(scene.files()).toEqual([]);
  });

  test("with a checkpointer that is not wrapped it works: the pairs are our own", async () => {
    const { app } = makeGraph(scene, { pair: false });
    expect(lastText(await run(app, start, { ...config, durability: "exit" }))).toBe("end");
  });
});

test("not attached: a rewind to where a channel differs is refused, and nothing moves", async () => {
  decide = (all) => {
    if (all.includes("Not done")) return { content: "refused" };
    return all.includes("wrote")
      ? calls(call("rewind", { checkpoint: "c0", lesson: "no" }))
      : calls(write("a.txt", "1"));
  };
  const { app } = makeGraph(scene, { attach: false });
  const state = await run(app, start, config);
  expect(lastText(state)).toBe("refused");
  expect(texts(state).join("\n")).toContain("rg.attach(graph.compile(");
  expect(scene.files()).toEqual(["a.txt"]);
});

test("messages in a channel that nobody named", async () => {
  const { app } = makeGraph(scene, { options: { messagesKey: "chat" } });
  await expect(run(app, start, config)).rejects.toThrow('rewindGraph: the state has no messages in a channel "chat"');
});

test("a rewind with siblings that is not admissible: every call is answered, none is run", async () => {
  decide = (all) =>
    all.includes("Not run")
      ? { content: "end" }
      : calls(call("rewind", { checkpoint: "c99", lesson: "x" }), write("sibling.txt", "1"), call("rewind", {}));
  const { app } = makeGraph(scene);
  const state = await run(app, start, config);
  expect(lastText(state)).toBe("end");
  expect(scene.files()).toEqual([]);
  expect(texts(state).join("\n")).toContain("There is no checkpoint c99");
});

test.each([
  ["only at the decision: the look before its tool makes up for it", 1, ["a.txt"]],
  ["at all of the step: going back there is refused", 3, ["a.txt", "b.txt"]],
] as const)("files that could not be captured %s", async (_title, times, files) => {
  decide = (all) =>
    all.includes("wrote b.txt")
      ? { content: "end" }
      : calls(write(all.includes("wrote a.txt") ? "b.txt" : "a.txt", "1"));
  const { app, rg } = makeGraph(scene);
  const { environment } = scene.rewind;
  const capture = environment.capture.bind(environment);
  let count = 0;
  environment.capture = (options) => {
    if (++count < 3 || count >= 3 + times) return capture(options);
    const failed = Promise.reject(new Error("the disk is away"));
    failed.catch(() => {});
    return { captured: failed, durable: failed } as never;
  };
  expect(lastText(await run(app, start, config))).toBe("end");
  const point = await pointAt(app, config, "agent", ({ values }) => values.messages.length === 3);
  const back = rg.checkout(point.config);
  if (times === 1) await back;
  else await expect(back).rejects.toMatchObject({ code: "UNKNOWN_CHECKPOINT" });
  expect(scene.files()).toEqual(files);
});

test("a step between two decisions holds the files alone", async () => {
  const rg = rewindGraph(scene.rewind);
  const app = rg.attach(
    new StateGraph(MessagesAnnotation)
      .addNode("one", async (_state, given) => {
        await rg.gate(given);
        await fileTool(scene).invoke({ path: "1", text: "x" });
        return {};
      })
      .addNode("two", async (_state, given) => {
        await rg.gate(given);
        await fileTool(scene).invoke({ path: "2", text: "x" });
        return {};
      })
      .addEdge(START, "one")
      .addEdge("one", "two")
      .addEdge("two", END)
      .compile({ checkpointer: rewindCheckpointer(new MemorySaver(), scene.rewind) }),
  );
  await run(app, start, config);
  const thread = scene.rewind.thread("t");
  expect(thread.checkpoints().map((one) => one.kind)).toEqual(["step", "step"]);
  await expect(thread.rewind({ to: "c1" })).rejects.toMatchObject({ code: "BAD_ARGUMENT" });
  expect(refusalText(thread.admissible("c0", "lesson") as RewindError)).toMatch(/alone\. Choose a later checkpoint\.$/);
  await thread.rewind({ to: "c1", scope: "environment" });
  expect(scene.files()).toEqual(["1"]);
});

test("tools of one's own that throw are answered as LangGraph's ToolNode does", async () => {
  decide = (all) => (all.includes("Please fix") ? { content: "end" } : calls(call("breaks", {})));
  const breaks = tool(
    () => {
      throw new Error("broken");
    },
    { name: "breaks", description: "b", schema: z.object({}) },
  );
  const { app } = makeGraph(scene, { tools: [breaks] });
  const state = await run(app, start, config);
  expect(lastText(state)).toBe("end");
  expect(texts(state).join("\n")).toContain("Error: broken");
});
