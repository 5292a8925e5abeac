// The main job with LangChain: an agent takes back a wrong step inside its running loop.
import type { BaseMessage } from "@langchain/core/messages";
import { MemorySaver } from "@langchain/langgraph";
import { afterEach, expect, test } from "vitest";
import { allText, call, calls, mainScript, makeAgent, openScene, type Scene, write } from "./harness.ts";

let scene: Scene;
afterEach(() => scene.close());

const start = { messages: [{ role: "user", content: "go" }] };
const lastText = (state: { messages: BaseMessage[] }): string => state.messages.at(-1)?.text ?? "";

test("files and conversation return together, and the same run goes on with the lesson", async () => {
  scene = await openScene(mainScript());
  const agent = makeAgent(scene, { checkpointer: new MemorySaver() });
  const state = (await agent.invoke(start, { configurable: { thread_id: "t" } })) as { messages: BaseMessage[] };
  expect(lastText(state)).toBe("all done");
  expect(scene.files()).toEqual(["better.txt", "good.txt"]);
  const after = scene.server.requests.slice(4);
  expect(after).toHaveLength(2);
  for (const request of after) {
    const text = allText(request);
    expect(text).not.toContain("wrote bad.txt");
    expect(text).not.toContain("list_checkpoints");
    expect(text.split("bad.txt was wrong; write better.txt")).toHaveLength(2);
  }
  expect(state.messages.map((message) => message.text).join("\n")).not.toContain("wrote bad.txt");
  const thread = scene.rewind.thread("t");
  expect(thread.checkpoints({ all: true }).map((one) => [one.id, one.parent])).toEqual([
    ["c0", null],
    ["c1", "c0"],
    ["c2", "c1"],
    ["c3", "c2"],
    ["c4", "c1"],
    ["c5", "c4"],
  ]);
  expect(thread.lessons().map((one) => one.text)).toEqual(["bad.txt was wrong; write better.txt"]);
});

test("siblings of a valid rewind do not run, wherever it stands among them", async () => {
  for (const at of [0, 1, 2]) {
    scene = await openScene(
      mainScript({
        rewindReply: (rewind) => {
          const siblings = [write("sibling-1.txt", "x"), write("sibling-2.txt", "x")];
          siblings.splice(at, 0, rewind as never);
          return { content: "hm", toolCalls: siblings };
        },
      }),
    );
    const state = (await makeAgent(scene).invoke(start)) as { messages: BaseMessage[] };
    expect(lastText(state)).toBe("all done");
    expect(scene.files()).toEqual(["better.txt", "good.txt"]);
    if (at < 2) await scene.close();
  }
});

test("a refused rewind drops its siblings too, with one result each", async () => {
  scene = await openScene((request, all) => {
    if (all.includes("There is no checkpoint c77")) {
      expect(all.split("Not run: it was sent together with a rewind that was refused").length).toBe(3);
      return { content: "understood" };
    }
    expect(request.messages).toHaveLength(1);
    return calls(write("a.txt", "x"), call("rewind", { checkpoint: "c77", lesson: "none" }), write("b.txt", "x"));
  });
  const state = (await makeAgent(scene).invoke(start)) as { messages: BaseMessage[] };
  expect(lastText(state)).toBe("understood");
  expect(scene.files()).toEqual([]);
});
