// Frameworks go their own ways where they are observed: back in time, on from where nobody looked, twice over the same list. No file moves, and nothing is refused.
import { MemorySaver } from "@langchain/langgraph";
import type { ObserveReport } from "agentrewind";
import type { ChatCompletionMessageParam } from "openai/resources/chat/completions";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  allText,
  call,
  calls,
  history,
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
} from "../langchain/harness.ts";
import { makeGraph } from "../langgraph/harness.ts";
import { chatLoop, client, responsesLoop, writesFiles } from "../openai/harness.ts";

let scene: Scene;
let report: ObserveReport | undefined;
const own = ["rewind", "list_checkpoints", "checkpoint"];

/** Two files, then the end. */
const script = (all: string) => {
  if (all.includes("wrote two")) return { content: "end" };
  return calls(all.includes("wrote one") ? write("two", "2") : write("one", "1"));
};

beforeEach(async () => {
  report = undefined;
  scene = await openScene((_request, all) => script(all), {
    inspector: {
      observe: true,
      report: (found) => {
        report = found;
      },
    },
  });
});
afterEach(async () => {
  if (report === undefined) await scene.close();
  for (const { tools } of scene.server.requests)
    expect(tools?.map((one) => one.function.name).filter((name) => own.includes(name))).toEqual([]);
});

const config = onThread("t");

describe.each([
  ["LangChain", () => makeAgent(scene, { checkpointer: new MemorySaver() })],
  ["LangGraph", () => asAgent(makeGraph(scene, { saver: new MemorySaver() }).app)],
] as const)("%s", (_name, make) => {
  test("goes back to an earlier state, and the files stay", async () => {
    const agent = make();
    expect(lastText(await run(agent, start, config))).toBe("end");
    expect(scene.files()).toEqual(["one", "two"]);
    const point = (await history(agent, config)).find(
      ({ next, values }) => next[0] === "tools" && !texts(values).some((text) => text.includes("wrote")),
    );
    expect(lastText(await run(agent, null, point?.config))).toBe("end");
    expect(scene.files()).toEqual(["one", "two"]);
    await scene.close();
    expect(report?.turns).toBeGreaterThanOrEqual(4);
    expect(report?.classes.files.turns).toBeGreaterThanOrEqual(2);
  });

  test("goes on with a conversation that began before it was observed", async () => {
    const agent = make();
    const earlier = [
      { role: "user", content: "before" },
      { role: "assistant", content: "said before" },
    ];
    expect(lastText(await run(agent, { messages: [...earlier, ...user("go").messages] }, config))).toBe("end");
  });
});

/** `history` asks an agent for its graph. */
function asAgent<Graph extends object>(graph: Graph): Graph & { readonly graph: Graph } {
  return Object.assign(graph, { graph });
}

describe.each([
  ["Chat Completions", chatLoop],
  ["Responses", responsesLoop],
] as const)("OpenAI's client, %s", (_name, loop) => {
  test("a list that began before it was observed, and the same list once more", async () => {
    const openai = client(scene);
    const earlier: ChatCompletionMessageParam[] = [
      { role: "user", content: "before" },
      { role: "assistant", content: "said before" },
    ];
    expect(await loop(openai, writesFiles(scene), "go", structuredClone(earlier))).toBe("end");
    const asked = scene.server.requests.length;
    expect(allText(scene.server.requests[0] as never)).toContain("said before");
    // The model is asked again, as without us: no reply comes from a record.
    expect(await loop(openai, writesFiles(scene), "go", structuredClone(earlier))).toBe("end");
    expect(scene.server.requests).toHaveLength(2 * asked);
    await scene.close();
    // The same list at the same place is the same turn.
    expect(report?.turns).toBe(2 * asked - 1);
  });

  test("another list of which nothing is known, and a loop that starts over in the middle", async () => {
    const openai = client(scene);
    const known: ChatCompletionMessageParam[] = [{ role: "user", content: "before" }];
    expect(await loop(openai, writesFiles(scene), "go", known)).toBe("end");
    const other: ChatCompletionMessageParam[] = [
      { role: "user", content: "something else" },
      { role: "assistant", content: "said elsewhere" },
    ];
    expect(await loop(openai, writesFiles(scene), "do something new", other)).toBe("end");
    const asked = scene.server.requests.length;
    const broken = (): never => {
      throw new Error("the tool broke the loop");
    };
    const begun = structuredClone(known.slice(0, 1));
    await expect(loop(client(scene), broken, "go on", structuredClone(begun))).rejects.toThrow("broke");
    await expect(loop(client(scene), broken, "go on", structuredClone(begun))).rejects.toThrow("broke");
    expect(scene.server.requests).toHaveLength(asked + 2);
  });

  test("a call of a tool that it was not offered has an answer that can be read", async () => {
    await scene.close();
    report = undefined;
    scene = await openScene(
      (_request, all) =>
        all.includes("not run:") || all.includes("opened to be observed")
          ? { content: "understood" }
          : calls(call("rewind", { checkpoint: "c0", lesson: "it was wrong" })),
      { inspector: { observe: true, report() {} } },
    );
    expect(await loop(client(scene), writesFiles(scene), "go")).toBe("understood");
  });
});
