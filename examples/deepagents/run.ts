// A deep agent over a workspace: its subagent does damage, and the main agent takes the whole call back, files and conversation.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ChatOpenAI } from "@langchain/openai";
import { type Checkpoint, type Finding, openRewind } from "agentrewind";
import { startModelServer } from "agentrewind/conformance";
import { rewindBackend } from "agentrewind/deepagents";
import { rewindMiddleware } from "agentrewind/langchain";
import { createDeepAgent } from "deepagents";
import { decide, task } from "./script.ts";

const orders = ["day;pieces", "2026-01-05;2", "2026-01-03;7", "2026-01-05;2", "2026-01-04;1"];

export interface ExampleRun {
  readonly answer: string;
  readonly before: string;
  readonly after: string;
  readonly lessons: readonly string[];
  readonly checkpoints: readonly Checkpoint[];
  /** What is wrong in the store, and what the model server refused. */
  readonly findings: readonly Finding[];
  readonly errors: readonly string[];
}

export async function runExample(): Promise<ExampleRun> {
  const folder = mkdtempSync(join(tmpdir(), "agentrewind-deepagents-"));
  const workspace = join(folder, "work");
  const file = join(workspace, "orders.csv");
  const before = `${orders.join("\n")}\n`;
  mkdirSync(workspace);
  writeFileSync(file, before);
  const server = await startModelServer({ decide, latencyMs: 20 });
  try {
    await using rewind = await openRewind({ workspace, store: join(folder, "store") });
    const rw = rewindMiddleware(rewind);
    const agent = rw.attach(
      createDeepAgent({
        model: new ChatOpenAI({ model: "scripted", apiKey: "none", configuration: { baseURL: server.baseUrl } }),
        backend: rewindBackend(rewind),
        middleware: [rw],
        subagents: [{ name: "cleaner", description: "Cleans files.", systemPrompt: "You clean files." }],
      }),
    );
    const state = await agent.invoke(
      { messages: [{ role: "user", content: task }] },
      { configurable: { thread_id: "example" } },
    );
    const thread = rewind.thread("example");
    return {
      answer: state.messages.at(-1)?.text ?? "",
      before,
      after: readFileSync(file, "utf8"),
      lessons: thread.lessons().map(({ text }) => text),
      checkpoints: thread.checkpoints({ all: true }),
      findings: await rewind.verify(),
      errors: server.errors,
    };
  } finally {
    await server.close();
    rmSync(folder, { recursive: true, force: true });
  }
}
