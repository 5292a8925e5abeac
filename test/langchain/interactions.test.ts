// Beside LangChain's own middleware, and in every place that an agent can stand.
import { HumanMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { Command, interrupt, MemorySaver, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import {
  ClearToolUsesEdit,
  contextEditingMiddleware,
  createAgent,
  createMiddleware,
  humanInTheLoopMiddleware,
  modelRetryMiddleware,
  providerStrategy,
  summarizationMiddleware,
  toolRetryMiddleware,
  toolStrategy,
} from "langchain";
import { afterEach, describe, expect, test } from "vitest";
import { z } from "zod";
import {
  allText,
  call,
  calls,
  chatModel,
  fileTool,
  lastText,
  makeAgent,
  occurrences,
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

/** a.txt, b.txt, back to c1 (before b.txt), end. */
const short =
  (to = "c1"): Script =>
  (_request, all) => {
    if (all.includes("You are back") || all.includes("rejected")) return { content: "end" };
    if (all.includes("wrote b.txt")) return calls(call("rewind", { checkpoint: to, lesson: "no b" }));
    return calls(write(all.includes("wrote a.txt") ? "b.txt" : "a.txt", "x"));
  };

const hitl = (...names: string[]) =>
  humanInTheLoopMiddleware({ interruptOn: Object.fromEntries(names.map((name) => [name, true])) } as never);
const decide = (...decisions: unknown[]) => new Command({ resume: { decisions } });

describe("a person approves tool calls", () => {
  test("approve and reject a rewind", async () => {
    for (const [decision, files] of [
      [{ type: "approve" }, ["a.txt"]],
      [{ type: "reject", message: "rejected: keep b" }, ["a.txt", "b.txt"]],
    ] as const) {
      scene = await openScene(short());
      const agent = makeAgent(scene, { before: [hitl("rewind")], checkpointer: new MemorySaver() });
      const paused = await run(agent, start, onThread("t"));
      expect(paused).toHaveProperty("__interrupt__");
      expect(scene.files()).toEqual(["a.txt", "b.txt"]);
      expect(lastText(await run(agent, decide(decision), onThread("t")))).toBe("end");
      expect(scene.files()).toEqual(files);
      if (decision.type === "approve") await scene.close();
    }
  });

  test("edit a rewind's checkpoint", async () => {
    scene = await openScene(short());
    const agent = makeAgent(scene, { after: [hitl("rewind")], checkpointer: new MemorySaver() });
    await run(agent, start, onThread("t"));
    const editedAction = { name: "rewind", args: { checkpoint: "c0", lesson: "neither" } };
    expect(lastText(await run(agent, decide({ type: "edit", editedAction }), onThread("t")))).toBe("end");
    expect(scene.files()).toEqual([]);
    expect(scene.rewind.thread("t").lessons()[0]?.text).toBe("neither");
  });

  test("case 65: one of two parallel calls is rejected: both ids are answered exactly once", async () => {
    scene = await openScene((request, all) => {
      if (!all.includes("rejected")) return calls(write("free.txt", "x"), call("guarded", {}));
      expect(request.messages.filter((message) => message.role === "tool")).toHaveLength(2);
      return { content: "end" };
    });
    const guarded = tool(() => "ran", { name: "guarded", description: "g", schema: z.object({}) });
    const agent = makeAgent(scene, {
      before: [hitl("guarded")],
      tools: [fileTool(scene), guarded],
      checkpointer: new MemorySaver(),
    });
    await run(agent, start, onThread("t"));
    const state = await run(agent, decide({ type: "reject", message: "rejected" }), onThread("t"));
    expect(lastText(state)).toBe("end");
  });

  test("a rewind into the pause: the conversation goes on from before it", async () => {
    scene = await openScene((_request, all) => {
      if (all.includes("You are back")) return { content: "end" };
      return calls(all.includes("wrote a.txt") ? call("guarded", {}) : write("a.txt", "x"));
    });
    const guarded = tool(() => "ran", { name: "guarded", description: "g", schema: z.object({}) });
    const agent = makeAgent(scene, {
      before: [hitl("guarded")],
      tools: [fileTool(scene), guarded],
      checkpointer: new MemorySaver(),
    });
    await run(agent, start, onThread("t"));
    await scene.rewind.thread("t").rewind({ to: "c0" });
    expect(lastText(await run(agent, decide({ type: "approve" }), onThread("t")))).toBe("end");
    expect(scene.files()).toEqual([]);
  });

  test("case 81: a question asked inside of a tool before the target is asked again", async () => {
    const answers: unknown[] = [];
    const ask = tool(
      () => {
        const answer = interrupt("which?");
        answers.push(answer);
        return `answer ${answer}`;
      },
      { name: "ask", description: "a", schema: z.object({}) },
    );
    scene = await openScene((_request, all) => {
      if (all.includes("answer y")) return { content: "end" };
      if (all.includes("answer x")) return calls(call("rewind", { checkpoint: "c0", lesson: "ask again" }));
      return calls(call("ask", {}));
    });
    const agent = makeAgent(scene, { tools: [ask], checkpointer: new MemorySaver() });
    expect(await run(agent, start, onThread("t"))).toHaveProperty("__interrupt__");
    const again = await run(agent, new Command({ resume: "x" }), onThread("t"));
    expect(again).toHaveProperty("__interrupt__");
    expect(lastText(await run(agent, new Command({ resume: "y" }), onThread("t")))).toBe("end");
    expect(answers).toEqual(["x", "y"]);
  });
});

describe("the conversation is shortened", () => {
  const summarize = () =>
    summarizationMiddleware({
      model: chatModel(scene.server),
      trigger: { messages: 6 },
      keep: { messages: 2 },
    } as never);

  /** Answers summary requests; goes back to c0, over the summary. */
  const script: Script = (request, all) => {
    if (request.tools === undefined || request.tools.length === 0) return { content: "SUMMARY" };
    if (all.includes("You are back")) return { content: "end" };
    if (all.includes("SUMMARY") && all.includes("wrote 4.txt"))
      return calls(call("rewind", { checkpoint: "c1", lesson: "x" }));
    const next = [1, 2, 3, 4].find((n) => !all.includes(`wrote ${n}.txt`) && !scene.files().includes(`${n}.txt`));
    return calls(write(`${next}.txt`, "x"));
  };

  test("cases 64, 69: a rewind to before a summary brings the full messages back", async () => {
    scene = await openScene(script);
    const agent = makeAgent(scene, { before: [summarize()], checkpointer: new MemorySaver() });
    const state = await run(agent, start, onThread("t"));
    expect(lastText(state)).toBe("end");
    expect(scene.files()).toEqual(["1.txt"]);
    const all = texts(state).join("\n");
    expect(all).not.toContain("SUMMARY");
    expect(texts(state)[0]).toBe("go");
    expect(all).toContain("wrote 1.txt");
    expect(all).not.toContain("wrote 2.txt");
  });

  test("a person's message that only the summary holds is kept", async () => {
    scene = await openScene((request, all) => {
      if (request.tools === undefined || request.tools.length === 0) return { content: "SUMMARY" };
      if (all.includes("You are back")) return { content: "end" };
      if (all.includes("SUMMARY")) return calls(call("rewind", { checkpoint: "c0", lesson: "x" }));
      return all.includes("now work") ? calls(write("w.txt", "x")) : { content: "hello" };
    });
    const agent = makeAgent(scene, { before: [summarize()], checkpointer: new MemorySaver() });
    await run(agent, user("one"), onThread("t"));
    await run(agent, user("two"), onThread("t"));
    const state = await run(agent, user("now work"), onThread("t"));
    expect(texts(state).slice(0, 3)).toEqual(["one", "two", "now work"]);
    expect(lastText(state)).toBe("end");
    expect(scene.files()).toEqual([]);
  });

  test.each(["before", "after"])(
    "old tool results are cleared for the model, by a middleware %s this one",
    async (place) => {
      scene = await openScene((_request, all) => {
        if (all.includes("You are back")) return { content: "end" };
        const next = [1, 2, 3].find((n) => !scene.files().includes(`${n}.txt`));
        if (next !== undefined) return calls(write(`${next}.txt`, "x"));
        expect(all).toContain("[cleared]");
        return calls(call("rewind", { checkpoint: "c2", lesson: "no third" }));
      });
      const editing = contextEditingMiddleware({
        edits: [new ClearToolUsesEdit({ trigger: { tokens: 1 }, keep: { messages: 1 } } as never)],
      });
      const state = await run(makeAgent(scene, { [place]: [editing] }), start);
      expect(lastText(state)).toBe("end");
      expect(scene.files()).toEqual(["1.txt", "2.txt"]);
      expect(texts(state)).toContain("wrote 2.txt");
      const thread = scene.rewind.thread(scene.rewind.threads()[0] ?? "");
      const turns = thread.checkpoints({ all: true }).filter((one) => one.kind === "turn");
      expect(turns.map((one) => one.parent)).toEqual([null, "c0", "c1", "c2", "c2"]);
    },
  );
});

describe("calls are repeated", () => {
  test("a model call that fails and is asked again is one checkpoint", async () => {
    let failures = 0;
    scene = await openScene(short());
    const failing = createMiddleware({
      name: "Failing",
      wrapModelCall: (request, handler) => {
        if (failures++ % 2 === 0) throw new Error("overloaded");
        return handler(request);
      },
    });
    const retry = modelRetryMiddleware({ maxRetries: 2, initialDelayMs: 1 } as never);
    const state = await run(makeAgent(scene, { before: [retry], after: [failing] }), start);
    expect(lastText(state)).toBe("end");
    const thread = scene.rewind.thread(scene.rewind.threads()[0] ?? "");
    expect(thread.checkpoints({ all: true }).map((one) => one.id)).toEqual(["c0", "c1", "c2", "c3"]);
    expect(scene.files()).toEqual(["a.txt"]);
  });

  test("a tool that fails and is run again", async () => {
    let failures = 0;
    scene = await openScene(short());
    const flaky = tool(
      (given: { path: string; text: string }) => {
        if (failures++ % 2 === 0) throw new Error("flaky");
        return fileTool(scene).invoke(given);
      },
      { name: "write_file", description: "w", schema: z.object({ path: z.string(), text: z.string() }) },
    );
    const retry = toolRetryMiddleware({ maxRetries: 2, initialDelayMs: 1 } as never);
    const state = await run(makeAgent(scene, { before: [retry], tools: [flaky] }), start);
    expect(lastText(state)).toBe("end");
    expect(scene.files()).toEqual(["a.txt"]);
    expect(failures).toBe(4);
  });

  test("a tool that throws is a result, as without the middleware", async () => {
    scene = await openScene((_request, all) =>
      all.includes("Please fix your mistakes") ? { content: "fixed" } : calls(call("broken", {})),
    );
    const broken = tool(
      () => {
        throw new Error("it broke");
      },
      { name: "broken", description: "b", schema: z.object({}) },
    );
    for (const attach of [true, false]) {
      const state = await run(makeAgent(scene, { tools: [broken], attach }), start);
      expect(texts(state)[2]).toBe("Error: it broke\n Please fix your mistakes.");
    }
  });
});

describe("structured output", () => {
  const schema = z.object({ city: z.string() });

  test("by a tool", async () => {
    scene = await openScene((request, all) => {
      if (all.includes("You are back")) {
        const name = request.tools?.map((one) => one.function.name).find((one) => one.startsWith("extract"));
        return calls(call(name ?? "none", { city: "Oslo" }));
      }
      return short()(request, all);
    });
    const state = await run(makeAgent(scene, { responseFormat: toolStrategy(schema) as never }), start);
    expect(state.structuredResponse).toEqual({ city: "Oslo" });
    expect(scene.files()).toEqual(["a.txt"]);
  });

  test("by the provider, also in the call that takes over a rewind from outside", async () => {
    scene = await openScene((request, all) => {
      const reply = short()(request, all) as { content?: string };
      if (all.includes("outside")) return { content: '{"city":"Rome"}' };
      return reply.content === "end" ? { content: '{"city":"Oslo"}' } : (reply as never);
    });
    const agent = makeAgent(scene, {
      responseFormat: providerStrategy(schema) as never,
      checkpointer: new MemorySaver(),
    });
    expect((await run(agent, start, onThread("t"))).structuredResponse).toEqual({ city: "Oslo" });
    await scene.rewind.thread("t").rewind({ to: "c0", lesson: "outside" });
    const state = await run(agent, user("next"), onThread("t"));
    expect(state.structuredResponse).toEqual({ city: "Rome" });
    expect(texts(state).join("\n")).not.toContain("wrote a.txt");
  });
});

describe("where the agent stands", () => {
  const shapes = (["v1", "v2"] as const).flatMap((version) =>
    [true, false].map((first) => ({ version, place: first ? "first" : "last" })),
  );
  test.each(shapes)("createAgent $version, the middleware $place", async ({ version, place }) => {
    const other = createMiddleware({ name: "Other", beforeModel: () => undefined, afterModel: () => undefined });
    scene = await openScene(short());
    const around = place === "first" ? { after: [other] } : { before: [other] };
    const state = await run(makeAgent(scene, { ...around, version } as never), start);
    expect(lastText(state)).toBe("end");
    expect(scene.files()).toEqual(["a.txt"]);
  });

  test("no node is added: the recursion limit reaches exactly as far as without", async () => {
    scene = await openScene((_request, all) =>
      all.includes("wrote b.txt")
        ? { content: "end" }
        : calls(write(all.includes("wrote a.txt") ? "b.txt" : "a.txt", "x")),
    );
    const plain = createAgent({ model: chatModel(scene.server), tools: [fileTool(scene)] });
    for (const recursionLimit of [4, 5, 6]) {
      const outcomes = await Promise.allSettled(
        [plain, makeAgent(scene)].map((one) => run(one, start, { recursionLimit })),
      );
      expect(outcomes[1]?.status).toBe(outcomes[0]?.status);
    }
  });

  test("a sibling that would return directly does not end the run", async () => {
    const direct = tool(() => "direct", { name: "direct", description: "d", schema: z.object({}), returnDirect: true });
    scene = await openScene((request, all) => {
      const reply = short()(request, all) as { toolCalls?: { name: string }[] };
      return reply.toolCalls?.[0]?.name === "rewind"
        ? calls(...(reply.toolCalls as never[]), call("direct", {}))
        : (reply as never);
    });
    const state = await run(makeAgent(scene, { tools: [fileTool(scene), direct] }), start);
    expect(lastText(state)).toBe("end");
  });

  test("as a node of a graph: a thread of its own, and the parent ends with the restored messages", async () => {
    scene = await openScene(short());
    const agent = makeAgent(scene) as unknown as { graph: never };
    const parent = new StateGraph(MessagesAnnotation)
      .addNode("coder", agent.graph)
      .addEdge(START, "coder")
      .compile({ checkpointer: new MemorySaver() });
    const state = await run(parent, { messages: [new HumanMessage("go")] }, onThread("p"));
    expect(lastText(state)).toBe("end");
    expect(texts(state).join("\n")).not.toContain("wrote b.txt");
    expect(scene.rewind.threads()).toEqual(["p/coder"]);
    expect(lastText(await run(parent, { messages: [new HumanMessage("more")] }, onThread("p")))).toBe("end");
    expect(scene.rewind.threads()).toEqual(["p/coder"]);
  });

  test("called by a tool of another agent: each call has a thread of its own", async () => {
    scene = await openScene((_request, all) => {
      if (all.includes("outer task"))
        return all.includes("inner says")
          ? { content: "outer end" }
          : calls(call("delegate", {}), call("delegate", {}));
      return all.includes("list of") || all.includes("Checkpoints, newest")
        ? { content: `sees ${occurrences(all, "[turn")}` }
        : calls(call("list_checkpoints", {}));
    });
    const inner = makeAgent(scene);
    const delegate = tool(async () => `inner says ${lastText(await run(inner, user("inner task")))}`, {
      name: "delegate",
      description: "d",
      schema: z.object({}),
    });
    const state = await run(
      makeAgent(scene, { tools: [delegate], checkpointer: new MemorySaver() }),
      user("outer task"),
      onThread("p"),
    );
    expect(lastText(state)).toBe("outer end");
    expect(texts(state).filter((text) => text.startsWith("inner says"))).toEqual([
      "inner says sees 1",
      "inner says sees 1",
    ]);
    expect(scene.rewind.threads().filter((name) => name.startsWith("p/tools:"))).toHaveLength(2);
  });

  test("case 89: another middleware's jump back to the model", async () => {
    let befores = 0;
    let jumped = false;
    const counting = createMiddleware({ name: "Counting", beforeModel: () => void befores++ });
    const jumping = createMiddleware({
      name: "Jumping",
      afterModel: {
        canJumpTo: ["model"],
        hook: (state) => {
          const last = state.messages.at(-1);
          if (jumped || last?.text !== "end") return undefined;
          jumped = true;
          return { jumpTo: "model" as const, messages: [new HumanMessage("again")] };
        },
      },
    });
    scene = await openScene(short());
    const state = await run(makeAgent(scene, { before: [counting], after: [jumping] }), start);
    expect(lastText(state)).toBe("end");
    expect(jumped).toBe(true);
    expect(befores).toBeGreaterThanOrEqual(4);
    expect(allText(scene.server.requests.at(-1) as never)).toContain("again");
  });
});
