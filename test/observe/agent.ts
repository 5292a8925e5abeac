// An agent of its own for the tests of observing: LangChain with a shell, a tool of an irreversible effect, and AgentRewind, which it opens as anybody would.
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { tool } from "@langchain/core/tools";
import { ChatOpenAI } from "@langchain/openai";
import { openRewind } from "agentrewind";
import { rewindMiddleware } from "agentrewind/langchain";
import { createAgent } from "langchain";
import { z } from "zod";

const [base = "", baseURL = "", ending = ""] = process.argv.slice(2);
const rewind = await openRewind({
  workspace: join(base, "workspace"),
  store: join(base, "store"),
  effects: { send_mail: { class: "irreversible" } },
});

const bash = tool(
  async ({ command }) => {
    if (command === "kill the agent") process.kill(process.pid, "SIGKILL");
    const { exitCode, stdout } = await rewind.environment.exec(command);
    return `exit code ${exitCode}\n${stdout}`;
  },
  { name: "bash", description: "Runs a command line.", schema: z.object({ command: z.string() }) },
);
const sendMail = tool(
  ({ to }) => {
    appendFileSync(join(base, "mails"), `${to}\n`);
    return `sent to ${to}`;
  },
  { name: "send_mail", description: "Sends a mail.", schema: z.object({ to: z.string() }) },
);

const rw = rewindMiddleware(rewind);
const agent = rw.attach(
  createAgent({
    model: new ChatOpenAI({ model: "scripted", apiKey: "none", maxRetries: 0, configuration: { baseURL } }),
    tools: [bash, sendMail],
    middleware: [rw],
  }),
);
const state = await agent.invoke({ messages: [{ role: "user", content: "tidy up" }] });
console.log(state.messages.at(-1)?.text);
if (ending !== "open") await rewind.close();
