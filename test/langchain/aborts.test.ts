// Runs that are stopped: the next one works, and a rewind can always reach a good point.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { AIMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { MemorySaver } from "@langchain/langgraph";
import { afterEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { paired, withOnlyCall } from "../../adapters/graph-state/pairing.ts";
import {
  call,
  calls,
  lastText,
  makeAgent,
  onThread,
  openScene,
  run,
  type Scene,
  start,
  stored,
  texts,
  user,
  write,
} from "./harness.ts";

let scene: Scene | undefined;
afterEach(async () => {
  await scene?.close();
  scene = undefined;
});

test("case 67: stopped during a model call", async () => {
  const stop = new AbortController();
  const here = await openScene((_request, all) => {
    if (all.includes("You are back")) return { content: "end" };
    if (all.includes("second")) return calls(call("rewind", { checkpoint: "c0", lesson: "start over" }));
    if (!all.includes("wrote a.txt")) return calls(write("a.txt", "x"));
    stop.abort();
    return { content: "too late" };
  });
  scene = here;
  const agent = makeAgent(here, { checkpointer: new MemorySaver() });
  await expect(run(agent, start, { ...onThread("t"), signal: stop.signal })).rejects.toThrow(/abort/i);
  const state = await run(agent, user("second"), onThread("t"));
  expect(lastText(state)).toBe("end");
  expect(texts(state)).not.toContain("too late");
  expect(here.files()).toEqual([]);
});

test("case 67: stopped during a tool: its call is answered, in the request and in the state", async () => {
  const stop = new AbortController();
  const here = await openScene((request, all) => {
    if (all.includes("You are back")) return { content: "end" };
    if (all.includes("second")) {
      expect(request.messages.filter((message) => message.role === "tool")).toHaveLength(2);
      expect(all).toContain("No result: the run was stopped");
      return calls(call("rewind", { checkpoint: "c0", lesson: "start over" }));
    }
    return calls(write("quick.txt", "x"), write("slow.txt", "x"));
  });
  scene = here;
  const slow = tool(
    async ({ path }: { path: string }) => {
      writeFileSync(join(here.workspace, path), "x");
      if (path === "slow.txt") {
        stop.abort();
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      return `wrote ${path}`;
    },
    { name: "write_file", description: "w", schema: z.object({ path: z.string(), text: z.string() }) },
  );
  const agent = makeAgent(here, { checkpointer: new MemorySaver(), tools: [slow] });
  await expect(run(agent, start, { ...onThread("t"), signal: stop.signal })).rejects.toThrow(/abort/i);
  const state = await run(agent, user("second"), onThread("t"));
  expect(lastText(state)).toBe("end");
  expect(here.files()).toEqual([]);
  expect(texts(state).slice(0, 2)).toEqual(["go", "second"]);
  expect((await stored(agent, onThread("t"))).next).toEqual([]);
});

describe("pairing", () => {
  test("case 68: a call without a result gets one behind its reply's results; complete lists stay the same", () => {
    const reply = new AIMessage({
      content: "",
      tool_calls: [
        { id: "a", name: "x", args: {} },
        { id: "b", name: "y", args: {} },
      ],
    });
    const result = new ToolMessage({ tool_call_id: "a", content: "ok" });
    const complete = paired([reply, result, new HumanMessage("next")]);
    expect(complete.map((message) => (message as ToolMessage).tool_call_id)).toEqual([undefined, "a", "b", undefined]);
    expect(paired(complete)).toBe(complete);
    expect(paired([reply]).map((message) => message.getType())).toEqual(["ai", "tool", "tool"]);
  });

  test("a reply is cut down to one call in every form in which providers repeat calls", () => {
    const reply = new AIMessage({
      id: "m",
      content: [
        { type: "text", text: "hm" },
        { type: "tool_use", id: "a", name: "x", input: {} },
        { type: "tool_use", id: "b", name: "rewind", input: {} },
        { type: "thinking", thinking: "…" },
      ] as never,
      tool_calls: [
        { id: "a", name: "x", args: {} },
        { id: "b", name: "rewind", args: {} },
      ],
      additional_kwargs: {
        tool_calls: [
          { id: "a", type: "function", function: { name: "x", arguments: "{}" } },
          { id: "b", type: "function", function: { name: "rewind", arguments: "{}" } },
        ],
      },
      response_metadata: {
        output: [
          { type: "reasoning", id: "rs" },
          { type: "function_call", id: "fc_1", call_id: "a" },
          { type: "function_call", id: "fc_2", call_id: "b" },
        ],
      },
    });
    const kept = withOnlyCall(reply, "b");
    expect(kept.tool_calls?.map((one) => one.id)).toEqual(["b"]);
    expect((kept.content as { type: string }[]).map((block) => block.type)).toEqual(["text", "tool_use", "thinking"]);
    expect(kept.additional_kwargs.tool_calls?.map((one) => one.id)).toEqual(["b"]);
    expect((kept.response_metadata.output as { id: string }[]).map((item) => item.id)).toEqual(["rs", "fc_2"]);
    expect(kept.id).toBe("m");
  });
});
