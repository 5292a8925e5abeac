// Runs of OpenAI's agents SDK pass the exported adapter suite, over both APIs, streamed and not.
import { createRequire } from "node:module";
import { Agent, type AgentInputItem, OpenAIProvider, Runner, tool } from "@openai/agents";
import { type AdapterInitializer, adapterSuite } from "agentrewind/conformance";
import { withRewind } from "agentrewind/openai-agents";
import { describe, test } from "vitest";
import { z } from "zod";

// The SDK brings a version of OpenAI's client of its own.
const { OpenAI } = createRequire(createRequire(import.meta.url).resolve("@openai/agents"))("openai");

const overRunner = (useResponses: boolean, stream: boolean): AdapterInitializer => ({
  name: "openai-agents",
  start({ baseUrl, rewind, thread, tool: { name, description, run } }) {
    const openAIClient = new OpenAI({ apiKey: "none", baseURL: baseUrl, maxRetries: 0 });
    const modelProvider = withRewind(new OpenAIProvider({ openAIClient, useResponses }), rewind, { thread });
    const parameters = z.object({ path: z.string(), text: z.string() });
    const execute = modelProvider.rewind.execute(name, run);
    const agent = new Agent({
      name: "agent",
      model: "scripted",
      tools: [tool({ name, description, parameters, execute })],
    });
    const runner = new Runner({ modelProvider, tracingDisabled: true });
    let history: AgentInputItem[] = [];
    return {
      async say(content) {
        const input: AgentInputItem[] = [...history, { role: "user", content }];
        const options = { maxTurns: 40 };
        if (stream) {
          const result = await runner.run(agent, input, { ...options, stream: true });
          for await (const _ of result);
          await result.completed;
          history = result.history;
          return result.finalOutput ?? "";
        }
        const result = await runner.run(agent, input, options);
        history = result.history;
        return result.finalOutput ?? "";
      },
    };
  },
});

describe.each([
  ["Responses", true],
  ["Chat Completions", false],
])("%s", (_name, useResponses) => {
  describe.each([
    ["whole", false],
    ["streamed", true],
  ])("%s", (_how, stream) => {
    for (const { name, run } of adapterSuite(overRunner(useResponses, stream))) test(name, run);
  });
});
