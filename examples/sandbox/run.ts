// An agent in a sandbox: its service dies, and a rewind brings it back with what it had in memory.
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ChatOpenAI } from "@langchain/openai";
import { type Finding, openRewind } from "agentrewind";
import { startModelServer, textOf } from "agentrewind/conformance";
import { environmentTools, rewindMiddleware } from "agentrewind/langchain";
import { createAgent } from "langchain";
import { decide, port, task } from "./script.ts";

export interface ExampleRun {
  readonly answer: string;
  /** What the tools and the rewind told the model, in order, abandoned turns included. */
  readonly told: readonly string[];
  /** What the service says to the next who asks. */
  readonly next: string;
  readonly lessons: readonly string[];
  readonly findings: readonly Finding[];
  readonly errors: readonly string[];
}

export async function runExample(): Promise<ExampleRun> {
  const folder = mkdtempSync(join(tmpdir(), "agentrewind-sandbox-"));
  const workspace = join(folder, "work");
  mkdirSync(workspace);
  copyFileSync(join(import.meta.dirname, "counter.py"), join(workspace, "counter.py"));
  const server = await startModelServer({ decide, latencyMs: 20 });
  try {
    await using rewind = await openRewind({
      workspace,
      store: join(folder, "store"),
      environment: "sandbox",
      sandbox: { network: "own" },
    });
    const rw = rewindMiddleware(rewind);
    const model = new ChatOpenAI({ model: "scripted", apiKey: "none", configuration: { baseURL: server.baseUrl } });
    const agent = rw.attach(createAgent({ model, tools: environmentTools(rewind), middleware: [rw] }));
    const state = await agent.invoke(
      { messages: [{ role: "user", content: task }] },
      { configurable: { thread_id: "t1" } },
    );
    const told = server.requests.map(({ messages }) => textOf(messages.at(-1)?.content));
    return {
      answer: state.messages.at(-1)?.text ?? "",
      told,
      next: (await rewind.environment.exec(`curl -s localhost:${port}`)).stdout.trim(),
      lessons: rewind
        .thread("t1")
        .lessons()
        .map(({ text }) => text),
      findings: await rewind.verify(),
      errors: server.errors,
    };
  } finally {
    await server.close();
    rmSync(folder, { recursive: true, force: true });
  }
}
