// A process of its own for the crash tests: runs or resumes the graph of the folder that it is given, and prints what the state then holds and whether every state
// of LangGraph's finds the files that its messages tell of.
import { appendFileSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { tool } from "@langchain/core/tools";
import { END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import { ChatOpenAI } from "@langchain/openai";
import { openRewind } from "agentrewind";
import { rewindCheckpointer, rewindGraph } from "agentrewind/langgraph";
import { z } from "zod";

const [base = "", baseURL = "", input = "", durability = "sync", killIn = "", killAt = ""] = process.argv.slice(2);
const workspace = join(base, "work");
const rewind = await openRewind({ workspace, store: join(base, "store") });
const die = (): void => process.kill(process.pid, "SIGKILL") as unknown as undefined;

/** `killAt`: put, before or after, and which. Counted over this process. */
const [method = "", moment = "", which = "0"] = killAt.split(":");
let count = 0;
const saver = SqliteSaver.fromConnString(join(base, "langgraph.db"));
for (const name of ["put", "putWrites"] as const) {
  const original = saver[name].bind(saver) as (...given: unknown[]) => Promise<unknown>;
  (saver as unknown as Record<string, unknown>)[name] = async (...given: unknown[]) => {
    const here = name === method && ++count === Number(which);
    if (here && moment === "before") die();
    const result = await original(...given);
    if (here && moment === "after") die();
    return result;
  };
}

const writeFile = tool(
  ({ path, text }) => {
    appendFileSync(join(base, "tools.log"), `${path}=${text}\n`);
    writeFileSync(join(workspace, path), text);
    if (`${path}=${text}` === killIn) die();
    return `wrote ${path}=${text}`;
  },
  { name: "write_file", description: "Write a file.", schema: z.object({ path: z.string(), text: z.string() }) },
);

const rg = rewindGraph(rewind);
const model = new ChatOpenAI({
  model: "scripted",
  apiKey: "none",
  maxRetries: 0,
  configuration: { baseURL },
}).bindTools([writeFile, ...rg.tools]);
const app = rg.attach(
  new StateGraph(MessagesAnnotation)
    .addNode(
      "agent",
      rg.modelNode(async (state: typeof MessagesAnnotation.State) => ({
        messages: [await model.invoke(state.messages)],
      })),
    )
    .addNode("tools", rg.toolNode([writeFile]))
    .addEdge(START, "agent")
    .addConditionalEdges(
      "agent",
      ({ messages }) => ((messages.at(-1) as { tool_calls?: unknown[] }).tool_calls?.length ? "tools" : END),
      ["tools", END],
    )
    .addEdge("tools", "agent")
    .compile({ checkpointer: rewindCheckpointer(saver, rewind) }),
);
const config = { configurable: { thread_id: "t" } };
const begun = (await app.getState(config)).createdAt !== undefined;
const state = await app.invoke(input === "" || begun ? null : { messages: [{ role: "user", content: input }] }, {
  ...config,
  durability: durability as "sync",
});

const told = (messages: readonly { text: string }[]): Record<string, string> =>
  Object.fromEntries(
    messages.flatMap(({ text }) => [...text.matchAll(/^wrote (\S+)=(\S+)$/g)].map(([, path, value]) => [path, value])),
  );
const found = (): Record<string, string> =>
  Object.fromEntries(readdirSync(workspace).map((name) => [name, readFileSync(join(workspace, name), "utf8")]));
const sorted = (record: Record<string, string>): string => JSON.stringify(Object.entries(record).sort());
const wrong: string[] = [];
const points: { values: { messages?: { text: string }[] }; config: object }[] = [];
for await (const one of app.getStateHistory(config)) points.push(one as never);
for (const { values, config: at } of points) {
  await rg.checkout(at);
  const expected = told(values.messages ?? []);
  if (sorted(found()) !== sorted(expected)) wrong.push(`${sorted(found())} instead of ${sorted(expected)}`);
}
await rg.checkout(config);
const findings = await rewind.verify();
await rewind.close();
console.log(
  JSON.stringify({ texts: state.messages.map((message) => message.text), findings, wrong, states: points.length }),
);
