// A graph of one's own, and the five lines that let its agent rewind and its time travel bring the files along.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { tool } from "@langchain/core/tools";
import { END, MemorySaver, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { toolsCondition } from "@langchain/langgraph/prebuilt";
import { ChatOpenAI } from "@langchain/openai";
import type { Rewind } from "agentrewind";
import { rewindCheckpointer, rewindGraph } from "agentrewind/langgraph";
import { z } from "zod";

export function buildGraph(rewind: Rewind, baseURL: string) {
  const writeFile = tool(
    ({ path, text }) => {
      writeFileSync(join(rewind.workspace, path), text);
      return `wrote ${path}`;
    },
    { name: "write_file", description: "Write a file.", schema: z.object({ path: z.string(), text: z.string() }) },
  );
  const rg = rewindGraph(rewind); // 1

  const model = new ChatOpenAI({ model: "scripted", apiKey: "none", maxRetries: 0, configuration: { baseURL } });
  const bound = model.bindTools([writeFile, ...rg.tools]); // 2: its tools beside yours
  const callModel = async ({ messages }: typeof MessagesAnnotation.State) => ({
    messages: [await bound.invoke(messages)],
  });

  const graph = new StateGraph(MessagesAnnotation)
    .addNode("agent", rg.modelNode(callModel)) // 3: instead of callModel
    .addNode("tools", rg.toolNode([writeFile])) // 4: instead of new ToolNode([writeFile])
    .addEdge(START, "agent")
    .addConditionalEdges("agent", toolsCondition, ["tools", END])
    .addEdge("tools", "agent");
  const app = rg.attach(graph.compile({ checkpointer: rewindCheckpointer(new MemorySaver(), rewind) })); // 5
  return { app, rg };
}
