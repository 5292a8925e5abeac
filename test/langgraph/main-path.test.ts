// The agent takes back its own wrong step inside of the running graph: messages, every kind of channel, and the files.
import type { BaseMessage } from "@langchain/core/messages";
import { ToolMessage } from "@langchain/core/messages";
import { type ToolRuntime, tool } from "@langchain/core/tools";
import {
  Annotation,
  Command,
  DeltaValue,
  END,
  MemorySaver,
  MessagesAnnotation,
  MessagesDeltaValue,
  MessagesValue,
  messagesStateReducer,
  ReducedValue,
  START,
  StateGraph,
  StateSchema,
} from "@langchain/langgraph";
import { rewindCheckpointer, rewindGraph } from "agentrewind/langgraph";
import { afterEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { chatModel } from "../langchain/harness.ts";
import {
  afterModel,
  allText,
  call,
  calls,
  durabilities,
  fileTool,
  lastText,
  mainScript,
  makeGraph,
  occurrences,
  onThread,
  openScene,
  run,
  type Scene,
  savers,
  start,
  texts,
  write,
} from "./harness.ts";

let scene: Scene;
afterEach(() => scene.close());

const config = onThread("t");

describe.each(savers)("%s", (_name, make) => {
  test.each(durabilities)("durability %s: back with a lesson, and the same run goes on", async (durability) => {
    scene = await openScene(mainScript());
    const { app } = makeGraph(scene, { saver: make() });
    const state = await run(app, start, { ...config, durability });
    expect(lastText(state)).toBe("all done");
    expect(scene.files()).toEqual(["better.txt", "good.txt"]);
    expect(occurrences(texts(state).join("\n"), "bad.txt was wrong; write better.txt")).toBe(1);
    expect(texts(state).join("\n")).not.toContain("wrote bad.txt");
    // Two decisions of the kept branch, two after the rewind; those that were taken back do not count.
    expect(state.decisions).toBe(3);
    const thread = scene.rewind.thread("t");
    expect(thread.checkpoints().map((one) => one.kind)).toEqual(["turn", "turn", "turn", "turn"]);
    expect(thread.checkpoints()[1]?.changes?.added).toEqual(["good.txt"]);
    const after = scene.server.requests.slice(5).map(allText);
    for (const text of after) expect(text).not.toContain("wrote bad.txt");
  });
});

test("without a checkpointer, and with one that is not wrapped", async () => {
  scene = await openScene(mainScript());
  const { app } = makeGraph(scene, { pair: false });
  expect(lastText(await run(app, start, config))).toBe("all done");
  expect(scene.files()).toEqual(["better.txt", "good.txt"]);
  await scene.close();
  scene = await openScene(mainScript());
  const alone = makeGraph(scene, { pair: false, saver: null });
  expect(lastText(await run(alone.app, start))).toBe("all done");
  expect(scene.files()).toEqual(["better.txt", "good.txt"]);
});

const list = (values: unknown[]) => values.flat() as string[];
const schemas = {
  Annotation: () =>
    Annotation.Root({
      ...MessagesAnnotation.spec,
      last: Annotation<string>(),
      list: Annotation<string[]>({ reducer: (a, b) => [...a, ...b], default: () => [] }),
    }),
  StateSchema: () =>
    new StateSchema({
      messages: MessagesValue,
      last: z.string().optional(),
      list: new ReducedValue(
        z.array(z.string()).default(() => []),
        { inputSchema: z.array(z.string()), reducer: (a: string[], b: string[]) => [...a, ...b] },
      ),
    }),
  "StateSchema with delta channels": () =>
    new StateSchema({
      messages: MessagesDeltaValue,
      last: z.string().optional(),
      list: new DeltaValue(
        z.array(z.string()).default(() => []),
        { reducer: (a: string[], b: unknown[]) => [...(a ?? []), ...list(b)] } as never,
      ),
    }),
};

describe.each(Object.entries(schemas))("%s", (_name, schema) => {
  test.each(["paired", "plain"] as const)("every channel goes back (%s checkpointer)", async (kind) => {
    scene = await openScene(mainScript({ rewindReply: (rewind) => calls(rewind, write("sibling.txt", "x")) }));
    const rg = rewindGraph(scene.rewind);
    const writing = tool(
      async (given: { path: string; text: string }, runtime: ToolRuntime) =>
        new Command({
          update: {
            last: given.path,
            list: [given.path],
            messages: [
              new ToolMessage({ content: await fileTool(scene).invoke(given), tool_call_id: runtime.toolCallId }),
            ],
          },
        }),
      { name: "write_file", description: "w", schema: z.object({ path: z.string(), text: z.string() }) },
    );
    const model = chatModel(scene.server).bindTools([writing, ...rg.tools]);
    const graph = new StateGraph(schema() as never as typeof MessagesAnnotation)
      .addNode(
        "agent",
        rg.modelNode(async (state: { messages: BaseMessage[] }) => ({
          messages: [await model.invoke(state.messages)],
        })),
      )
      .addNode("tools", rg.toolNode([writing]))
      .addEdge(START, "agent")
      .addConditionalEdges("agent", afterModel, ["tools", END])
      .addEdge("tools", "agent");
    const saver = new MemorySaver();
    const app = rg.attach(
      graph.compile({ checkpointer: kind === "plain" ? saver : rewindCheckpointer(saver, scene.rewind) }),
    );
    const state = await run(app, start, config);
    expect(lastText(state)).toBe("all done");
    expect(scene.files()).toEqual(["better.txt", "good.txt"]);
    expect(state.list).toEqual(["good.txt", "better.txt"]);
    expect(state.last).toBe("better.txt");
    // As the saver gives them back.
    const stored = (await app.getState(config)).values as typeof state;
    expect(stored.list).toEqual(["good.txt", "better.txt"]);
    expect(texts(stored)).toEqual(texts(state));
  });
});

test("the messages may be in a channel of another name", async () => {
  scene = await openScene(mainScript());
  const rg = rewindGraph(scene.rewind, { messagesKey: "chat" });
  const Chat = Annotation.Root({
    chat: Annotation<BaseMessage[]>({ reducer: messagesStateReducer, default: () => [] }),
  });
  const model = chatModel(scene.server).bindTools([fileTool(scene), ...rg.tools]);
  const app = rg.attach(
    new StateGraph(Chat)
      .addNode(
        "agent",
        rg.modelNode(async (state: typeof Chat.State) => ({ chat: [await model.invoke(state.chat)] })),
      )
      .addNode("tools", rg.toolNode([fileTool(scene)]))
      .addEdge(START, "agent")
      .addConditionalEdges("agent", ({ chat }) => afterModel({ messages: chat }), ["tools", END])
      .addEdge("tools", "agent")
      .compile({ checkpointer: rewindCheckpointer(new MemorySaver(), scene.rewind) }),
  );
  const state = (await run(app, { chat: start.messages }, config)) as unknown as { chat: BaseMessage[] };
  expect(state.chat.at(-1)?.text).toBe("all done");
  expect(scene.files()).toEqual(["better.txt", "good.txt"]);
  expect(state.chat.map((one) => one.text).join("\n")).not.toContain("wrote bad.txt");
});

test.each(["keep", "refuse", "drop"] as const)("what a person said meanwhile: %s", async (humanMessages) => {
  let told = 0;
  scene = await openScene((_request, all) => {
    if (all.includes("You are back at")) return { content: "done" };
    if (all.includes("Not done")) return { content: "refused" };
    if (all.includes("second thing")) {
      told++;
      return calls(call("rewind", { checkpoint: "c0", lesson: "begin anew" }));
    }
    return all.includes("wrote a.txt") ? { content: "first done" } : calls(write("a.txt", "1"));
  });
  const { app } = makeGraph(scene, { options: { humanMessages } });
  await run(app, start, config);
  const state = await run(app, { messages: [{ role: "user", content: "second thing" }] }, config);
  expect(told).toBe(1);
  expect(lastText(state)).toBe(humanMessages === "refuse" ? "refused" : "done");
  expect(scene.files()).toEqual(humanMessages === "refuse" ? ["a.txt"] : []);
  expect(texts(state).includes("second thing")).toBe(humanMessages !== "drop");
});

test("markers show the ids and are not stored", async () => {
  const seen: string[] = [];
  scene = await openScene((_request, all) => {
    seen.push(all);
    return all.includes("wrote a.txt") ? { content: "end" } : calls(write("a.txt", "1"));
  });
  const { app } = makeGraph(scene, { options: { markers: true } });
  const state = await run(app, start, config);
  expect(seen[1]).toContain("[checkpoint c0]");
  expect(seen[1]).toMatch(/wrote a\.txt\n\[checkpoint c\d\]/);
  expect(texts(state).join("\n")).not.toContain("[checkpoint");
});
