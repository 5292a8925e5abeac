// A rewind inside of every way to run an agent: the run completes with the same state, files and requests.
import { MemorySaver } from "@langchain/langgraph";
import { afterEach, describe, expect, test } from "vitest";
import {
  allText,
  lastText,
  mainScript,
  makeAgent,
  occurrences,
  onThread,
  openScene,
  type Scene,
  type State,
  start,
} from "./harness.ts";

let scene: Scene;
afterEach(() => scene.close());

interface Streaming {
  stream(input: unknown, options: unknown): Promise<AsyncIterable<unknown>>;
  streamEvents(input: unknown, options: unknown): AsyncIterable<{ event: string; name?: string; data: unknown }>;
}

function expectOutcome(): void {
  expect(scene.files()).toEqual(["better.txt", "good.txt"]);
  expect(scene.server.requests).toHaveLength(6);
  for (const request of scene.server.requests.slice(4)) {
    const text = allText(request);
    expect(text).not.toContain("wrote bad.txt");
    expect(occurrences(text, "bad.txt was wrong; write better.txt")).toBe(1);
  }
}

// In the modes that show tokens LangChain asks the model for a stream.
describe("every mode", () => {
  const agentOf = (extra: object = {}) => makeAgent(scene, extra) as unknown as Streaming;

  const all = ["updates", "values", "messages", "custom", "tasks", "checkpoints", "debug"];
  test.each([...all.map((mode) => ({ streamMode: mode })), { streamMode: all }])(
    "stream $streamMode",
    async ({ streamMode }) => {
      scene = await openScene(mainScript());
      const chunks: unknown[] = [];
      const agent = agentOf({ checkpointer: new MemorySaver() });
      for await (const chunk of await agent.stream(start, { ...onThread("t"), streamMode })) chunks.push(chunk);
      if (streamMode !== "custom") expect(chunks.length).toBeGreaterThan(5);
      if (streamMode === "values") {
        expect(chunks.map((chunk) => (chunk as State).messages.length)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 4, 5, 6, 7]);
        expect(lastText(chunks.at(-1) as State)).toBe("all done");
      }
      if (streamMode === "updates") {
        expect(chunks.map((chunk) => Object.keys(chunk as object)[0])).toEqual(
          Array.from({ length: 11 }, (_, index) => (index % 2 === 0 ? "model_request" : "tools")),
        );
      }
      expectOutcome();
    },
  );

  test("streamEvents v2", async () => {
    scene = await openScene(mainScript());
    const ends: string[] = [];
    for await (const { event, name } of agentOf().streamEvents(start, { version: "v2" })) {
      if (event === "on_tool_end") ends.push(name ?? "");
    }
    expect(ends).toEqual(["write_file", "write_file", "list_checkpoints", "rewind", "write_file"]);
    expectOutcome();
  });
});

test("streamEvents v3", async () => {
  scene = await openScene(mainScript());
  const agent = makeAgent(scene) as unknown as {
    streamEvents(input: unknown, options: unknown): Promise<{ output: Promise<State> }>;
  };
  const output = await (await agent.streamEvents(start, { version: "v3" })).output;
  expect(lastText(output)).toBe("all done");
  expectOutcome();
});
