// createAgent with the middleware passes the exported adapter suite, with and without a checkpointer.
import { tool } from "@langchain/core/tools";
import { MemorySaver } from "@langchain/langgraph";
import { ChatOpenAI } from "@langchain/openai";
import { type AdapterInitializer, adapterSuite } from "agentrewind/conformance";
import { rewindMiddleware } from "agentrewind/langchain";
import { createAgent } from "langchain";
import { describe, test } from "vitest";

const langchain: AdapterInitializer = {
  name: "langchain",
  start({ baseUrl, rewind, thread, tool: { name, description, parameters, run } }) {
    const rw = rewindMiddleware(rewind);
    const agent = rw.attach(
      createAgent({
        model: new ChatOpenAI({
          model: "scripted",
          apiKey: "none",
          maxRetries: 0,
          configuration: { baseURL: baseUrl },
        }),
        tools: [tool((args) => run(args as never), { name, description, schema: parameters as never })],
        middleware: [rw],
        checkpointer: new MemorySaver(),
      }),
    );
    const config = { configurable: { thread_id: thread }, recursionLimit: 100 };
    return {
      async say(content) {
        const state = await agent.invoke({ messages: [{ role: "user", content }] }, config);
        return state.messages.at(-1)?.text ?? "";
      },
    };
  },
};

describe("createAgent", () => {
  for (const { name, run } of adapterSuite(langchain)) test(name, run);
});
