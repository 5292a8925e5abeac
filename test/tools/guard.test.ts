// The read guard: what a conversation knows of a file follows the branch in force (case 72).
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { bindTools, type EnvironmentTool, type Rewind, type Thread } from "agentrewind";
import { beforeEach, expect, test } from "vitest";
import { makePlace, type Place, useRewind } from "../helpers/workspace.ts";

let place: Place;
let rewind: Rewind;
let thread: Thread;
let tools: Map<string, EnvironmentTool>;
let messages: string[];

beforeEach(async () => {
  place = makePlace();
  writeFileSync(join(place.workspace, "f.txt"), "one\ntwo\n");
  rewind = await useRewind(place);
  thread = rewind.thread("t");
  tools = new Map(bindTools(rewind, { thread: "t" }).map((one) => [one.name, one]));
  messages = [];
});

/** A turn as an adapter takes it: the pair, then the tool. */
async function turn(name: string, args: unknown): Promise<string> {
  const began = await thread.beginTurn({ messages: [...messages] });
  await began.gate();
  const { text, error } = (await tools.get(name)?.run(args)) ?? { text: "no tool" };
  messages.push(text);
  return error === undefined ? text : `${error.code}: ${text}`;
}

const read = () => turn("read", { path: "f.txt" });
const edit = (old: string, to: string) => turn("edit", { path: "f.txt", old, new: to });
const person = (text: string): void => writeFileSync(join(place.workspace, "f.txt"), text);
const content = (): string => readFileSync(join(place.workspace, "f.txt"), "utf8");

async function back(to: string, scope: "both" | "environment" | "context" = "both"): Promise<void> {
  const result = await thread.rewind({ to, scope });
  if (scope !== "environment") messages = [...(result.context.messages as string[])];
}

test("a file that is there must have been read; what the agent wrote itself it knows", async () => {
  expect(await edit("one", "1")).toMatch(/^FILE_NOT_READ: Not done: .*Read it first/);
  expect(await turn("write", { path: "f.txt", content: "all" })).toMatch(/^FILE_NOT_READ/);
  expect(content()).toBe("one\ntwo\n");
  await read();
  expect(await edit("one", "1")).toContain("Edited");
  expect(await edit("two", "2")).toContain("Edited");
  expect(await turn("write", { path: "f.txt", content: "all\n" })).toContain("Replaced");
  expect(await turn("write", { path: "new.txt", content: "x\n" })).toContain("Made");
  expect(await turn("edit", { path: "new.txt", old: "x", new: "y" })).toContain("Edited");
});

test("what changed since the last read is refused, whoever changed it, until it is read again", async () => {
  await read();
  person("one\nhers\n");
  expect(await edit("one", "1")).toMatch(/^FILE_CHANGED: Not done: f.txt has changed since you last read/);
  expect(await turn("write", { path: "f.txt", content: "mine" })).toMatch(/^FILE_CHANGED/);
  expect(content()).toBe("one\nhers\n");
  await read();
  expect(await edit("one", "1")).toContain("Edited");
  await turn("bash", { command: "sed -i s/hers/theirs/ f.txt" });
  expect(await edit("1", "one")).toMatch(/^FILE_CHANGED/);
});

test("case 72: back before the read, a second read gives the full text, and without it nothing is changed", async () => {
  await turn("list", {});
  const first = await read();
  expect(await read()).toBe(first);
  await back("c1");
  expect(messages).toHaveLength(1);
  expect(await edit("one", "1")).toMatch(/^FILE_NOT_READ/);
  expect(await read()).toBe(first);
  expect(first).toBe("1\tone\n2\ttwo");
  expect(await edit("one", "1")).toContain("Edited");
});

test("case 72: the files alone go back, and an edit with the old read stamp is refused", async () => {
  await turn("list", {});
  await read();
  await edit("one", "1");
  expect(content()).toBe("1\ntwo\n");
  await back("c1", "environment");
  expect(content()).toBe("one\ntwo\n");
  expect(await edit("two", "2")).toMatch(/^FILE_CHANGED/);
  await read();
  expect(await edit("two", "2")).toContain("Edited");
});

test("what was read before the target is still known after the rewind", async () => {
  await read();
  await turn("list", {});
  await edit("one", "1");
  await back("c2");
  expect(content()).toBe("one\ntwo\n");
  expect(await edit("two", "2")).toContain("Edited");
});

test("the conversation alone goes back: what it then holds of the file is not what the file holds", async () => {
  await read();
  await turn("list", {});
  await edit("one", "1");
  await back("c2", "context");
  expect(await edit("two", "2")).toMatch(/^FILE_CHANGED/);
});

test("an undo brings back what was known; a second rewind takes it again", async () => {
  await turn("list", {});
  await read();
  await turn("list", {});
  await back("c1");
  const undone = await thread.undo();
  messages = [...(undone.context.messages as string[])];
  expect(await edit("one", "1")).toContain("Edited");
  await back("c1");
  expect(await edit("two", "2")).toMatch(/^FILE_NOT_READ/);
});

test("a branch that goes on from the target knows nothing of the one that was left", async () => {
  await turn("list", {});
  await back("c0");
  await turn("list", {});
  await read();
  await turn("list", {});
  await back("c0");
  await turn("list", {});
  expect(await edit("one", "1")).toMatch(/^FILE_NOT_READ/);
});

test("another conversation and another process have to read for themselves", async () => {
  await read();
  const [other] = bindTools(rewind, { thread: "other", tools: ["edit"] });
  expect((await other?.run({ path: "f.txt", old: "one", new: "1" }))?.error?.code).toBe("FILE_NOT_READ");
  const [fresh] = bindTools(rewind, { thread: "t", tools: ["edit"] });
  expect((await fresh?.run({ path: "f.txt", old: "one", new: "1" }))?.error?.code).toBe("FILE_NOT_READ");
});

test("what a rewind overtook tells nothing and writes nothing", async () => {
  await turn("list", {});
  const ran = tools.get("bash")?.run({ command: "touch begun; sleep 30; touch late" });
  while (!(await rewind.environment.list("")).some(({ name }) => name === "begun"))
    await new Promise((resolve) => setTimeout(resolve, 5));
  await back("c0");
  expect((await ran)?.error?.code).toBe("STALE_EPOCH");
  expect((await rewind.environment.list("")).map(({ name }) => name)).toEqual(["f.txt"]);
});

test("time travel of a framework moves the knowledge as well", async () => {
  const at = (n: number) => ({ messages: [], options: { anchor: `m${n}` } });
  const step = async (n: number): Promise<void> => {
    const { messages: none, options } = at(n);
    await (await thread.beginTurn({ messages: none }, options)).gate();
  };
  await step(1);
  await tools.get("list")?.run({});
  await step(2);
  await tools.get("read")?.run({ path: "f.txt" });
  await step(3);
  await thread.align([{ anchor: "m2", tool: false }]);
  expect((await tools.get("edit")?.run({ path: "f.txt", old: "one", new: "1" }))?.error?.code).toBe("FILE_NOT_READ");
});
