// Graphs that are more than a loop: parallel steps, own gates, parts inside of parts.
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type AIMessage, HumanMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import {
  Annotation,
  Command,
  END,
  interrupt,
  type LangGraphRunnableConfig,
  MemorySaver,
  MessagesAnnotation,
  Send,
  START,
  StateGraph,
} from "@langchain/langgraph";
import { ToolNode } from "@langchain/langgraph/prebuilt";
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
  history,
  idBefore,
  lastText,
  onThread,
  openScene,
  pointAt,
  run,
  type Scene,
  type Snapshot,
  slowDown,
  start,
  texts,
  write,
} from "./harness.ts";

let scene: Scene;
let decide: (all: string) => ReturnType<typeof calls>;
beforeEach(async () => {
  scene = await openScene((_request, all) => decide(all));
});
afterEach(() => scene.close());

const config = onThread("t");
const Log = Annotation.Root({ log: Annotation<string[]>({ reducer: (a, b) => [...a, ...b], default: () => [] }) });
const put = (name: string, text = "1") => writeFileSync(join(scene.workspace, name), text);

describe.each(durabilities)("durability %s", (durability) => {
  test.each([0, 30])("nodes of one's own behind the gate, several in one step (%i ms)", async (slow) => {
    if (slow > 0) slowDown(scene, slow);
    const rg = rewindGraph(scene.rewind);
    const seen: Record<string, string[]> = {};
    const node =
      (name: string, wait = 0) =>
      async (_state: typeof Log.State, given: LangGraphRunnableConfig) => {
        await rg.gate(given);
        await sleep(wait);
        seen[name] = scene.files();
        put(name);
        return { log: [name] };
      };
    const app = rg.attach(
      new StateGraph(Log)
        .addNode("a", node("a"))
        .addNode("b1", node("b1", 20))
        .addNode("b2", node("b2"))
        .addNode("plain", () => ({ log: ["plain"] }))
        .addNode("c", node("c"))
        .addEdge(START, "a")
        .addEdge("a", "b1")
        .addEdge("a", "b2")
        .addEdge(["b1", "b2"], "plain")
        .addEdge("plain", "c")
        .compile({ checkpointer: rewindCheckpointer(new MemorySaver(), scene.rewind) }),
    );
    await app.invoke({ log: [] }, { ...config, durability });
    expect(scene.files()).toEqual(["a", "b1", "b2", "c"]);
    const expected: Record<string, string[]> = { a: [], b1: ["a"], plain: ["a", "b1", "b2"], c: ["a", "b1", "b2"] };
    const states = await history(app, config);
    for (const [next, files] of Object.entries(expected)) {
      const state = states.find((one) => one.next[0] === next) as Snapshot;
      await rg.checkout(state.config);
      expect([next, scene.files()]).toEqual([next, files]);
    }
    await rg.checkout(config);
    expect(scene.files()).toEqual(["a", "b1", "b2", "c"]);

    await app.invoke(null, { ...(states.find((one) => one.next.includes("b2")) as Snapshot).config, durability });
    expect(seen.b2).toEqual(["a"]);
    expect(seen.c).toEqual(["a", "b1", "b2"]);
  });
});

test("the model is asked beside a node that changes files", async () => {
  decide = (all) => (all.includes("wrote x") ? { content: "end" } : calls(write("x", "1")));
  const rg = rewindGraph(scene.rewind);
  const model = chatModel(scene.server).bindTools([fileTool(scene), ...rg.tools]);
  const app = rg.attach(
    new StateGraph(MessagesAnnotation)
      .addNode("side", async (_state, given) => {
        await rg.gate(given);
        put("side");
        return {};
      })
      .addNode(
        "agent",
        rg.modelNode(async (state: typeof MessagesAnnotation.State) => {
          await sleep(20);
          return { messages: [await model.invoke(state.messages)] };
        }),
      )
      .addNode("tools", rg.toolNode([fileTool(scene)]))
      .addEdge(START, "agent")
      .addEdge(START, "side")
      .addConditionalEdges("agent", afterModel, ["tools", END])
      .addEdge("tools", "agent")
      .compile({ checkpointer: rewindCheckpointer(new MemorySaver(), scene.rewind) }),
  );
  await run(app, start, config);
  expect(scene.files()).toEqual(["side", "x"]);
  const states = await history(app, config);
  const files: Record<string, string[]> = {};
  for (const state of states) {
    await rg.checkout(state.config);
    files[`${state.next.join()}/${state.values.messages?.length ?? 0}`] = scene.files();
  }
  expect(files["agent,side/1"] ?? files["side,agent/1"]).toEqual([]);
  expect(files["tools/2"]).toEqual(["side"]);
  expect(files["agent/3"]).toEqual(["side", "x"]);
});

test("a rewind beside a tool of another part waits for its next turn", async () => {
  const rg = rewindGraph(scene.rewind);
  let ended = (): void => {};
  const end = new Promise<void>((resolve) => {
    ended = resolve;
  });
  decide = (all) => {
    if (all.includes("You are back at")) return { content: "over" };
    if (all.includes("Not done: A tool still runs")) ended();
    return calls(call("rewind", { checkpoint: "c0", lesson: "anew" }));
  };
  const model = chatModel(scene.server).bindTools(rg.tools);
  const slow = new StateGraph(Log)
    .addNode("work", async (_state, given) => {
      await rg.gate(given);
      await end;
      put("side");
      return {};
    })
    .addEdge(START, "work")
    .compile();
  const loop = new StateGraph(MessagesAnnotation)
    .addNode(
      "agent",
      rg.modelNode(async (state: typeof MessagesAnnotation.State) => ({
        messages: [await model.invoke(state.messages)],
      })),
    )
    .addNode("tools", rg.toolNode([]))
    .addEdge(START, "agent")
    .addConditionalEdges("agent", afterModel, ["tools", END])
    .addEdge("tools", "agent")
    .compile();
  const app = rg.attach(
    new StateGraph(MessagesAnnotation)
      .addNode("loop", loop)
      .addNode("slow", async (_state, given) => {
        await slow.invoke({ log: [] }, given);
        return {};
      })
      .addEdge(START, "loop")
      .addEdge(START, "slow")
      .compile({ checkpointer: rewindCheckpointer(new MemorySaver(), scene.rewind) }),
  );
  put("before");
  const state = await run(app, start, { ...config, recursionLimit: 200 });
  expect(lastText(state)).toBe("over");
  expect(texts(state).join("\n")).not.toContain("Not done");
});

test("steps of one's own before a decision: the decision takes their place in the list, and they stay for their states", async () => {
  decide = (all) => (all.includes("Checkpoints, newest") ? { content: all } : calls(call("list_checkpoints", {})));
  const rg = rewindGraph(scene.rewind);
  const model = chatModel(scene.server).bindTools(rg.tools);
  const node = (name: string) => async (_state: unknown, given: LangGraphRunnableConfig) => {
    await rg.gate(given);
    put(name);
    return {};
  };
  const app = rg.attach(
    new StateGraph(MessagesAnnotation)
      .addNode("one", node("1"))
      .addNode("two", node("2"))
      .addNode(
        "agent",
        rg.modelNode(async (state: typeof MessagesAnnotation.State) => ({
          messages: [await model.invoke(state.messages)],
        })),
      )
      .addNode("tools", rg.toolNode([]))
      .addEdge(START, "one")
      .addEdge("one", "two")
      .addEdge("two", "agent")
      .addConditionalEdges("agent", afterModel, ["tools", END])
      .addEdge("tools", "agent")
      .compile({ checkpointer: rewindCheckpointer(new MemorySaver(), scene.rewind) }),
  );
  const told = lastText(await run(app, start, config));
  expect(told).toMatch(/Checkpoints, newest first.*\nc2 \[turn 1\] now$/);
  const thread = scene.rewind.thread("t");
  expect(thread.checkpoints().map((one) => one.kind)).toEqual(["turn", "turn"]);
  expect(thread.checkpoints({ all: true }).map((one) => one.kind)).toEqual(["step", "step", "turn", "turn"]);
  await rg.checkout((await pointAt(app, config, "two", () => true)).config);
  expect(scene.files()).toEqual(["1"]);
});

test("each tool call as a task of its own", async () => {
  decide = (all) => (all.includes("wrote b") ? { content: "end" } : calls(write("a", "1"), write("b", "1")));
  const rg = rewindGraph(scene.rewind);
  const model = chatModel(scene.server).bindTools([fileTool(scene), ...rg.tools]);
  const app = rg.attach(
    new StateGraph(MessagesAnnotation)
      .addNode(
        "agent",
        rg.modelNode(async (state: typeof MessagesAnnotation.State) => ({
          messages: [await model.invoke(state.messages)],
        })),
      )
      .addNode("tools", rg.toolNode([fileTool(scene)]))
      .addEdge(START, "agent")
      .addConditionalEdges(
        "agent",
        (state: typeof MessagesAnnotation.State) => {
          const { tool_calls: asked = [] } = state.messages.at(-1) as AIMessage;
          return asked.length === 0 ? END : asked.map((one) => new Send("tools", { ...state, lg_tool_call: one }));
        },
        ["tools", END],
      )
      .addEdge("tools", "agent")
      .compile({ checkpointer: rewindCheckpointer(new MemorySaver(), scene.rewind) }),
  );
  expect(lastText(await run(app, start, config))).toBe("end");
  expect(scene.files()).toEqual(["a", "b"]);
  await run(app, null, (await pointAt(app, config, "tools", () => true)).config);
  expect(scene.files()).toEqual(["a", "b"]);
});

describe("a part of the graph with an agent of its own", () => {
  function nested() {
    const rg = rewindGraph(scene.rewind);
    const model = chatModel(scene.server).bindTools([fileTool(scene), ...rg.tools]);
    const ask = async (state: typeof MessagesAnnotation.State) => ({ messages: [await model.invoke(state.messages)] });
    const loop = () =>
      new StateGraph(MessagesAnnotation)
        .addNode("agent", rg.modelNode(ask))
        .addNode("tools", rg.toolNode([fileTool(scene)]))
        .addEdge(START, "agent")
        .addConditionalEdges("agent", afterModel, ["tools", END])
        .addEdge("tools", "agent");
    const researcher = loop().compile();
    const app = rg.attach(
      new StateGraph(MessagesAnnotation)
        .addNode("boss", rg.modelNode(ask))
        .addNode("tools", rg.toolNode([fileTool(scene)]))
        .addNode("researcher", async (_state: typeof MessagesAnnotation.State, given) => {
          const result = await researcher.invoke({ messages: [new HumanMessage("research")] }, given);
          return { messages: [new HumanMessage(`found: ${result.messages.at(-1)?.text}`)] };
        })
        .addEdge(START, "boss")
        .addConditionalEdges(
          "boss",
          (state) => (afterModel(state) === END ? (lastText(state as never) === "ask" ? "researcher" : END) : "tools"),
          ["tools", "researcher", END],
        )
        .addEdge("tools", "boss")
        .addEdge("researcher", "boss")
        .compile({ checkpointer: rewindCheckpointer(new MemorySaver(), scene.rewind) }),
    );
    return { rg, app };
  }

  test("the boss takes back what the part did, files included", async () => {
    decide = (all) => {
      if (all.startsWith("research")) {
        return all.includes("wrote sub.txt") ? { content: "answer" } : calls(write("sub.txt", "1"));
      }
      if (all.includes("You are back at")) return { content: "over" };
      if (all.includes("Checkpoints, newest first")) {
        return calls(call("rewind", { checkpoint: idBefore(all, "ask"), lesson: "do not ask" }));
      }
      if (all.includes("found: answer")) return calls(call("list_checkpoints", {}));
      return all.includes("wrote own.txt") ? { content: "ask" } : calls(write("own.txt", "1"));
    };
    const { app } = nested();
    const state = await run(app, start, config);
    expect(lastText(state)).toBe("over");
    expect(scene.files()).toEqual(["own.txt"]);
  });

  test("the part takes back its own wrong step", async () => {
    decide = (all) => {
      if (all.startsWith("research")) {
        if (all.includes("You are back at")) return { content: "answer" };
        if (all.includes("wrote sub.txt")) return calls(call("rewind", { checkpoint: "c0", lesson: "no file" }));
        return calls(write("sub.txt", "1"));
      }
      return all.includes("found: answer") ? { content: "over" } : { content: "ask" };
    };
    const { app, rg } = nested();
    put("own.txt");
    const state = await run(app, start, config);
    expect(lastText(state)).toBe("over");
    expect(scene.files()).toEqual(["own.txt"]);
    await rg.checkout(config);
    expect(scene.files()).toEqual(["own.txt"]);
  });

  test("back to before the part, and again through it", async () => {
    let tries = 0;
    decide = (all) => {
      if (all.startsWith("research")) {
        return all.includes("wrote sub") ? { content: "answer" } : calls(write(`sub${++tries}`, "1"));
      }
      return all.includes("found: answer") ? { content: "over" } : { content: "ask" };
    };
    const { app } = nested();
    await run(app, start, config);
    expect(scene.files()).toEqual(["sub1"]);
    const state = await run(app, null, (await pointAt(app, config, "researcher", () => true)).config);
    expect(lastText(state)).toBe("over");
    expect(scene.files()).toEqual(["sub2"]);
  });

  test("a rewind from outside while the part runs ends it", async () => {
    let rewound: Promise<unknown> | undefined;
    decide = (all) => {
      if (all.startsWith("research")) {
        rewound ??= scene.rewind.thread("t").rewind({ to: "c0", lesson: "not this way" });
        return calls(write("sub.txt", "1"));
      }
      if (all.includes("You are back at")) return { content: "over" };
      return { content: "ask" };
    };
    const { app } = nested();
    const state = await run(app, start, config);
    await rewound;
    expect(lastText(state)).toBe("over");
    expect(existsSync(join(scene.workspace, "sub.txt"))).toBe(false);
  });
});

test("83: going back inside of a part runs from there, with the state and the files of that point", async () => {
  const rg = rewindGraph(scene.rewind);
  const ran: string[] = [];
  const node = (name: string) => async (_state: typeof Log.State, given: LangGraphRunnableConfig) => {
    await rg.gate(given);
    ran.push(`${name}:${scene.files().join("")}`);
    put(name);
    return { log: [name] };
  };
  const child = new StateGraph(Log)
    .addNode("n1", node("1"))
    .addNode("n2", node("2"))
    .addNode("n3", node("3"))
    .addEdge(START, "n1")
    .addEdge("n1", "n2")
    .addEdge("n2", "n3")
    .compile({ interruptAfter: ["n2"] });
  const app = rg.attach(
    new StateGraph(Log)
      .addNode("before", node("0"))
      .addNode("child", child)
      .addEdge(START, "before")
      .addEdge("before", "child")
      .compile({ checkpointer: rewindCheckpointer(new MemorySaver(), scene.rewind) }),
  );
  await app.invoke({ log: [] }, config);
  expect(scene.files()).toEqual(["0", "1", "2"]);
  const parent = await app.getState(config, { subgraphs: true });
  const inner = parent.tasks[0]?.state as unknown as Snapshot;
  const { checkpoint_ns } = inner.config.configurable;
  const points = await history(app, { configurable: { thread_id: "t", checkpoint_ns } });
  const point = points.find((one) => one.next[0] === "n2") as Snapshot;
  ran.length = 0;
  await app.invoke(null, point.config as never);
  expect(ran[0]).toBe("2:01");
  await app.invoke(null, config);
  expect(scene.files()).toEqual(["0", "1", "2", "3"]);
  expect(ran.at(-1)).toBe("3:012");
});

describe.each([undefined, true])("a part that is compiled with checkpointer: %s", (kept) => {
  test.each(["history of the part", "pause", "root and map"])(
    "back to a state of it, as its %s names it: the files are those of the state from which LangGraph runs",
    async (how) => {
      const rg = rewindGraph(scene.rewind);
      const sorted = ({ log }: { log: string[] }): string[] => [...log].sort();
      const act = async (name: string, state: typeof Log.State, given: LangGraphRunnableConfig) => {
        await rg.gate(given);
        expect(scene.files()).toEqual(sorted(state));
        put(name);
        return { log: [name] };
      };
      const node = (name: string) => (state: typeof Log.State, given: LangGraphRunnableConfig) =>
        act(name, state, given);
      const part = new StateGraph(Log)
        .addNode("s1", node("1"))
        .addNode("s2", (state, given) => act(`2${interrupt("?")}`, state, given))
        .addNode("s3", node("3"))
        .addEdge(START, "s1")
        .addEdge("s1", "s2")
        .addEdge("s2", "s3")
        .compile(kept === undefined ? {} : { checkpointer: kept });
      // A part gives its whole state back: what it was given would be there twice.
      const app = rg.attach(
        new StateGraph(Log)
          .addNode("p1", node("0"))
          .addNode("part", part)
          .addNode("p2", async () => ({}))
          .addEdge(START, "p1")
          .addEdge("p1", "part")
          .addEdge("part", "p2")
          .compile({ checkpointer: rewindCheckpointer(new MemorySaver(), scene.rewind) }),
      );
      await run(app, { log: [] }, config);
      const { tasks } = await app.getState(config, { subgraphs: true });
      const pause = tasks[0]?.state as unknown as Snapshot;
      const paused = pause.config;
      await run(app, new Command({ resume: "a" }), config);
      const { checkpoint_ns: namespace, checkpoint_map: map } = paused.configurable;
      const points = await history(app, onThread("t", { checkpoint_ns: namespace }));
      const point = {
        "history of the part": points.find((one) => one.next[0] === "s2")?.config,
        pause: paused,
        "root and map": {
          configurable: {
            ...paused.configurable,
            checkpoint_ns: "",
            checkpoint_id: (map as Record<string, string>)[""],
          },
        },
      }[how];
      await run(app, null, point);
      await run(app, new Command({ resume: "b" }), config);
      expect(scene.files()).toEqual(["0", "1", "2b", "3"]);
    },
  );
});

test("tools of one's own in LangGraph's ToolNode call the gate themselves", async () => {
  decide = (all) =>
    all.includes("wrote f2") ? { content: "end" } : calls(write(all.includes("wrote f1") ? "f2" : "f1", "1"));
  const rg = rewindGraph(scene.rewind);
  const own = tool(
    async (given: { path: string; text: string }, runtime) => {
      await rg.gate(runtime as never);
      return fileTool(scene).invoke(given);
    },
    { name: "write_file", description: "w", schema: z.object({ path: z.string(), text: z.string() }) },
  );
  const model = chatModel(scene.server).bindTools([own, ...rg.tools]);
  const app = rg.attach(
    new StateGraph(MessagesAnnotation)
      .addNode(
        "agent",
        rg.modelNode(async (state: typeof MessagesAnnotation.State) => ({
          messages: [await model.invoke(state.messages)],
        })),
      )
      .addNode("tools", new ToolNode([own, ...rg.tools]))
      .addEdge(START, "agent")
      .addConditionalEdges("agent", afterModel, ["tools", END])
      .addEdge("tools", "agent")
      .compile({ checkpointer: rewindCheckpointer(new MemorySaver(), scene.rewind) }),
  );
  await run(app, start, config);
  expect(scene.files()).toEqual(["f1", "f2"]);
  const restored = await pointAt(app, config, "tools", ({ values }) => values.messages.length === 2);
  await run(app, null, restored.config);
  expect(scene.files()).toEqual(["f1", "f2"]);
  // Nothing counts as running any more: a rewind from outside comes through.
  await scene.rewind.thread("t").rewind({ to: "c0" });
  expect(scene.files()).toEqual([]);
});
