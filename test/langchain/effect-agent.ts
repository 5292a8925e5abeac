// A process of its own: an agent that sends a mail outside of the workspace, run or resumed, with the fault that it is given.
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { tool } from "@langchain/core/tools";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import { ChatOpenAI } from "@langchain/openai";
import { openRewind } from "agentrewind";
import { rewindMiddleware } from "agentrewind/langchain";
import { createAgent } from "langchain";
import { z } from "zod";

const [base = "", baseURL = "", input = ""] = process.argv.slice(2);
const rewind = await openRewind({
  workspace: join(base, "work"),
  store: join(base, "store"),
  effects: { send_mail: { class: "irreversible", describe: ({ to }) => `mail to ${to}`, key: ["to"] } },
});

const sendMail = tool(
  ({ to }) => {
    appendFileSync(join(base, "mails"), `${to}\n`);
    return `sent to ${to}`;
  },
  { name: "send_mail", description: "Send a mail.", schema: z.object({ to: z.string(), text: z.string() }) },
);

const rw = rewindMiddleware(rewind);
const agent = rw.attach(
  createAgent({
    model: new ChatOpenAI({ model: "scripted", apiKey: "none", maxRetries: 0, configuration: { baseURL } }),
    tools: [sendMail],
    middleware: [rw],
    checkpointer: SqliteSaver.fromConnString(join(base, "langgraph.db")),
  }),
);
const state = await agent.invoke(input === "" ? (null as never) : { messages: [{ role: "user", content: input }] }, {
  configurable: { thread_id: "t" },
  durability: "sync",
});
const effects = rewind.thread("t").effects();
const findings = await rewind.verify();
await rewind.close();
console.log(JSON.stringify({ texts: state.messages.map((message) => message.text), effects, findings }));
