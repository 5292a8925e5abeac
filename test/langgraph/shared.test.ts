// Two threads in one workspace: time travel of one takes nothing away from the other.
import { HumanMessage } from "@langchain/core/messages";
import { MemorySaver } from "@langchain/langgraph";
import { afterEach, describe, expect, test } from "vitest";
import { history, makeAgent } from "../langchain/harness.ts";
import {
  calls,
  history as graphHistory,
  lastText,
  makeGraph,
  onThread,
  openScene,
  run,
  type Scene,
  type Snapshot,
  user,
  write,
} from "./harness.ts";

let scene: Scene;
let app: Parameters<typeof run>[0] & { updateState(config: unknown, values: unknown, as?: string): Promise<object> };
let states: () => Promise<Snapshot[]>;
let checkout: ((config: object) => Promise<unknown>) | undefined;
afterEach(() => scene.close());

/** What a person says names the files that are written, "-" none. */
async function begin(kind: string): Promise<void> {
  scene = await openScene((request) => {
    const at = request.messages.findLastIndex(({ role }) => role === "user");
    const wanted = `${request.messages[at]?.content}`.split(" ");
    const next = wanted[request.messages.slice(at).filter(({ role }) => role === "tool").length];
    return next === undefined || next === "-" ? { content: "end" } : calls(write(next, "1"));
  });
  if (kind === "langgraph") {
    const made = makeGraph(scene, { saver: new MemorySaver() });
    app = made.app as never;
    checkout = made.rg.checkout;
    states = () => graphHistory(made.app, onThread("A"));
  } else {
    const agent = makeAgent(scene, { checkpointer: new MemorySaver() });
    app = agent as never;
    (app as { updateState?: unknown }).updateState = agent.graph.updateState.bind(agent.graph);
    checkout = undefined;
    states = () => history(agent, onThread("A")) as never;
  }
}

/** Of A, before the model was asked behind its first tool. */
const early = async (): Promise<Snapshot> =>
  (await states()).find(({ values, next }) => values.messages?.length === 3 && !next.includes("tools")) as Snapshot;

const refusal = { code: "SHARED_ENVIRONMENT", details: { threads: ["B"], paths: ["b1", "b2"] } };

describe.each(["langgraph", "langchain"])("%s", (kind) => {
  // LangChain wraps what a middleware throws.
  const refused = kind === "langgraph" ? refusal : { cause: refusal };

  test("is refused where it would take back the other's work, which stays, and both go on", async () => {
    await begin(kind);
    await run(app, user("a1 a2"), onThread("A"));
    await run(app, user("b1 b2"), onThread("B"));
    const all = ["a1", "a2", "b1", "b2"];
    const newest = (await states())[0] as Snapshot;
    const { config } = await early();
    await expect(run(app, null, config)).rejects.toMatchObject(refused);
    await expect(run(app, user("x"), config)).rejects.toMatchObject(refused);
    const fork = await app.updateState(config, { messages: [new HumanMessage("y")] }, "tools");
    await expect(run(app, null, fork)).rejects.toMatchObject(refused);
    if (checkout !== undefined) await expect(checkout(config)).rejects.toMatchObject(refused);
    expect(scene.files()).toEqual(all);

    expect(lastText(await run(app, user("b3"), onThread("B")))).toBe("end");
    expect(lastText(await run(app, user("a3"), newest.config))).toBe("end");
    expect(scene.files()).toEqual([...all, "a3", "b3"].sort());
    const branch = await scene.rewind.fork("c1", { thread: "A" });
    expect((await branch[0]?.environment.list(""))?.map(({ name }) => name)).toEqual(["a1"]);
    await branch[0]?.abandon();
  });

  test("goes on where nothing of the other's would be lost", async () => {
    await begin(kind);
    await run(app, user("a1 a2"), onThread("A"));
    const { config } = await early();
    await run(app, user("-"), onThread("B"));
    await run(app, null, config);
    expect(scene.files()).toEqual(["a1", "a2"]);
    await run(app, user("b1"), onThread("B"));
    await scene.rewind.thread("B").rewind({ to: "c1" });
    expect(scene.files()).toEqual(["a1", "a2"]);
    await run(app, user("a9"), config);
    expect(scene.files()).toEqual(["a1", "a9"]);
  });

  test("the other's work before that moment is none of it", async () => {
    await begin(kind);
    await run(app, user("b1"), onThread("B"));
    await run(app, user("a1 a2"), onThread("A"));
    await run(app, user("a9"), (await early()).config);
    expect(scene.files()).toEqual(["a1", "a9", "b1"]);
  });
});
