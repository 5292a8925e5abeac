// A process of its own: runs or resumes an agent of the kind that it is given, whose tool (or node) kills the process while it changes the files. Prints what came of it.
import { appendFileSync, existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { tool } from "@langchain/core/tools";
import {
  Command,
  END,
  interrupt,
  type LangGraphRunnableConfig,
  MessagesAnnotation,
  START,
  StateGraph,
} from "@langchain/langgraph";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import { ChatOpenAI } from "@langchain/openai";
import { openRewind } from "agentrewind";
import { rewindBackend } from "agentrewind/deepagents";
import { rewindMiddleware } from "agentrewind/langchain";
import { rewindCheckpointer, rewindGraph } from "agentrewind/langgraph";
import { createDeepAgent } from "deepagents";
import { createAgent } from "langchain";
import { z } from "zod";

const [base = "", baseURL = "", kind = "", durability = "", killIn = "", before = ""] = process.argv.slice(2);
const workspace = join(base, "work");
const rewind = await openRewind({ workspace, store: join(base, "store") });
const saver = SqliteSaver.fromConnString(join(base, "langgraph.db"));

/** Ends the process in the middle, the first time. */
function change(text: string): void {
  appendFileSync(join(workspace, "log.txt"), `${text}\n`);
  if (text !== killIn || existsSync(join(base, "killed"))) return;
  writeFileSync(join(workspace, "half"), "");
  writeFileSync(join(base, "killed"), "");
  process.kill(process.pid, "SIGKILL");
}

const note = tool(
  async ({ text }: { text: string }) => {
    if (text.startsWith("ask")) interrupt("may I?");
    if (text.startsWith("late")) await sleep(300);
    change(text);
    return `noted ${text}`;
  },
  { name: "note", description: "Note a text.", schema: z.object({ text: z.string() }) },
);
const model = new ChatOpenAI({ model: "scripted", apiKey: "none", maxRetries: 0, configuration: { baseURL } });

interface App {
  invoke(input: unknown, config: unknown): Promise<unknown>;
  getState(config: unknown): Promise<{ createdAt?: string; tasks: { interrupts: unknown[] }[] }>;
}

/** Nodes of one's own behind the gate, the second and third in a part of the graph. */
function nodes() {
  const rg = rewindGraph(rewind);
  const node = (text: string) => async (_state: unknown, given: LangGraphRunnableConfig) => {
    await rg.gate(given);
    change(text);
    return {};
  };
  const part = new StateGraph(MessagesAnnotation)
    .addNode("two", node("two"))
    .addNode("three", node("three"))
    .addEdge(START, "two")
    .addEdge("two", "three")
    .compile();
  return rg.attach(
    new StateGraph(MessagesAnnotation)
      .addNode("one", node("one"))
      .addNode("part", part)
      .addNode("four", node("four"))
      .addEdge(START, "one")
      .addEdge("one", "part")
      .addEdge("part", "four")
      .compile({ checkpointer: rewindCheckpointer(saver, rewind) }),
  );
}

function graph() {
  const rg = rewindGraph(rewind);
  const asked = model.bindTools([note, ...rg.tools]);
  return rg.attach(
    new StateGraph(MessagesAnnotation)
      .addNode(
        "agent",
        rg.modelNode(async (state: typeof MessagesAnnotation.State) => ({
          messages: [await asked.invoke(state.messages)],
        })),
      )
      .addNode("tools", rg.toolNode([note]))
      .addEdge(START, "agent")
      .addConditionalEdges(
        "agent",
        ({ messages }) => ((messages.at(-1) as { tool_calls?: unknown[] }).tool_calls?.length ? "tools" : END),
        ["tools", END],
      )
      .addEdge("tools", "agent")
      .compile({
        checkpointer: rewindCheckpointer(saver, rewind),
        ...(before === "" ? {} : { interruptBefore: [before as "tools"] }),
      }),
  );
}

function make(): App {
  if (kind === "nodes") return nodes() as unknown as App;
  if (kind === "langgraph") return graph() as unknown as App;
  const rw = rewindMiddleware(rewind);
  const given = { model, tools: [note], middleware: [rw], checkpointer: saver };
  const agent =
    kind === "deepagents"
      ? rw.attach(createDeepAgent({ ...given, backend: rewindBackend(rewind) } as never))
      : rw.attach(createAgent(given));
  return agent.graph as unknown as App;
}

const app = make();
const config = { configurable: { thread_id: "t" }, durability };
const state = await app.getState(config);
const paused = state.tasks?.some(({ interrupts }) => interrupts.length > 0);
const begin = { messages: [{ role: "user", content: "go" }] };
await app.invoke(state.createdAt === undefined ? begin : paused ? new Command({ resume: "yes" }) : null, config);
const left = rewind
  .thread("t")
  .checkpoints({ all: true })
  .filter((one) => one.kind === "safety")
  .map((one) => one.id);
const after = await app.getState(config);
const findings = await rewind.verify();
await rewind.close();
console.log(
  JSON.stringify({
    left,
    findings,
    paused: after.tasks.length > 0 && (after as { next?: unknown[] }).next?.length !== 0,
  }),
);
