// Cases that broke other tools: interrupts and replays, routing, initial state, cut histories, effects outside.

import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { type AIMessage, type BaseMessage, HumanMessage, RemoveMessage } from "@langchain/core/messages";
import { type ToolRuntime, tool } from "@langchain/core/tools";
import {
  Annotation,
  type BaseCheckpointSaver,
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
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import { rewindCheckpointer, rewindGraph } from "agentrewind/langgraph";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { chatModel } from "../langchain/harness.ts";
import {
  afterModel,
  call,
  calls,
  fileTool,
  history,
  lastText,
  onThread,
  openScene,
  pointAt,
  run,
  type Scene,
  type Snapshot,
  start,
  stateOf,
  texts,
  user,
  write,
} from "./harness.ts";

let scene: Scene;
let decide: (all: string, messages: readonly { role: string }[]) => ReturnType<typeof calls>;
beforeEach(async () => {
  scene = await openScene((request, all) => decide(all, request.messages));
});
afterEach(() => scene.close());

const config = onThread("t");
const put = (name: string, text = "1") => writeFileSync(join(scene.workspace, name), text);
const Log = Annotation.Root({
  log: Annotation<string[]>({ reducer: (a, b) => [...a, ...b], default: () => [] }),
  answer: Annotation<string>(),
});

function asking(saver: BaseCheckpointSaver = new MemorySaver()) {
  const rg = rewindGraph(scene.rewind);
  const ran: string[] = [];
  const app = rg.attach(
    new StateGraph(Log)
      .addNode("a", async (_state, given: LangGraphRunnableConfig) => {
        await rg.gate(given);
        ran.push("a");
        put("a");
        return { log: ["a"] };
      })
      .addNode("ask", async (_state, given: LangGraphRunnableConfig) => {
        await rg.gate(given);
        ran.push(`ask:${scene.files().join("")}`);
        const answer: string = interrupt("which?");
        put("answer", answer);
        return { answer, log: ["ask"] };
      })
      .addNode("b", async ({ answer }, given: LangGraphRunnableConfig) => {
        await rg.gate(given);
        ran.push(`b:${answer}`);
        put("b", answer);
        return { log: ["b"] };
      })
      .addEdge(START, "a")
      .addEdge("a", "ask")
      .addEdge("ask", "b")
      .addEdge("b", END)
      .compile({ checkpointer: rewindCheckpointer(saver, scene.rewind) }),
  );
  return { rg, app, ran };
}

test("81: a replay from before an interrupt asks again, on the files of that moment", async () => {
  const { app, ran } = asking();
  await app.invoke({ log: [] }, config);
  await app.invoke(new Command({ resume: "x" }), config);
  expect(scene.files()).toEqual(["a", "answer", "b"]);
  const before = await pointAt(app as never, config, "ask", () => true);
  const again = (await app.invoke(null, before.config as never)) as Record<string, unknown>;
  expect(again).toHaveProperty("__interrupt__");
  expect(ran.at(-1)).toBe("ask:a");
  expect(scene.files()).toEqual(["a"]);
  await app.invoke(new Command({ resume: "y" }), config);
  expect(ran.at(-1)).toBe("b:y");
  expect(scene.files()).toEqual(["a", "answer", "b"]);
});

test("82: a resume with the head's id goes on from the pause", async () => {
  const { app, ran } = asking();
  await app.invoke({ log: [] }, config);
  const head = await stateOf(app as never, config);
  await app.invoke(new Command({ resume: "x" }), head.config as never);
  expect(ran.filter((one) => one === "a")).toHaveLength(1);
  expect(ran.at(-1)).toBe("b:x");
  expect(scene.files()).toEqual(["a", "answer", "b"]);
});

test("a pause that another process resumes, after the same files were changed by a person", async () => {
  const saver = SqliteSaver.fromConnString(":memory:");
  await asking(saver).app.invoke({ log: [] }, config);
  await scene.reopen();
  put("a", "by a person");
  const { app, ran } = asking(saver);
  await app.invoke(new Command({ resume: "x" }), config);
  expect(ran).toEqual(["ask:a", "b:x"]);
  expect(scene.files()).toEqual(["a", "answer", "b"]);
});

describe("65: one of two parallel calls pauses", () => {
  const seen: string[] = [];
  function guarded(saver: BaseCheckpointSaver) {
    const rg = rewindGraph(scene.rewind);
    const free = tool(
      () => {
        seen.push("free");
        put("free");
        return "did free";
      },
      { name: "free", description: "f", schema: z.object({}) },
    );
    const guard = tool(
      () => {
        const answer: string = interrupt("may I?");
        if (answer === "no") return "rejected by the person";
        put("guarded");
        return "did guarded";
      },
      { name: "guarded", description: "g", schema: z.object({}) },
    );
    const model = chatModel(scene.server).bindTools([free, guard, ...rg.tools]);
    const app = rg.attach(
      new StateGraph(MessagesAnnotation)
        .addNode(
          "agent",
          rg.modelNode(async (state: typeof MessagesAnnotation.State) => ({
            messages: [await model.invoke(state.messages)],
          })),
        )
        .addNode("tools", rg.toolNode([free, guard]))
        .addEdge(START, "agent")
        .addConditionalEdges(
          "agent",
          (state: typeof MessagesAnnotation.State) =>
            afterModel(state) === END
              ? END
              : ((state.messages.at(-1) as AIMessage).tool_calls ?? []).map(
                  (one) => new Send("tools", { ...state, lg_tool_call: one }),
                ),
          ["tools", END],
        )
        .addEdge("tools", "agent")
        .compile({ checkpointer: rewindCheckpointer(saver, scene.rewind) }),
    );
    return { rg, app };
  }
  beforeEach(() => {
    seen.length = 0;
    decide = (all) =>
      all.includes("You are back at")
        ? { content: "over" }
        : all.includes("rejected") || all.includes("did guarded")
          ? { content: "end" }
          : calls(call("free", {}), call("guarded", {}));
  });

  test.each(["same process", "new process"])(
    "reject (%s): both are answered once, and what ran is there",
    async (where) => {
      const saver = new MemorySaver();
      await run(guarded(saver).app, start, config);
      expect(scene.files()).toEqual(["free"]);
      if (where === "new process") await scene.reopen();
      const state = await run(guarded(saver).app, new Command({ resume: "no" }), config);
      expect(lastText(state)).toBe("end");
      expect(texts(state).filter((text) => text === "did free")).toHaveLength(1);
      expect(texts(state).filter((text) => text.startsWith("rejected"))).toHaveLength(1);
      expect(seen).toEqual(["free"]);
      expect(scene.files()).toEqual(["free"]);
    },
  );

  test("a rewind into the pause: nothing is left of either, and the model is asked again", async () => {
    const saver = new MemorySaver();
    const { app } = guarded(saver);
    await run(app, start, config);
    await scene.rewind.thread("t").rewind({ to: "c0", lesson: "neither" });
    expect(scene.files()).toEqual([]);
    const state = await run(app, new Command({ resume: "yes" }), config);
    expect(lastText(state)).toBe("over");
    expect(scene.files()).toEqual([]);
    expect(texts(state).join("\n")).not.toContain("did ");
  });

  test("elsewhere and back into the pause: what had run is made again, once", async () => {
    const saver = new MemorySaver();
    const { app, rg } = guarded(saver);
    await run(app, start, config);
    const paused = await stateOf(app, config);
    await rg.checkout((await history(app, config)).at(-1)?.config ?? {});
    expect(scene.files()).toEqual([]);
    await run(app, null, paused.config);
    const state = await run(app, new Command({ resume: "yes" }), config);
    expect(lastText(state)).toBe("end");
    expect(scene.files()).toContain("guarded");
  });
});

test("64: a history that was cut between two parallel calls is one that the model accepts", async () => {
  decide = (_all, messages) => ({ content: `saw ${messages.map((one) => one.role).join()}` });
  const rg = rewindGraph(scene.rewind);
  const model = chatModel(scene.server).bindTools(rg.tools);
  const asked = (state: typeof MessagesAnnotation.State) => model.invoke(state.messages);
  const graph = new StateGraph(MessagesAnnotation)
    .addNode("cut", (state: typeof MessagesAnnotation.State) => ({
      messages: state.messages.slice(0, 2).map((one) => new RemoveMessage({ id: one.id as string })),
    }))
    .addNode(
      "agent",
      rg.modelNode(async (state: typeof MessagesAnnotation.State) => ({ messages: [await asked(state)] })),
    )
    .addEdge(START, "cut")
    .addEdge("cut", "agent")
    .addEdge("agent", END);
  const app = rg.attach(graph.compile({ checkpointer: rewindCheckpointer(new MemorySaver(), scene.rewind) }));
  const two = [
    { id: "A", name: "free", args: {} },
    { id: "B", name: "free", args: {} },
  ];
  const messages = [
    { role: "assistant", content: "", tool_calls: two },
    { role: "tool", tool_call_id: "A", content: "a" },
    { role: "tool", tool_call_id: "B", content: "b" },
    { role: "assistant", content: "ok" },
    { role: "user", content: "go on" },
  ];
  const state = await run(app, { messages }, config);
  expect(lastText(state)).toBe("saw assistant,user");
  expect(scene.server.errors).toEqual([]);
  // The other way round: the request of A and B is kept, B's result is not.
  const kept = new StateGraph(MessagesAnnotation)
    .addNode(
      "agent",
      rg.modelNode(async (given: typeof MessagesAnnotation.State) => ({ messages: [await asked(given)] })),
    )
    .addEdge(START, "agent")
    .addEdge("agent", END)
    .compile();
  const other = await run(rg.attach(kept), { messages: messages.filter((_one, index) => index !== 2) });
  expect(lastText(other)).toBe("saw assistant,tool,tool,assistant,user");
  expect(other.messages.filter((one) => one.getType() === "tool")).toHaveLength(2);
});

describe.each(["memory", "sqlite"])("state that no message carries (%s)", (kind) => {
  const Session = Annotation.Root({
    ...MessagesAnnotation.spec,
    tenant: Annotation<string>(),
    notes: Annotation<Record<string, string>>({ reducer: (a, b) => ({ ...a, ...b }), default: () => ({}) }),
    agent: Annotation<string>(),
  });
  function session(saver: BaseCheckpointSaver) {
    const rg = rewindGraph(scene.rewind);
    const note = tool(
      ({ key, agent }: { key: string; agent?: string }, runtime: ToolRuntime) => {
        put("artifact", key);
        return new Command({
          update: {
            notes: { [key]: "set" },
            ...(agent === undefined ? {} : { agent }),
            messages: [{ role: "tool", tool_call_id: runtime.toolCallId, content: `noted ${key}` }],
          },
        });
      },
      { name: "note", description: "n", schema: z.object({ key: z.string(), agent: z.string().optional() }) },
    );
    const model = chatModel(scene.server).bindTools([note, ...rg.tools]);
    const ask = (name: string) =>
      rg.modelNode(async (state: typeof Session.State) => {
        const reply = await model.invoke([...state.messages, new HumanMessage(`(you are ${name})`)]);
        return { messages: [reply] };
      });
    const route = ({ agent }: typeof Session.State) => (agent === "B" ? "B" : "A");
    return rg.attach(
      new StateGraph(Session)
        .addNode("A", ask("A"))
        .addNode("B", ask("B"))
        .addNode("tools", rg.toolNode([note]))
        .addConditionalEdges(START, route, ["A", "B"])
        .addConditionalEdges("A", afterModel, ["tools", END])
        .addConditionalEdges("B", afterModel, ["tools", END])
        .addConditionalEdges("tools", route, ["A", "B"])
        .compile({ checkpointer: rewindCheckpointer(saver, scene.rewind) }),
    );
  }

  test("86, 87: what was given at the beginning stays, what later turns set goes, the first agent answers", async () => {
    const saver = kind === "memory" ? new MemorySaver() : SqliteSaver.fromConnString(":memory:");
    decide = (all) => {
      const last = all.split("\n").findLast((line) => /^(first|second|third)/.test(line)) ?? "";
      if (all.includes("You are back at")) return { content: all.includes("(you are A)") ? "A answers" : "B answers" };
      if (last === "first")
        return all.includes("noted k1") ? { content: "1 done" } : calls(call("note", { key: "k1" }));
      return all.includes("noted k2") ? { content: "2 done" } : calls(call("note", { key: "k2", agent: "B" }));
    };
    let app = session(saver);
    await run(app, { ...user("first"), tenant: "t1" }, config);
    const beforeSecond = scene.rewind.thread("t").head as string;
    const turn2 = await run(app, user("second"), config);
    expect(turn2).toMatchObject({ agent: "B", notes: { k1: "set", k2: "set" } });
    const target = scene.rewind
      .thread("t")
      .checkpoints()
      .find((one) => one.parent === beforeSecond)?.id as string;
    await scene.rewind.thread("t").rewind({ to: target, lesson: "no hand-over" });
    if (kind === "sqlite") {
      await scene.reopen();
      app = session(saver);
    }
    const state = await run(app, user("third"), config);
    expect(state).toMatchObject({ tenant: "t1", notes: { k1: "set" } });
    expect(state.notes).not.toHaveProperty("k2");
    expect(state.agent).toBeUndefined();
    const next = await run(app, user("third again"), config);
    expect(lastText(next)).toBe("A answers");
  });
});

test("88: nodes behind the chosen point run again, also what they do outside; the files are those of the point", async () => {
  let count = 0;
  const service = createServer((_request, response) => {
    count++;
    response.end();
  });
  await new Promise<void>((resolve) => service.listen(0, "127.0.0.1", resolve));
  try {
    const rg = rewindGraph(scene.rewind);
    const app = rg.attach(
      new StateGraph(Log)
        .addNode("post", async (_state, given: LangGraphRunnableConfig) => {
          await rg.gate(given);
          await fetch(`http://127.0.0.1:${(service.address() as AddressInfo).port}`);
          put(`posted-${scene.files().length}`);
          return { log: ["post"] };
        })
        .addEdge(START, "post")
        .addEdge("post", END)
        .compile({ checkpointer: rewindCheckpointer(new MemorySaver(), scene.rewind) }),
    );
    await app.invoke({ log: [] }, config);
    const before: Snapshot = await pointAt(app as never, config, "post", () => true);
    await app.invoke(null, before.config as never);
    expect(count).toBe(2);
    expect(scene.files()).toEqual(["posted-0"]);
  } finally {
    service.close();
  }
});

test("an answer is given once when the model node is tried again", async () => {
  let failures = 0;
  decide = (all) => (all.includes("wrote a") ? { content: "end" } : calls(write("a", "1")));
  const rg = rewindGraph(scene.rewind);
  const model = chatModel(scene.server).bindTools([fileTool(scene), ...rg.tools]);
  const app = rg.attach(
    new StateGraph(MessagesAnnotation)
      .addNode(
        "agent",
        rg.modelNode(async (state: typeof MessagesAnnotation.State): Promise<{ messages: BaseMessage[] }> => {
          const reply = await model.invoke(state.messages);
          if (failures++ < 1) throw new Error("once");
          return { messages: [reply] };
        }),
        { retryPolicy: { maxAttempts: 3, initialInterval: 1, retryOn: () => true } },
      )
      .addNode("tools", rg.toolNode([fileTool(scene)]))
      .addEdge(START, "agent")
      .addConditionalEdges("agent", afterModel, ["tools", END])
      .addEdge("tools", "agent")
      .compile({ checkpointer: rewindCheckpointer(new MemorySaver(), scene.rewind) }),
  );
  expect(lastText(await run(app, start, config))).toBe("end");
  expect(
    scene.rewind
      .thread("t")
      .checkpoints({ all: true })
      .map((one) => one.kind),
  ).toEqual(["turn", "turn"]);
});
