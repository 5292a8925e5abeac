// A process of its own for the crash tests: runs or resumes the agent of the folder that it is given, and prints what the state then holds.
import { appendFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { tool } from "@langchain/core/tools";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import { ChatOpenAI } from "@langchain/openai";
import { openRewind } from "agentrewind";
import { rewindMiddleware } from "agentrewind/langchain";
import { createAgent } from "langchain";
import { z } from "zod";

const [base = "", baseURL = "", input = "", durability = "sync", killIn = ""] = process.argv.slice(2);
const workspace = join(base, "work");
const rewind = await openRewind({ workspace, store: join(base, "store") });

const writeFile = tool(
  ({ path, text }) => {
    appendFileSync(join(base, "tools.log"), `${path}=${text}\n`);
    writeFileSync(join(workspace, path), text);
    if (`${path}=${text}` === killIn) process.kill(process.pid, "SIGKILL");
    return `wrote ${path}=${text}`;
  },
  { name: "write_file", description: "Write a file.", schema: z.object({ path: z.string(), text: z.string() }) },
);

const rw = rewindMiddleware(rewind);
const agent = rw.attach(
  createAgent({
    model: new ChatOpenAI({ model: "scripted", apiKey: "none", maxRetries: 0, configuration: { baseURL } }),
    tools: [writeFile],
    middleware: [rw],
    checkpointer: SqliteSaver.fromConnString(join(base, "langgraph.db")),
  }),
);
const state = await agent.invoke(input === "" ? (null as never) : { messages: [{ role: "user", content: input }] }, {
  configurable: { thread_id: "t" },
  durability: durability as "sync",
});
const findings = await rewind.verify();
await rewind.close();
console.log(JSON.stringify({ texts: state.messages.map((message) => message.text), findings }));
