// Agents over LangGraph that keep their state in SQLite, as their users begin and resume them.
import { join } from "node:path";
import { tool } from "@langchain/core/tools";
import { END, type LangGraphRunnableConfig, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import { ChatOpenAI } from "@langchain/openai";
import { rewindBackend } from "agentrewind/deepagents";
import { rewindMiddleware } from "agentrewind/langchain";
import { rewindCheckpointer, rewindGraph } from "agentrewind/langgraph";
import { createDeepAgent } from "deepagents";
import { createAgent } from "langchain";
import { z } from "zod";
import type { Owner } from "./owner.ts";

interface App {
  invoke(input: unknown, config: unknown): Promise<unknown>;
  getState(config: unknown): Promise<{ createdAt?: string }>;
}

/** The process ends when a state, or with "pending" in front the results of one task of a step, are stored. */
function saverOf({ base, killStored, end }: Owner): SqliteSaver {
  const saver = SqliteSaver.fromConnString(join(base, "langgraph.db"));
  const [, pending, text] = /^(pending )?(.*)$/.exec(killStored ?? "") ?? [];
  const look = (what: unknown, isPending: boolean): void => {
    const isIt = isPending === (pending !== undefined) && JSON.stringify(what).includes(`noted ${text}`);
    if (killStored !== undefined && isIt) end();
  };
  const [put, putWrites] = [saver.put.bind(saver), saver.putWrites.bind(saver)];
  saver.put = async (...given) => {
    const result = await put(...given);
    look(given[1].channel_values, false);
    return result;
  };
  saver.putWrites = async (...given) => {
    await putWrites(...given);
    look(given[1], true);
  };
  return saver;
}

const schema = z.object({ text: z.string() });

/** @returns what runs the agent to its end, once more from where it is */
export function graphOf(owner: Owner): () => Promise<void> {
  const { baseURL, kind, rewind, act } = owner;
  const saver = saverOf(owner);
  const run = async (given: { text: string }): Promise<string> => act(given.text);
  const tools = ["note", "send"].map((name) => tool(run, { name, description: "Note a text.", schema }));
  const model = new ChatOpenAI({ model: "scripted", apiKey: "none", maxRetries: 0, configuration: { baseURL } });

  function graph() {
    const rg = rewindGraph(rewind);
    const asked = model.bindTools([...tools, ...rg.tools]);
    return rg.attach(
      new StateGraph(MessagesAnnotation)
        .addNode(
          "agent",
          rg.modelNode(async (state: typeof MessagesAnnotation.State) => ({
            messages: [await asked.invoke(state.messages)],
          })),
        )
        .addNode("tools", rg.toolNode(tools))
        .addEdge(START, "agent")
        .addConditionalEdges(
          "agent",
          ({ messages }) => ((messages.at(-1) as { tool_calls?: unknown[] }).tool_calls?.length ? "tools" : END),
          ["tools", END],
        )
        .addEdge("tools", "agent")
        .compile({ checkpointer: rewindCheckpointer(saver, rewind) }),
    );
  }

  /** Nodes of one's own behind the gate; "two" and "late three" run beside each other. */
  function nodes() {
    const rg = rewindGraph(rewind);
    const node = (given: string) => async (_state: unknown, config: LangGraphRunnableConfig) => {
      await rg.gate(config);
      return { messages: [{ role: "user", content: await act(given) }] };
    };
    return rg.attach(
      new StateGraph(MessagesAnnotation)
        .addNode("one", node("one"))
        .addNode("two", node("two"))
        .addNode("three", node("late three"))
        .addNode("four", node("four"))
        .addEdge(START, "one")
        .addEdge("one", "two")
        .addEdge("one", "three")
        .addEdge(["two", "three"], "four")
        .addEdge("four", END)
        .compile({ checkpointer: rewindCheckpointer(saver, rewind) }),
    );
  }

  function make(): App {
    if (kind === "nodes") return nodes() as unknown as App;
    if (kind === "langgraph") return graph() as unknown as App;
    const rw = rewindMiddleware(rewind);
    const given = { model, tools, middleware: [rw], checkpointer: saver };
    const agent = kind.startsWith("deepagents")
      ? rw.attach(createDeepAgent({ ...given, backend: rewindBackend(rewind) } as never))
      : rw.attach(createAgent(given));
    return agent.graph as unknown as App;
  }

  const app = make();
  const config = { configurable: { thread_id: "t" }, durability: "sync" };
  const begin = { messages: [{ role: "user", content: "go" }] };
  return async () => {
    const { createdAt } = await app.getState(config);
    const said = owner.says === undefined ? null : { messages: [{ role: "user", content: owner.says }] };
    await app.invoke(createdAt === undefined ? begin : said, config);
  };
}
