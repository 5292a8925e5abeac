// A run that starts over after a crash: the bound tools of the conversation are not run again.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createOpenAI } from "@ai-sdk/openai";
import { environmentTools, withRewind } from "agentrewind/ai-sdk";
import { generateText, stepCountIs } from "ai";
import { afterEach, expect, it } from "vitest";
import { call, calls, openScene, type Scene } from "../langchain/harness.ts";

let scene: Scene;
afterEach(async () => scene?.close());

async function run(dies: boolean): Promise<string> {
  const openai = createOpenAI({ apiKey: "none", baseURL: scene.server.baseUrl });
  const { text } = await generateText({
    model: withRewind(openai.chat("scripted"), scene.rewind, { thread: "t1" }),
    tools: environmentTools(scene.rewind, { thread: "t1" }),
    prompt: "go",
    maxRetries: 0,
    stopWhen: stepCountIs(5),
    prepareStep({ stepNumber }) {
      if (dies && stepNumber === 1) throw new Error("the process ended here");
      return {};
    },
  });
  return text;
}

it("their results are given again, without a model call until where it was", async () => {
  scene = await openScene((_request, all) =>
    all.includes("written once")
      ? { content: "done" }
      : calls(call("bash", { command: "echo written once | tee -a log" })),
  );
  await expect(run(true)).rejects.toThrow("the process ended here");
  await scene.reopen();
  expect(await run(false)).toBe("done");
  expect(scene.server.requests).toHaveLength(2);
  expect(readFileSync(join(scene.workspace, "log"), "utf8")).toBe("written once\n");
});
