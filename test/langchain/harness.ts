// An agent over a real workspace, a real store and a real model server, whose model is a script over the request.
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BaseMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { ChatOpenAI } from "@langchain/openai";
import { type OpenOptions, openRewind, type Rewind } from "agentrewind";
import type { ChatRequest, Message, Reply } from "agentrewind/conformance";
import { type ModelServer, startModelServer } from "agentrewind/conformance";
import { type RewindMiddlewareOptions, rewindMiddleware } from "agentrewind/langchain";
import { createAgent } from "langchain";
import { z } from "zod";

export type Script = (request: ChatRequest, all: string) => Reply | Promise<Reply>;

export const textOfMessage = (message: Message): string => {
  const { content } = message;
  return typeof content === "string" ? content : (content ?? []).map((part) => part.text ?? "").join("");
};

/** Everything that the model can read, with calls as JSON. */
export const allText = (request: ChatRequest): string =>
  request.messages
    .map(
      (message) =>
        textOfMessage(message) + (message.role === "assistant" ? JSON.stringify(message.tool_calls ?? []) : ""),
    )
    .join("\n");

export const call = (name: string, args: Record<string, unknown>, id?: string) => ({
  name,
  args,
  ...(id === undefined ? {} : { id }),
});
export const calls = (...toolCalls: ReturnType<typeof call>[]): Reply => ({ toolCalls });
export const write = (path: string, text: string) => call("write_file", { path, text });

export interface Scene {
  readonly workspace: string;
  readonly store: string;
  readonly server: ModelServer;
  rewind: Rewind;
  files(): string[];
  /** Ends this process's hold and opens the workspace again, as a new process would. */
  reopen(): Promise<void>;
  close(): Promise<void>;
}

export async function openScene(
  script: Script,
  options: Partial<OpenOptions> & { latencyMs?: number } = {},
): Promise<Scene> {
  const base = mkdtempSync(join(tmpdir(), "arw-lc-"));
  const workspace = join(base, "work");
  const store = join(base, "store");
  mkdirSync(workspace);
  const { latencyMs = 5, ...open } = options;
  const server = await startModelServer({ decide: (request) => script(request, allText(request)), latencyMs });
  const scene: Scene = {
    workspace,
    store,
    server,
    rewind: await openRewind({ workspace, store, ...open }),
    files: () => readdirSync(workspace).sort(),
    async reopen() {
      await scene.rewind.close();
      scene.rewind = await openRewind({ workspace, store, ...open });
    },
    async close() {
      const findings = await scene.rewind.verify();
      await scene.rewind.close();
      await server.close();
      rmSync(base, { recursive: true, force: true });
      if (findings.length > 0) throw new Error(`verify: ${JSON.stringify(findings)}`);
      if (server.errors.length > 0) throw new Error(`the model server refused: ${server.errors.join(" | ")}`);
    },
  };
  return scene;
}

export const chatModel = (server: ModelServer, extra: Record<string, unknown> = {}): ChatOpenAI =>
  new ChatOpenAI({
    model: "scripted",
    apiKey: "none",
    maxRetries: 0,
    configuration: { baseURL: server.baseUrl },
    ...extra,
  });

export const fileTool = (scene: Scene) =>
  tool(
    async ({ path, text }: { path: string; text: string }) => {
      writeFileSync(join(scene.workspace, path), text);
      return `wrote ${path}`;
    },
    { name: "write_file", description: "Write a file.", schema: z.object({ path: z.string(), text: z.string() }) },
  );

type AgentParams = Parameters<typeof createAgent>[0];

export function makeAgent(
  scene: Scene,
  {
    options,
    before = [],
    after = [],
    attach = true,
    ...extra
  }: Partial<Omit<AgentParams, "middleware">> & {
    options?: RewindMiddlewareOptions;
    before?: unknown[];
    after?: unknown[];
    attach?: boolean;
  } = {},
) {
  const rw = rewindMiddleware(scene.rewind, options);
  const agent = createAgent({
    model: chatModel(scene.server),
    tools: [fileTool(scene)],
    middleware: [...before, rw, ...after] as never,
    ...extra,
  } as AgentParams);
  return attach ? rw.attach(agent) : agent;
}

/** First id of a line of the list that shows `text`. */
export function idBefore(all: string, text: string): string {
  const line = all.split("\n").find((one) => /^c\d+ /.test(one) && one.includes(text));
  const id = line?.match(/^c\d+/)?.[0];
  if (id === undefined) throw new Error(`no checkpoint shows ${text}:\n${all}`);
  return id;
}

/** Writes good.txt, then bad.txt, lists, rewinds to before bad.txt, writes better.txt, ends. */
export const mainScript =
  (options: { rewindReply?: (rewind: ReturnType<typeof call>) => Reply } = {}): Script =>
  (_request, all) => {
    if (all.includes("You are back at")) {
      return all.includes("wrote better.txt") ? { content: "all done" } : calls(write("better.txt", "ok"));
    }
    if (all.includes("Checkpoints, newest first")) {
      const rewind = call("rewind", {
        checkpoint: idBefore(all, "bad.txt"),
        lesson: "bad.txt was wrong; write better.txt",
      });
      return options.rewindReply?.(rewind) ?? calls(rewind);
    }
    if (all.includes("wrote bad.txt")) return calls(call("list_checkpoints", {}));
    if (all.includes("wrote good.txt")) return calls(write("bad.txt", "oops"));
    return calls(write("good.txt", "yes"));
  };

export interface State extends Record<string, unknown> {
  readonly messages: BaseMessage[];
}

interface Invokable {
  invoke(input: never, config?: never): Promise<unknown>;
}

export const user = (content: string, id?: string) => ({
  messages: [{ role: "user", content, ...(id === undefined ? {} : { id }) }],
});
export const start = user("go");
export const onThread = (name: string, more: Record<string, unknown> = {}) => ({
  configurable: { thread_id: name, ...more },
});

export const run = async (agent: unknown, input: unknown, config?: unknown): Promise<State> =>
  (await (agent as Invokable).invoke(input as never, config as never)) as State;

export const lastText = (state: State): string => state.messages.at(-1)?.text ?? "";
export const texts = (state: State): string[] => state.messages.map((message) => message.text);

/** The requests that came after the model's rewind call, and the text of each. */
export const textsAfter = (scene: Scene, count: number): string[] => scene.server.requests.slice(count).map(allText);

export const occurrences = (text: string, part: string): number => text.split(part).length - 1;

/** The state that LangGraph's checkpointer holds for a thread. */
export const stored = async (agent: unknown, config: unknown) =>
  (await (agent as { graph: { getState(config: unknown): Promise<{ values: State; next: string[] }> } }).graph.getState(
    config,
  )) as { values: State; next: string[]; config: unknown };

/** Newest first. */
export async function history(agent: unknown, config: unknown) {
  const { graph } = agent as {
    graph: {
      getStateHistory(config: unknown): AsyncIterable<{ values: State; next: string[]; config: unknown }>;
    };
  };
  const states: { values: State; next: string[]; config: unknown }[] = [];
  for await (const state of graph.getStateHistory(config)) states.push(state);
  return states;
}
