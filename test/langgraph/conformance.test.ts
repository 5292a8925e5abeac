// A hand-built graph passes the exported adapter suite.
import { tool } from "@langchain/core/tools";
import {
  END,
  type LangGraphRunnableConfig,
  MemorySaver,
  MessagesAnnotation,
  START,
  StateGraph,
} from "@langchain/langgraph";
import { ChatOpenAI } from "@langchain/openai";
import { type AdapterInitializer, adapterSuite } from "agentrewind/conformance";
import { rewindCheckpointer, rewindGraph } from "agentrewind/langgraph";
import { describe, test } from "vitest";

const langgraph: AdapterInitializer = {
  name: "langgraph",
  start({ baseUrl, rewind, thread, tool: { name, description, parameters, run } }) {
    const rg = rewindGraph(rewind);
    const write = tool((args) => run(args as never), { name, description, schema: parameters as never });
    const model = new ChatOpenAI({
      model: "scripted",
      apiKey: "none",
      maxRetries: 0,
      configuration: { baseURL: baseUrl },
    }).bindTools([write, ...rg.tools]);
    const callModel = async (state: typeof MessagesAnnotation.State, _config: LangGraphRunnableConfig) => ({
      messages: [await model.invoke(state.messages)],
    });
    const hasCalls = ({ messages }: typeof MessagesAnnotation.State): string =>
      (messages.at(-1) as { tool_calls?: unknown[] } | undefined)?.tool_calls?.length ? "tools" : END;
    const graph = new StateGraph(MessagesAnnotation)
      .addNode("agent", rg.modelNode(callModel))
      .addNode("tools", rg.toolNode([write]))
      .addEdge(START, "agent")
      .addConditionalEdges("agent", hasCalls, ["tools", END])
      .addEdge("tools", "agent");
    const app = rg.attach(graph.compile({ checkpointer: rewindCheckpointer(new MemorySaver(), rewind) }));
    const config = { configurable: { thread_id: thread }, recursionLimit: 100 };
    return {
      async say(content) {
        const state = await app.invoke({ messages: [{ role: "user", content }] }, config);
        return state.messages.at(-1)?.text ?? "";
      },
    };
  },
};

describe("StateGraph", () => {
  for (const { name, run } of adapterSuite(langgraph)) test(name, run);
});
