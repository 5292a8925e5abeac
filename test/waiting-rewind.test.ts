// A rewind from outside on an idle thread waits for the next run: whatever lies in between, a run that simply goes on takes it over; only who names a state passes it over.
import { MemorySaver } from "@langchain/langgraph";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  calls,
  history,
  makeAgent,
  onThread,
  openScene,
  run,
  type Scene,
  type State,
  textOfMessage,
  texts,
  user,
  write,
} from "./langchain/harness.ts";
import { makeGraph } from "./langgraph/harness.ts";

let scene: Scene;
let stop: AbortController | undefined;
let seen: string[];
afterEach(() => scene.close());

const config = onThread("t");
const thread = () => scene.rewind.thread("t");

/** What the person's last message asks for as "make NAMES" is written, a file a turn; anything else is answered. */
beforeEach(async () => {
  seen = [];
  stop = undefined;
  scene = await openScene(async (request, all) => {
    seen = [...all.matchAll(/wrote (\S+)/g)].map(([, name]) => name as string);
    if (stop !== undefined) {
      await thread().settled();
      stop.abort();
    }
    const said = request.messages.filter(({ role }) => role === "user").map(textOfMessage);
    const [, names = ""] = /^make (.*)/.exec(said.findLast((one) => !one.includes("back at c")) ?? "") ?? [];
    const next = names.split(" ").find((name) => name !== "" && !seen.includes(name));
    return next === undefined ? { content: "done" } : calls(write(next, "x"));
  });
});

type Graph = Parameters<typeof history>[0] & {
  readonly graph: { updateState(config: unknown, values: unknown, node?: string): Promise<unknown> };
};

const makers: [string, () => Graph][] = [
  ["langchain", () => makeAgent(scene, { checkpointer: new MemorySaver() }) as unknown as Graph],
  ["langgraph", () => ({ ...runnable(makeGraph(scene).app) }) as unknown as Graph],
];

const runnable = (app: ReturnType<typeof makeGraph>["app"]) => ({
  graph: app,
  invoke: (input: never, given: never) => app.invoke(input, given),
});

describe.each(makers)("%s", (_name, make) => {
  let agent: Graph;
  beforeEach(() => {
    agent = make();
  });

  const points = async (next: string, suits: (state: State) => boolean = () => true) =>
    (await history(agent, config)).filter((one) => one.next[0] === next && suits(one.values));

  /** A fork from where the second input was about to be taken: it asks no model. */
  async function forkWithoutModel(): Promise<void> {
    const [before] = await points("__start__", ({ messages }) => messages.length > 0);
    const fork = await agent.graph.updateState(before?.config, { messages: [{ role: "user", content: "forked" }] });
    const asked = scene.server.requests.length;
    await run(agent, null, fork);
    expect(scene.server.requests).toHaveLength(asked);
  }

  test.each(["an answer", "a tool"])("behind a fork that asked no model, after a run with %s", async (second) => {
    await run(agent, user("make 1 2"), config);
    await run(agent, user(second === "a tool" ? "make 3" : "hello"), config);
    await forkWithoutModel();
    await thread().rewind({ to: "c1" });
    expect(scene.files()).toEqual(["1"]);
    await run(agent, user("hello"), config);
    expect(seen).toEqual(["1"]);
    expect(scene.files()).toEqual(["1"]);
  });

  test("a model call that fails behind it does not count, nor does a new message then", async () => {
    await run(agent, user("make 1 2"), config);
    await run(agent, user("hello"), config);
    await forkWithoutModel();
    await thread().rewind({ to: "c1" });
    for (let n = 0; n < 2; n++) {
      stop = new AbortController();
      await expect(run(agent, user("hello"), { ...config, signal: stop.signal })).rejects.toThrow();
    }
    stop = undefined;
    const state = await run(agent, user("hello"), config);
    expect(seen).toEqual(["1"]);
    expect(texts(state).join("\n")).toContain("You are back at c1");
  });

  test("behind a model call that failed, and a new message", async () => {
    await run(agent, user("make 1 2"), config);
    await thread().rewind({ to: "c1" });
    stop = new AbortController();
    await expect(run(agent, user("hello"), { ...config, signal: stop.signal })).rejects.toThrow();
    stop = undefined;
    const state = await run(agent, user("hello"), config);
    expect(seen).toEqual(["1"]);
    expect(texts(state).join("\n")).toContain("You are back at c1");
  });

  test("who names another state passes it over; the next run goes on from there", async () => {
    await run(agent, user("make 1 2 3"), config);
    const [point] = await points("tools", ({ messages }) => messages.length === 4);
    await thread().rewind({ to: "c1" });
    const state = await run(agent, null, point?.config);
    expect(texts(state).join("\n")).not.toContain("You are back at");
    expect(scene.files()).toEqual(["1", "2", "3"]);
    await run(agent, user("make 4"), config);
    expect(seen).toEqual(["1", "2", "3", "4"]);
  });

  test("one that the conversation has taken over is not told again with the next", async () => {
    await run(agent, user("make 1 2"), config);
    await thread().rewind({ to: "c1" });
    await run(agent, user("hello there"), config);
    await thread().rewind({ to: "c0", scope: "environment" });
    const state = await run(agent, user("and now"), config);
    expect(texts(state).filter((text) => text.includes("You are back at"))).toHaveLength(1);
    expect(texts(state).filter((text) => text === "done")).toHaveLength(2);
    expect(texts(state).join("\n")).toContain("The files are back at c0");
  });
});
