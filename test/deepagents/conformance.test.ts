// createDeepAgent with the rewind backend passes the exported adapter suite.
import { tool } from "@langchain/core/tools";
import { MemorySaver } from "@langchain/langgraph";
import { ChatOpenAI } from "@langchain/openai";
import { type AdapterInitializer, adapterSuite } from "agentrewind/conformance";
import { rewindBackend } from "agentrewind/deepagents";
import { rewindMiddleware } from "agentrewind/langchain";
import { createDeepAgent } from "deepagents";
import { describe, test } from "vitest";

const deepagents: AdapterInitializer = {
  name: "deepagents",
  toolName: "save",
  start({ baseUrl, rewind, thread, tool: { name, description, parameters, run } }) {
    const rw = rewindMiddleware(rewind);
    const save = tool((args) => run(args as never), { name, description, schema: parameters as never });
    const agent = rw.attach(
      createDeepAgent({
        model: new ChatOpenAI({
          model: "scripted",
          apiKey: "none",
          maxRetries: 0,
          configuration: { baseURL: baseUrl },
        }),
        tools: [save],
        backend: rewindBackend(rewind),
        middleware: [rw],
        checkpointer: new MemorySaver(),
      }),
    );
    const config = { configurable: { thread_id: thread } };
    return {
      async say(content) {
        const state = await agent.invoke({ messages: [{ role: "user", content }] }, config);
        return state.messages.at(-1)?.text ?? "";
      },
    };
  },
};

describe("createDeepAgent", () => {
  for (const { name, run } of adapterSuite(deepagents)) test(name, run);
});
