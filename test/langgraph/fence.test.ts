// The epoch fence: what was issued before a rewind and comes after it, a reply, a token, a tool, never reaches the state.

import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { FakeStreamingChatModel } from "@langchain/core/utils/testing";
import { END, MemorySaver, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { rewindCheckpointer, rewindGraph } from "agentrewind/langgraph";
import { afterEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { commandFile } from "../helpers/library.ts";
import { chatModel } from "../langchain/harness.ts";
import {
  afterModel,
  calls,
  durabilities,
  fileTool,
  lastText,
  makeGraph,
  occurrences,
  onThread,
  openScene,
  pointAt,
  run,
  type Scene,
  SlowSaver,
  start,
  stateOf,
  texts,
  write,
} from "./harness.ts";

let scene: Scene;
afterEach(() => scene.close());
const config = onThread("t");
/** The model may be faster than the first capture. */
async function captured(): Promise<void> {
  while (scene.rewind.thread("t").head === null) await sleep(5);
}
const gate = () => {
  let open = (): void => {};
  const passed = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open: () => open(), passed };
};

describe.each(durabilities)("durability %s", (durability) => {
  test("a delayed reply is dropped, and the model is asked from where the conversation is now", async () => {
    const asked = gate();
    const release = gate();
    scene = await openScene(async (_request, all) => {
      if (all.includes("You are back at")) return { content: "after the rewind" };
      if (!all.includes("wrote a.txt")) return calls(write("a.txt", "1"));
      asked.open();
      await release.passed;
      return calls(write("late.txt", "1"));
    });
    const { app } = makeGraph(scene);
    const running = run(app, start, { ...config, durability });
    await asked.passed;
    await scene.rewind.thread("t").rewind({ to: "c0", lesson: "not a.txt" });
    const state = await running;
    release.open();
    expect(lastText(state)).toBe("after the rewind");
    expect(scene.files()).toEqual([]);
    expect(occurrences(texts(state).join("\n"), "1. not a.txt")).toBe(1);
    expect(texts(state).join("\n")).not.toContain("wrote a.txt");
    expect(state.decisions).toBe(1);
    expect((await stateOf(app, config)).values.messages).toHaveLength(state.messages.length);
  });

  test.each(["quick", "slow"])(
    "a delayed tool: the rewind waits for it, and what came of it is dropped (%s saver)",
    async (pace) => {
      const inTool = gate();
      const release = gate();
      scene = await openScene((_request, all) =>
        all.includes("You are back at") ? { content: "over" } : calls(write("slow.txt", "1")),
      );
      const slow = tool(
        async () => {
          inTool.open();
          await release.passed;
          writeFileSync(join(scene.workspace, "slow.txt"), "1");
          return "wrote slow.txt";
        },
        { name: "write_file", description: "w", schema: z.object({ path: z.string(), text: z.string() }) },
      );
      const { app, rg } = makeGraph(scene, {
        tools: [slow],
        saver: pace === "slow" ? new SlowSaver() : new MemorySaver(),
      });
      const running = run(app, start, { ...config, durability });
      await inTool.passed;
      const rewound = scene.rewind.thread("t").rewind({ to: "c0", lesson: "too slow" });
      expect(await Promise.race([rewound.then(() => "rewound"), sleep(50, "waits")])).toBe("waits");
      release.open();
      await rewound;
      const state = await running;
      expect(lastText(state)).toBe("over");
      expect(texts(state).join("\n")).not.toContain("wrote slow.txt");
      expect(scene.files()).toEqual([]);
      // The state behind the tool is still paired with what it made.
      for await (const one of app.getStateHistory(config)) {
        if (!JSON.stringify(one.values).includes("wrote slow.txt")) continue;
        await rg.checkout(one.config);
        expect(scene.files()).toEqual(["slow.txt"]);
        return;
      }
      throw new Error("the step was not stored");
    },
  );
});

test("streamed tokens of a stale call end with the rewind", async () => {
  const words = "one two three four five six seven eight nine ten stale";
  scene = await openScene(
    (_request, all) => ({ content: all.includes("You are back at") ? "after the rewind" : words }),
    { latencyMs: 3000 },
  );
  const { app } = makeGraph(scene, { model: { streaming: true } });
  let rewinding: Promise<unknown> | undefined;
  let rewound = false;
  const late: string[] = [];
  let all = "";
  for await (const chunk of await app.stream(start, { ...config, streamMode: "messages" })) {
    const [message] = chunk as unknown as [BaseMessage];
    if (message.getType() !== "ai") continue;
    all += message.text;
    if (rewound) late.push(message.text.trim());
    rewinding ??= captured()
      .then(() => scene.rewind.thread("t").rewind({ to: "c0" }))
      .then(() => {
        rewound = true;
      });
  }
  await rewinding;
  expect(all).not.toContain("stale");
  expect(all).toContain("after the rewind");
  expect(late.filter((word) => word !== "" && words.includes(word))).toEqual([]);
});

test("tokens of a model that goes on speaking do not get through", async () => {
  scene = await openScene(() => ({ content: "never asked" }));
  const rg = rewindGraph(scene.rewind);
  const asked = gate();
  const spoken = gate();
  let times = 0;
  const app = rg.attach(
    new StateGraph(MessagesAnnotation)
      .addNode(
        "agent",
        rg.modelNode(async (state: typeof MessagesAnnotation.State, { callbacks }) => {
          const first = ++times === 1;
          const text = first ? "aaa bbb ccc stale" : "fresh";
          const model = new FakeStreamingChatModel({ sleep: first ? 60 : 1, responses: [new AIMessage(text)] });
          // Without the node's signal: nobody tells it to stop.
          const stream = await model.stream(state.messages, {
            callbacks: callbacks as never,
            signal: new AbortController().signal,
          });
          let said = "";
          for await (const chunk of stream) {
            said += chunk.text;
            asked.open();
          }
          if (first) spoken.open();
          return { messages: [new AIMessage(said)] };
        }),
      )
      .addNode("last", async () => {
        await spoken.passed;
        return {};
      })
      .addEdge(START, "agent")
      .addEdge("agent", "last")
      .addEdge("last", END)
      .compile({ checkpointer: rewindCheckpointer(new MemorySaver(), scene.rewind) }),
  );
  const rewinding = asked.passed.then(captured).then(() => scene.rewind.thread("t").rewind({ to: "c0" }));
  let all = "";
  for await (const chunk of await app.stream(start as never, { ...config, streamMode: "messages" })) {
    const [message] = chunk as unknown as [BaseMessage];
    if (message.getType() === "ai") all += message.text;
  }
  await rewinding;
  expect(times).toBe(2);
  expect(all).toContain("fresh");
  expect(all.replaceAll("fresh", "")).not.toMatch(/[ls]/);
});

test("a model that does not listen to its signal is not waited for, and nothing it says gets through", async () => {
  scene = await openScene(() => ({ content: "never asked" }));
  const rg = rewindGraph(scene.rewind);
  const asked = gate();
  const release = gate();
  let finished = gate();
  let times = 0;
  const app = rg.attach(
    new StateGraph(MessagesAnnotation)
      .addNode(
        "agent",
        rg.modelNode(async (_state: typeof MessagesAnnotation.State, given) => {
          if (++times === 1) {
            asked.open();
            await release.passed;
            given.writer?.("late");
            finished.open();
            return { messages: [{ role: "assistant", content: "late" }] };
          }
          given.writer?.("fresh");
          return { messages: [{ role: "assistant", content: "fresh" }] };
        }),
      )
      .addNode("last", async () => {
        release.open();
        await finished.passed;
        return {};
      })
      .addEdge(START, "agent")
      .addEdge("agent", "last")
      .addEdge("last", END)
      .compile({ checkpointer: rewindCheckpointer(new MemorySaver(), scene.rewind) }),
  );
  const custom: unknown[] = [];
  const rewinding = asked.passed.then(captured).then(() => scene.rewind.thread("t").rewind({ to: "c0" }));
  for await (const chunk of await app.stream(start as never, { ...config, streamMode: "custom" })) custom.push(chunk);
  await rewinding;
  finished = gate();
  expect(custom).toEqual(["fresh"]);
  const { values } = await stateOf(app, config);
  expect(texts(values).at(-1)).toBe("fresh");
  expect(texts(values)).not.toContain("late");
});

test("another process rewinds while the graph runs", async () => {
  const begun = gate();
  let step = 0;
  scene = await openScene((_request, all) => {
    if (all.includes("You are back at")) return { content: "over" };
    if (!all.includes("wrote a.txt")) return calls(write("a.txt", "1"));
    begun.open();
    return calls(write("b.txt", `${++step}`));
  });
  const { app, rg } = makeGraph(scene);
  const running = run(app, start, { ...config, recursionLimit: 2000 });
  await begun.passed;
  const { stdout } = await promisify(execFile)(process.execPath, [
    commandFile,
    ...["--workspace", scene.workspace, "--store", scene.store, "--thread", "t", "--json"],
    ...["rewind", "c1", "--lesson", "from outside"],
  ]);
  expect(JSON.parse(stdout).checkpoint.id).toBe("c1");
  const state = await running;
  expect(lastText(state)).toBe("over");
  expect(texts(state).join("\n")).toContain("1. from outside");
  expect(texts(state).join("\n")).not.toContain("wrote b.txt");
  expect(scene.files()).toEqual(["a.txt"]);
  await rg.checkout(config);
  expect(scene.files()).toEqual(["a.txt"]);
});

test("a rewind from outside between two runs: the next input goes on from the restored state", async () => {
  scene = await openScene((_request, all) => {
    if (all.includes("You are back at")) return { content: all.includes("next") ? "next done" : "over" };
    return all.includes("wrote b.txt")
      ? { content: "first done" }
      : calls(write(all.includes("wrote a.txt") ? "b.txt" : "a.txt", "1"));
  });
  const { app, rg } = makeGraph(scene);
  await run(app, start, config);
  const end = await stateOf(app, config);
  await scene.rewind.thread("t").rewind({ to: "c1", lesson: "stop at a" });
  const state = await run(app, { messages: [{ role: "user", content: "next" }] }, config);
  expect(lastText(state)).toBe("next done");
  expect(texts(state).join("\n")).not.toContain("wrote b.txt");
  expect(scene.files()).toEqual(["a.txt"]);
  await rg.checkout(end.config);
  expect(scene.files()).toEqual(["a.txt", "b.txt"]);
});

test("scope environment and undo reach the graph as well", async () => {
  const release = gate();
  const asked = gate();
  scene = await openScene(async (_request, all) => {
    if (all.includes("The files are back at")) return { content: "told" };
    if (!all.includes("wrote a.txt")) return calls(write("a.txt", "1"));
    asked.open();
    await release.passed;
    return { content: "late" };
  });
  const { app } = makeGraph(scene);
  const running = run(app, start, config);
  await asked.passed;
  await scene.rewind.thread("t").rewind({ to: "c0", scope: "environment" });
  release.open();
  const state = await running;
  expect(lastText(state)).toBe("told");
  expect(scene.files()).toEqual([]);
  await scene.rewind.thread("t").undo();
  expect(scene.files()).toEqual(["a.txt"]);
});

test("the graph's own gate: the rewind waits until LangGraph has what came of the tool", async () => {
  scene = await openScene(() => ({ content: "x" }));
  const rg = rewindGraph(scene.rewind);
  const inside = gate();
  const release = gate();
  const app = rg.attach(
    new StateGraph(MessagesAnnotation)
      .addNode("first", async (_state, given) => {
        await rg.gate(given);
        writeFileSync(join(scene.workspace, "first"), "1");
        return {};
      })
      .addNode("work", async (_state, given) => {
        await rg.gate(given);
        inside.open();
        await release.passed;
        writeFileSync(join(scene.workspace, "work"), "1");
        return {};
      })
      .addEdge(START, "first")
      .addEdge("first", "work")
      .addEdge("work", END)
      .compile({ checkpointer: rewindCheckpointer(new MemorySaver(), scene.rewind) }),
  );
  const running = app.invoke(start as never, config);
  await inside.passed;
  const rewound = scene.rewind.thread("t").rewind({ to: "c0", scope: "environment" });
  expect(await Promise.race([rewound.then(() => "rewound"), sleep(50, "waits")])).toBe("waits");
  release.open();
  await running;
  await rewound;
  expect(scene.files()).toEqual([]);
});

test("tools that run in a plain loop of the model's are refused when the conversation moved", async () => {
  const asked = gate();
  const release = gate();
  scene = await openScene((_request, all) =>
    all.includes("You are back at")
      ? { content: "over" }
      : calls(write(all.includes("wrote a.txt") ? "b.txt" : "a.txt", "1")),
  );
  const rg = rewindGraph(scene.rewind);
  const model = chatModel(scene.server).bindTools([fileTool(scene), ...rg.tools]);
  let steps = 0;
  const app = rg.attach(
    new StateGraph(MessagesAnnotation)
      .addNode(
        "agent",
        rg.modelNode(async (state: typeof MessagesAnnotation.State) => ({
          messages: [await model.invoke(state.messages)],
        })),
      )
      .addNode("pause", async () => {
        if (++steps === 2) {
          asked.open();
          await release.passed;
        }
        return {};
      })
      .addNode("tools", rg.toolNode([fileTool(scene)]))
      .addEdge(START, "agent")
      .addConditionalEdges("agent", (state) => (afterModel(state) === END ? END : "pause"), ["pause", END])
      .addEdge("pause", "tools")
      .addEdge("tools", "agent")
      .compile({ checkpointer: rewindCheckpointer(new MemorySaver(), scene.rewind) }),
  );
  const running = run(app, start, config);
  await asked.passed;
  await scene.rewind.thread("t").rewind({ to: "c0" });
  release.open();
  const state = await running;
  expect(lastText(state)).toBe("over");
  expect(scene.files()).toEqual([]);
  // The state that was stored when the files had gone back already belongs to the branch that was left.
  const left = await pointAt(app, config, "tools", ({ values }) => values.messages.length === 4);
  await rg.checkout(left.config);
  expect(scene.files()).toEqual(["a.txt"]);
});
