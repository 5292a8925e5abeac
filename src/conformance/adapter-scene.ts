// What the adapter suite is given, and what one of its checks has around it.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type OpenOptions, openRewind, type Rewind, type Thread } from "../index.ts";
import { type ModelServer, startModelServer } from "./model-server/server.ts";
import { type ChatRequest, type Reply, textOf } from "./model-server/wire.ts";

export interface AdapterInitializer {
  readonly name: string;
  /** Name of the agent's tool, where "write_file" is taken. */
  readonly toolName?: string;
  /** An agent of this adapter on the scene's thread, with the scene's tool; nothing of it has run yet. */
  start(scene: AdapterScene): AdapterRun | Promise<AdapterRun>;
}

export interface AdapterRun {
  /** A person says this in the one conversation of the run; resolves with the model's last words when the loop has nothing more to do. */
  say(text: string): Promise<string>;
}

export interface AdapterScene {
  readonly rewind: Rewind;
  /** Name of the thread that the agent must use. */
  readonly thread: string;
  /** Of an OpenAI-compatible server; any key will do, any model is called "scripted". */
  readonly baseUrl: string;
  /** The agent's only tool beside the rewind tools: writes a file of the workspace. */
  readonly tool: SceneTool;
}

export interface SceneTool {
  readonly name: string;
  readonly description: string;
  /** JSON Schema. */
  readonly parameters: Readonly<Record<string, unknown>>;
  run(args: { path: string; text: string }): Promise<string>;
}

/** The model: answers from what it can read. */
export type Script = (all: string, request: ChatRequest, scene: Scene) => Reply | Promise<Reply>;

export interface AdapterCheck {
  readonly name: string;
  readonly script: Script;
  readonly options?: Partial<OpenOptions>;
  check(scene: Scene, run: AdapterRun): Promise<void>;
}

export interface Scene extends AdapterScene {
  readonly server: ModelServer;
  /** What the tool was called for, in order. */
  readonly written: readonly string[];
  /** Runs in the tool, before it writes. */
  onWrite: (path: string) => Promise<void> | void;
  files(): string[];
  /** When each file was changed, ns. */
  times(): Record<string, bigint>;
  session(): Thread;
  /** What the model could read in each request, from the first one on that shows `text`. */
  since(text: string): string[];
  close(): Promise<void>;
}

/** Everything that the model can read, with calls as JSON. */
export const readable = ({ messages }: ChatRequest): string =>
  messages
    .map((one) => textOf(one.content) + (one.role === "assistant" ? JSON.stringify(one.tool_calls ?? []) : ""))
    .join("\n");

export const call = (name: string, args: unknown): { name: string; args: unknown } => ({ name, args });
export const calls = (...toolCalls: ReturnType<typeof call>[]): Reply => ({ toolCalls });
export const write = (path: string): ReturnType<typeof call> => call(writeName, { path, text: `text of ${path}` });

const writeName = "write_file";

const named = (reply: Reply, toolName: string): Reply => ({
  ...reply,
  ...(reply.toolCalls === undefined
    ? {}
    : { toolCalls: reply.toolCalls.map((one) => (one.name === writeName ? { ...one, name: toolName } : one)) }),
});
export const rewindTo = (checkpoint: unknown, lesson: unknown = "it was wrong"): ReturnType<typeof call> =>
  call("rewind", { checkpoint, lesson });
export const list = (): ReturnType<typeof call> => call("list_checkpoints", {});

export const count = (text: string, part: string): number => text.split(part).length - 1;

/** Id of the checkpoint before `text` was done, as the list shows it. */
export function idBefore(all: string, text: string): string {
  const line = all.split("\n").find((one) => /^c\d+ /.test(one) && one.includes(text));
  return line?.match(/^c\d+/)?.[0] ?? assert.fail(`no checkpoint shows ${text}:\n${all}`);
}

export async function openScene(
  script: Script,
  options: Partial<OpenOptions> = {},
  toolName: string = writeName,
): Promise<Scene> {
  const base = mkdtempSync(join(tmpdir(), "agentrewind-adapter-"));
  const workspace = join(base, "work");
  mkdirSync(workspace);
  const server = await startModelServer({
    latencyMs: 5,
    decide: async (request): Promise<Reply> => named(await script(readable(request), request, scene), toolName),
  });
  const rewind = await openRewind({ workspace, store: join(base, "store"), ...options });
  const written: string[] = [];
  const scene: Scene = {
    rewind,
    thread: "adapter",
    baseUrl: server.baseUrl,
    server,
    written,
    onWrite: () => {},
    tool: {
      name: toolName,
      description: "Writes a file.",
      parameters: {
        type: "object",
        properties: { path: { type: "string" }, text: { type: "string" } },
        required: ["path", "text"],
        additionalProperties: false,
      },
      async run({ path, text }) {
        written.push(path);
        await scene.onWrite(path);
        writeFileSync(join(workspace, path), text);
        return `wrote ${path}`;
      },
    },
    files: () => readdirSync(workspace).sort(),
    times: () =>
      Object.fromEntries(
        readdirSync(workspace).map((name) => [name, statSync(join(workspace, name), { bigint: true }).mtimeNs]),
      ),
    session: () => rewind.thread(scene.thread),
    since(text) {
      const all = server.requests.map(readable);
      const at = all.findIndex((one) => one.includes(text));
      assert.ok(at >= 0, `no request shows ${JSON.stringify(text)}`);
      return all.slice(at);
    },
    async close() {
      const findings = await rewind.verify();
      await rewind.close();
      await server.close();
      rmSync(base, { recursive: true, force: true });
      assert.deepEqual(findings, [], "the store is sound");
      assert.deepEqual(server.errors, [], "the model server refused nothing");
    },
  };
  return scene;
}
