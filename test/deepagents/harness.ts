// A deep agent over a real workspace, a real store and a real model server; a subagent tells itself by its task.

import { type RewindBackendOptions, rewindBackend } from "agentrewind/deepagents";
import { type RewindMiddlewareOptions, rewindMiddleware } from "agentrewind/langchain";
import { createDeepAgent } from "deepagents";
import { call, chatModel, type Scene } from "../langchain/harness.ts";

export const write = (path: string, content: string) => call("write_file", { file_path: path, content });
export const execute = (command: string) => call("execute", { command });
export const task = (description: string, subagent: string) => call("task", { description, subagent_type: subagent });

type Params = NonNullable<Parameters<typeof createDeepAgent>[0]>;

export function makeDeepAgent(
  scene: Scene,
  {
    options,
    backend,
    attach = true,
    before = [],
    ...extra
  }: Omit<Partial<Params>, "backend" | "middleware"> & {
    options?: RewindMiddlewareOptions;
    backend?: RewindBackendOptions;
    attach?: boolean;
    before?: unknown[];
  } = {},
) {
  const rw = rewindMiddleware(scene.rewind, options);
  const agent = createDeepAgent({
    model: chatModel(scene.server),
    backend: rewindBackend(scene.rewind, backend),
    middleware: [...before, rw],
    ...extra,
  } as never);
  return attach ? rw.attach(agent) : agent;
}
