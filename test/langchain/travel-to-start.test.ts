// LangGraph's time travel to before the first model call: the input gets new ids there, and the files are those of the beginning all the same.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { MemorySaver } from "@langchain/langgraph";
import { afterEach, describe, expect, test } from "vitest";
import { makeDeepAgent, write as writeDeep } from "../deepagents/harness.ts";
import {
  calls,
  history,
  lastText,
  makeAgent,
  onThread,
  openScene,
  run,
  type Scene,
  start,
  user,
  write,
} from "./harness.ts";

let scene: Scene;
let filesAtCall: string[][] = [];
afterEach(() => scene.close());

const config = onThread("t");
const graphOf = (agent: unknown) =>
  (agent as { graph: { updateState(config: unknown, values: unknown): Promise<object> } }).graph;

/** Writes one file in each of two turns; what was there before is a person's. */
async function begin(kind: string): Promise<object> {
  const make = kind === "langchain" ? write : (path: string, text: string) => writeDeep(`/${path}`, text);
  scene = await openScene((request) => {
    filesAtCall.push(scene.files());
    const done = request.messages.filter(({ role }) => role === "tool").length;
    return done === 2 ? { content: "end" } : calls(make(`f${done}`, "1"));
  });
  writeFileSync(join(scene.workspace, "theirs"), "1");
  const saver = { checkpointer: new MemorySaver() };
  return kind === "langchain" ? makeAgent(scene, saver) : makeDeepAgent(scene, saver);
}

const firstOf = async (agent: unknown): Promise<object> => (await history(agent, config)).at(-1)?.config as object;

describe.each(["langchain", "deepagents"])("%s", (kind) => {
  test.each([
    ["nothing new", async (agent: unknown, first: object) => run(agent, null, first)],
    ["an input", async (agent: unknown, first: object) => run(agent, user("again"), first)],
    [
      "a fork",
      async (agent: unknown, first: object) => run(agent, null, await graphOf(agent).updateState(first, start)),
    ],
  ])("with %s", async (_, travel) => {
    const agent = await begin(kind);
    await run(agent, start, config);
    expect(scene.files()).toEqual(["f0", "f1", "theirs"]);
    for (let time = 0; time < 2; time++) {
      filesAtCall = [];
      expect(lastText(await travel(agent, await firstOf(agent)))).toBe("end");
      expect(filesAtCall).toEqual([["theirs"], ["f0", "theirs"], ["f0", "f1", "theirs"]]);
    }
    filesAtCall = [];
    await run(agent, user("and on"), config);
    expect(filesAtCall[0]).toEqual(["f0", "f1", "theirs"]);
  });
});

test("where the beginning was pruned it is refused, and nothing moves", async () => {
  const agent = await begin("langchain");
  await run(agent, start, config);
  await scene.rewind.prune({ keepLast: 1 });
  await expect(run(agent, null, await firstOf(agent))).rejects.toMatchObject({ cause: { code: "NOT_RESTORABLE" } });
  expect(scene.files()).toEqual(["f0", "f1", "theirs"]);
});

test("a run that names no checkpoint begins on the files as they are", async () => {
  const agent = await begin("langchain");
  await run(agent, start, config);
  filesAtCall = [];
  await run(agent, start, onThread("u"));
  await run(agent, start, config);
  expect(filesAtCall[0]).toEqual(["f0", "f1", "theirs"]);
  expect(scene.files()).toEqual(["f0", "f1", "theirs"]);
});
