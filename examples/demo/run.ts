// One run of the demo: a repository with a trap, an agent that can rewind, and what an observer outside of both has seen.
import { join } from "node:path";
import { type Checkpoint, type Finding, openRewind } from "agentrewind";
import type { ChatRequest } from "agentrewind/conformance";
import { rewindMiddleware } from "agentrewind/langchain";
import { createAgent } from "langchain";
import { forgetLessons, neverRestores } from "./handicaps.ts";
import { createModel } from "./model.ts";
import { createTools } from "./tools.ts";
import { createWitness, type Event, type ObservedRewind } from "./witness.ts";
import { createRepository, suitePasses, temporaryFolder } from "./workspace.ts";

const systemPrompt = `You are a programmer in a small repository; your tools act in it.
Make the test suite (npm test) pass. Leave the tests and the files that they compare with as they are.
When a step has done damage that going on cannot repair, do not patch over it: call list_checkpoints, then rewind to the
checkpoint before that step, with a lesson (what you tried, what proved false, what it caused, what to do instead).
End with one or two sentences: what you did, and whether the suite passes.`;

const task =
  "The suite is red since the bank sent this month's export. The README explains the repository. Make `npm test` pass.";

const threadId = "demo";

export interface DemoOptions {
  /** How long the scripted model thinks. Default 300. */
  readonly latencyMs?: number;
  /** Always the scripted model, also where the environment has a key. */
  readonly scripted?: boolean;
  /** Leave the folders in place. */
  readonly keep?: boolean;
  /** Hears what happens as it happens. */
  readonly tell?: (event: Event | StartEvent) => void;
  /** The lesson never reaches the model. */
  readonly withoutLesson?: boolean;
  /** A rewind restores the conversation only. */
  readonly withoutFiles?: boolean;
}

export interface StartEvent {
  readonly type: "start";
  readonly model: string;
  readonly latencyMs: number | null;
  readonly workspace: string;
  readonly store: string;
  readonly task: string;
}

/** What `--json` prints. */
export interface DemoReport {
  readonly model: string;
  /** Model decisions, the abandoned ones included. */
  readonly turns: number;
  readonly checkpoints: number;
  readonly rewinds: number;
  readonly lessons: readonly string[];
  /** The suite as shipped, run on the result. */
  readonly testsPass: boolean;
  /** Of the last rewind; null when there was none. */
  readonly treeDigestAtCheckpoint: string | null;
  readonly treeDigestAfterRewind: string | null;
  /** Milliseconds in which the agent waited for captures. */
  readonly exposedMs: number;
}

export interface DemoRun {
  readonly report: DemoReport;
  readonly workspace: string;
  readonly store: string;
  readonly thread: string;
  readonly answer: string;
  readonly checkpoints: readonly Checkpoint[];
  readonly rewinds: readonly ObservedRewind[];
  /** What snapshots lack on this machine. */
  readonly lacks: readonly string[];
  /** What is wrong in the store. */
  readonly findings: readonly Finding[];
  /** What the model server got and refused; empty with a real model. */
  readonly requests: readonly ChatRequest[];
  readonly errors: readonly string[];
}

export async function runDemo(options: DemoOptions = {}): Promise<DemoRun> {
  const { latencyMs = 300, scripted = false, keep = false, tell = () => {} } = options;
  using folder = temporaryFolder(keep);
  const workspace = join(folder.path, "repo");
  const store = join(folder.path, "store");
  createRepository(workspace);
  await using model = await createModel({ latencyMs, scripted });
  tell({ type: "start", model: model.name, latencyMs: model.server ? latencyMs : null, workspace, store, task });

  await using plain = options.withoutFiles ? await openRewind({ workspace, store: `${store}-2` }) : null;
  const environment = plain === null ? "directory" : neverRestores(plain.environment);
  // Without its lesson the agent would fall in again and again; one rewind shows it.
  const budget = options.withoutLesson ? { rewinds: 1 } : {};
  await using rewind = await openRewind({ workspace, store, environment, budget });

  const thread = rewind.thread(threadId);
  const witness = createWitness({ folder: workspace, head: () => thread.head, tell });
  const rw = rewindMiddleware(rewind);
  const forget = options.withoutLesson ? [forgetLessons(() => witness.rewinds.map(({ lesson }) => lesson))] : [];
  const agent = rw.attach(
    createAgent({
      model: model.chat,
      tools: createTools(rewind.environment),
      systemPrompt,
      middleware: [witness.middleware, rw, ...forget],
    }),
  );
  let answer = "";
  // The mode "messages" is what makes the model's replies come as streams.
  const steps = await agent.stream(
    { messages: [{ role: "user", content: task }] },
    { configurable: { thread_id: threadId }, recursionLimit: 200, streamMode: ["messages", "values"] },
  );
  for await (const [mode, state] of steps) if (mode === "values") answer = state.messages.at(-1)?.text ?? "";

  const checkpoints = thread.checkpoints({ all: true });
  const { moments, rewinds } = witness;
  const last = rewinds.at(-1);
  const report: DemoReport = {
    model: model.name,
    turns: moments.length,
    checkpoints: checkpoints.length,
    rewinds: rewinds.length,
    lessons: thread.lessons().map(({ text }) => text),
    testsPass: suitePasses(workspace),
    treeDigestAtCheckpoint: moments.find(({ checkpoint }) => checkpoint === last?.to)?.tree.digest ?? null,
    treeDigestAfterRewind: last?.after.tree.digest ?? null,
    exposedMs: Math.round(checkpoints.reduce((sum, { timings }) => sum + timings.exposedMs, 0) * 10) / 10,
  };
  const { requests = [], errors = [] } = model.server ?? {};
  const findings = await rewind.verify();
  const { lacks } = rewind.environment.capabilities;
  const place = { workspace, store, thread: thread.name };
  return { report, ...place, answer, checkpoints, rewinds, lacks, findings, requests, errors };
}
