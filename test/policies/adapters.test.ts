// Agents over LangChain and over OpenAI's client under each policy: the agent takes a wrong step back where its turn was captured, and is told where it was not.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { MemorySaver } from "@langchain/langgraph";
import type { OpenOptions } from "agentrewind";
import { describe, expect, it } from "vitest";
import {
  allText,
  call,
  calls,
  history,
  lastText,
  mainScript,
  makeAgent,
  onThread,
  openScene,
  run,
  type Scene,
  type Script,
  start,
  write,
} from "../langchain/harness.ts";
import { chatLoop, client, responsesLoop, writesFiles } from "../openai/harness.ts";

type Agent = (scene: Scene) => Promise<string>;

const agents: readonly [string, Agent, string][] = [
  [
    "LangChain",
    async (scene) => lastText(await run(makeAgent(scene, { checkpointer: new MemorySaver() }), start, onThread("t1"))),
    "t1",
  ],
  ["OpenAI, Chat Completions", (scene) => chatLoop(client(scene), writesFiles(scene), "go"), "t1"],
  ["OpenAI, Responses", (scene) => responsesLoop(client(scene), writesFiles(scene), "go"), "t1"],
];

/** In front of the wrong step the model gives the moment a name. */
const namesFirst: Script = (request, all) => {
  if (!all.includes("You are back at") && all.includes("wrote good.txt") && !all.includes("bad.txt"))
    return calls(call("checkpoint", { label: "good is there" }), write("bad.txt", "oops"));
  return mainScript()(request, all);
};

const policies: readonly {
  name: string;
  capture: NonNullable<OpenOptions["capture"]>;
  script: Script;
  restorable: string[];
}[] = [
  { name: "every", capture: "every", script: mainScript(), restorable: ["c0", "c1", "c2", "c3", "c4", "c5"] },
  { name: "effects", capture: "effects", script: mainScript(), restorable: ["c0", "c1", "c2", "c3", "c4", "c5"] },
  { name: "before", capture: { before: ["overwrite"] }, script: mainScript(), restorable: ["c0", "c1"] },
  { name: "after", capture: { after: ["overwrite"] }, script: mainScript(), restorable: ["c1", "c2"] },
  { name: "explicit", capture: "explicit", script: namesFirst, restorable: ["c1"] },
  {
    name: "a function",
    capture: ({ calls: made }) => made.some(({ input }) => JSON.stringify(input).includes("bad.txt")),
    script: mainScript(),
    restorable: ["c1", "c2"],
  },
];

describe.each(agents)("%s", (_name, agent, name) => {
  it.each(policies)("$name: takes a wrong step back", async ({ capture, script, restorable }) => {
    const scene = await openScene(script, { capture });
    expect(await agent(scene)).toBe("all done");
    expect(scene.files()).toEqual(["better.txt", "good.txt"]);
    expect(readFileSync(join(scene.workspace, "good.txt"), "utf8")).toBe("yes");
    const made = scene.rewind.thread(name).checkpoints({ all: true });
    const offered = made.filter(({ state, kind }) => state !== "not-restorable" && kind === "turn").map(({ id }) => id);
    for (const id of restorable.slice(0, 2)) expect(offered).toContain(id);
    if (capture !== "every" && capture !== "effects") expect(offered.length).toBeLessThan(made.length);
    await scene.close();
  });

  it("explicit: a rewind to what was not captured is refused with what can be taken, and the run goes on", async () => {
    const scene = await openScene(
      (request, all) => {
        if (all.includes("cannot be restored: not captured, as capture is set (explicit).")) {
          expect(all).toContain("The nearest one before it is c0.");
          return all.includes("wrote better.txt") ? { content: "all done" } : calls(write("better.txt", "ok"));
        }
        if (request.messages.length <= 2)
          return calls(call("checkpoint", { label: "start" }), write("good.txt", "yes"));
        return mainScript()(request, all);
      },
      { capture: "explicit" },
    );
    expect(await agent(scene)).toBe("all done");
    expect(scene.files()).toEqual(["bad.txt", "better.txt", "good.txt"]);
    expect(scene.server.requests.map(allText).join("\n")).toMatch(/c1 \[turn 2\].*\(cannot be restored: not captured/);
    await scene.close();
  });
});

it("LangChain: time travel to a turn that was not captured is refused, to one that was it brings the files", async () => {
  const scene = await openScene(
    (_request, all) => {
      if (all.includes("wrote b.txt")) return { content: "done" };
      return all.includes("wrote a.txt") ? calls(write("b.txt", "2")) : calls(write("a.txt", "1"));
    },
    { capture: { after: ["overwrite"] } },
  );
  const agent = makeAgent(scene, { checkpointer: new MemorySaver() });
  await run(agent, start, onThread("t1"));
  const states = await history(agent, onThread("t1"));
  const at = (text: string, next: string) =>
    states.find(
      ({ values, next: [node] }) => values.messages.at(-1)?.text.includes(text) === true && node?.startsWith(next),
    )?.config;
  await expect(run(agent, null, at("go", "model"))).rejects.toThrow(/c0 cannot be restored: not captured/);
  expect(scene.files()).toEqual(["a.txt", "b.txt"]);
  await run(agent, null, at("wrote a.txt", "model"));
  expect(scene.files()).toEqual(["a.txt", "b.txt"]);
  await scene.close();
});

it("OpenAI: a loop that starts over is refused where the files of a recorded reply were not captured", async () => {
  const script: Script = (_request, all) =>
    all.includes("wrote a.txt") ? calls(write("b.txt", "2")) : calls(write("a.txt", "1"));
  const scene = await openScene(script, { capture: { before: ["delete"] } });
  const broken = (): Promise<string> => {
    const tool = writesFiles(scene);
    const breaking: typeof tool = (name, args) => {
      if (args.path !== "b.txt") return tool(name, args);
      tool(name, args);
      throw new Error("the loop ended");
    };
    return chatLoop(client(scene), breaking, "go").catch((error) => `${error}`);
  };
  expect(await broken()).toContain("the loop ended");
  await scene.reopen();
  expect(await broken()).toContain("c0 cannot be restored: not captured");
  expect(scene.files()).toEqual(["a.txt", "b.txt"]);
  await scene.close();
});
