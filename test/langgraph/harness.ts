// A hand-built graph over a real workspace, a real store and a real model server.
import { setTimeout as sleep } from "node:timers/promises";
import type { BaseMessage } from "@langchain/core/messages";
import {
  Annotation,
  type BaseCheckpointSaver,
  END,
  type LangGraphRunnableConfig,
  MemorySaver,
  MessagesAnnotation,
  START,
  StateGraph,
} from "@langchain/langgraph";
import type { ToolNodeOptions } from "@langchain/langgraph/prebuilt";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import { type RewindGraphOptions, rewindCheckpointer, rewindGraph } from "agentrewind/langgraph";
import { chatModel, fileTool, type Scene, type State } from "../langchain/harness.ts";

export {
  allText,
  call,
  calls,
  fileTool,
  idBefore,
  lastText,
  mainScript,
  occurrences,
  onThread,
  openScene,
  run,
  type Scene,
  type State,
  start,
  texts,
  user,
  write,
} from "../langchain/harness.ts";

export const durabilities = ["sync", "async"] as const;

export const Channels = Annotation.Root({
  ...MessagesAnnotation.spec,
  decisions: Annotation<number>({ reducer: (a, b) => a + b, default: () => 0 }),
  last: Annotation<string | undefined>(),
});

type Tools = Parameters<ReturnType<typeof rewindGraph>["toolNode"]>[0];

/** agent -> tools -> agent, the five lines of the README around it. */
export function makeGraph(
  scene: Scene,
  {
    saver = new MemorySaver(),
    options,
    tools = [fileTool(scene)],
    pair = true,
    attach = true,
    model = {},
    toolOptions = {},
  }: {
    /** Null: none. */
    saver?: BaseCheckpointSaver | null;
    options?: RewindGraphOptions;
    tools?: NonNullable<Tools>;
    pair?: boolean;
    attach?: boolean;
    model?: Record<string, unknown>;
    toolOptions?: ToolNodeOptions;
  } = {},
) {
  const rg = rewindGraph(scene.rewind, options);
  const asked = chatModel(scene.server, model).bindTools([...(tools as []), ...rg.tools]);
  const callModel = async (state: typeof Channels.State, _config: LangGraphRunnableConfig) => ({
    messages: [await asked.invoke(state.messages)],
    decisions: 1,
  });
  const graph = new StateGraph(Channels)
    .addNode("agent", rg.modelNode(callModel))
    .addNode("tools", rg.toolNode(tools, toolOptions))
    .addEdge(START, "agent")
    .addConditionalEdges("agent", afterModel, ["tools", END])
    .addEdge("tools", "agent");
  const app = graph.compile(
    saver === null ? {} : { checkpointer: pair ? rewindCheckpointer(saver, scene.rewind) : saver },
  );
  return { rg, app: attach ? rg.attach(app) : app };
}

export const afterModel = ({ messages }: { messages: BaseMessage[] }): "tools" | typeof END =>
  ((messages.at(-1) as { tool_calls?: unknown[] } | undefined)?.tool_calls?.length ?? 0) > 0 ? "tools" : END;

export interface Snapshot {
  readonly values: State;
  readonly next: string[];
  readonly config: { configurable: Record<string, unknown> };
  readonly metadata: Record<string, unknown>;
}

interface WithState {
  getStateHistory(config: never): AsyncIterable<unknown>;
  getState(config: never): Promise<unknown>;
}

/** Newest first. */
export async function history(app: WithState, config: unknown): Promise<Snapshot[]> {
  const states: Snapshot[] = [];
  for await (const state of app.getStateHistory(config as never)) states.push(state as Snapshot);
  return states;
}

export const stateOf = async (app: WithState, config: unknown): Promise<Snapshot> =>
  (await app.getState(config as never)) as Snapshot;

export async function pointAt(
  app: WithState,
  config: unknown,
  next: string,
  suits: (state: Snapshot) => boolean,
): Promise<Snapshot> {
  const point = (await history(app, config)).find((one) => one.next[0] === next && suits(one));
  if (point === undefined) throw new Error(`no such point before ${next}`);
  return point;
}

/** Every look at the files takes so long, and sees them as they are at its end. */
export function slowDown({ rewind: { environment } }: Scene, milliseconds: number): void {
  const capture = environment.capture.bind(environment);
  environment.capture = (options) => {
    const begun = sleep(milliseconds).then(() => capture(options));
    return {
      captured: begun.then((one) => one.captured),
      durable: begun.then((one) => one.durable),
    } as ReturnType<typeof capture>;
  };
}

/** As over a network: every write takes so long. */
export class SlowSaver extends MemorySaver {
  override async put(...given: Parameters<MemorySaver["put"]>): ReturnType<MemorySaver["put"]> {
    await sleep(40);
    return super.put(...given);
  }
  override async putWrites(...given: Parameters<MemorySaver["putWrites"]>): Promise<void> {
    await sleep(15);
    return super.putWrites(...given);
  }
}

export const savers: [string, () => BaseCheckpointSaver][] = [
  ["MemorySaver", () => new MemorySaver()],
  ["SqliteSaver", () => SqliteSaver.fromConnString(":memory:")],
  ["a saver behind a network", () => new SlowSaver()],
];
/** Calls of `environment.restore` from now on, without those that only plan. */
export function countRestores({ rewind: { environment } }: Scene): () => number {
  const restore = environment.restore.bind(environment);
  let count = 0;
  environment.restore = (manifest, options) => {
    if (options?.dryRun !== true) count++;
    return restore(manifest, options);
  };
  return () => count;
}
