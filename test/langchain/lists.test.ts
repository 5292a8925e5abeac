// Agents without a checkpointer: what their caller keeps of a conversation says where it stands, and moves no files by what it has cut.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { AIMessage, type BaseMessage, HumanMessage } from "@langchain/core/messages";
import { afterEach, expect, it } from "vitest";
import { calls, makeAgent, openScene, type Scene, type Script, write } from "./harness.ts";

let scene: Scene;
afterEach(async () => scene?.close());

const script: Script = (_request, all) => {
  if (all.includes("thanks") || all.includes("wrote two")) return { content: "said" };
  return calls(write(all.includes("wrote one") ? "two" : "one", "x"));
};

const withoutStates = (scene: Scene) => makeAgent(scene);

/** A run that writes two files; then a person makes one. */
async function worked() {
  scene = await openScene(script);
  const agent = withoutStates(scene);
  const say = async (messages: BaseMessage[]): Promise<BaseMessage[]> => {
    const result = await agent.invoke({ messages }, { configurable: { thread_id: "t1" } });
    return result.messages as BaseMessage[];
  };
  const messages = await say([new HumanMessage({ id: "first", content: "go" })]);
  writeFileSync(join(scene.workspace, "human"), "x");
  expect(scene.files()).toEqual(["human", "one", "two"]);
  return { say, messages };
}

it.each([
  ["only the words", (list: BaseMessage[]) => [list[0], list.at(-1)]],
  ["the newest words", (list: BaseMessage[]) => [list.at(-1)]],
  [
    "everything but results and their calls",
    (list: BaseMessage[]) =>
      list.filter(
        (one) => one.getType() !== "tool" && !(AIMessage.isInstance(one) && (one.tool_calls?.length ?? 0) > 0),
      ),
  ],
  ["all of it", (list: BaseMessage[]) => list],
])("%s and a new message: the files stay, also in another process", async (_name, keep) => {
  const { messages } = await worked();
  await scene.reopen();
  const agent = withoutStates(scene);
  const list = [...keep(messages), new HumanMessage("thanks")] as BaseMessage[];
  await agent.invoke({ messages: list }, { configurable: { thread_id: "t1" } });
  expect(scene.files()).toEqual(["human", "one", "two"]);
  expect(scene.rewind.thread("t1").checkpoints()).toHaveLength(4);
});

it("the first message again: a run that begins on the files as they are", async () => {
  const { say } = await worked();
  await say([new HumanMessage({ id: "first", content: "go, and thanks" })]);
  expect(scene.files()).toEqual(["human", "one", "two"]);
  expect(scene.rewind.thread("t1").checkpoints()).toHaveLength(4);
});

it("F-49: an older reply takes what the agent did since back, and keeps what a person did", async () => {
  const { say, messages } = await worked();
  await say([...messages.slice(0, 3), new HumanMessage("thanks")]);
  expect(scene.files()).toEqual(["human", "one"]);
});
