// One block: so many agents do their tasks under one arm, beside each other, and the machine is measured meanwhile.
import { execFileSync } from "node:child_process";
import { statSync } from "node:fs";
import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { type Arm, openOptions } from "./arms.ts";
import type { AgentClass } from "./classes.ts";
import { type Ground, makeGround, prepareWorkspace, removeGround } from "./ground.ts";
import { meanLatency } from "./latency.ts";
import {
  availableMemory,
  type Bytes,
  bytesBetween,
  readDisk,
  readLoops,
  readProcessors,
  usedBetween,
} from "./meters.ts";
import { AgentProcess, type Idle, type Left, type TurnLine } from "./processes.ts";
import { type Task, taskOf } from "./task.ts";

export interface BlockRequest {
  /** Names the tasks, together with the agents' numbers. */
  readonly seed: readonly (string | number)[];
  readonly arm: Arm;
  readonly classes: readonly AgentClass[];
  readonly perProcess: number;
  readonly medianMs: number;
  /** Model decisions of a task. */
  readonly turns: number;
  /** What the model takes for a task, in milliseconds: so long the load is measured, but for the time in which the agents begin. */
  readonly modelMs: number;
}

export interface TaskLine {
  readonly agent: number;
  readonly className: string;
  readonly taskMs: number;
  /** What the model took of that. */
  readonly modelMs: number;
  readonly durableMs: number;
  readonly turns: readonly TurnLine[];
  /** Of the replies, in order: which of them only looked. */
  readonly looked: readonly boolean[];
  readonly failed: number;
  readonly left: Omit<Left, "index"> | null;
}

export interface BlockLine {
  readonly sandboxes: number;
  readonly processes: number;
  /** Until the last task had ended and was on the disk. */
  readonly seconds: number;
  /** Of all processors, from 0 to 1, while the model's time of a task lasts. */
  readonly used: number;
  /** Of the device that holds the stores, until everything was on it. */
  readonly disk: Bytes | null;
  /** Of the image that holds what the sandboxes change. */
  readonly layers: Bytes | null;
  /** Allocated below the store behind the block. */
  readonly storeBytes: number;
  /** Of the agents' processes, the most that each has had. */
  readonly rssMiB: { readonly sum: number; readonly max: number };
  /** The most that was taken from the machine's available memory. */
  readonly memoryMiB: number;
  readonly loopMs: Idle["loopMs"];
  /** A sentence for each agent that did not come to its end. */
  readonly died: readonly string[];
  readonly tasks: readonly TaskLine[];
}

/** Between two looks at the memory. */
const lookMs = 250;
/** How much longer than its model a block may take; then it counts as hung. */
const patience = { times: 15, ms: 300_000 };

export async function runBlock(request: BlockRequest): Promise<BlockLine> {
  const ground = makeGround();
  try {
    return await measure(request, ground);
  } finally {
    await removeGround(ground);
  }
}

async function measure({ seed, arm, classes, perProcess, medianMs, turns, modelMs }: BlockRequest, ground: Ground) {
  const tasks = classes.map((one, agent) => {
    prepareWorkspace(ground, agent);
    return taskOf(one, { name: [...seed, agent], workspace: ground.workspace(agent), turns, medianMs });
  });
  const memoryBefore = availableMemory();
  const { processes, store } = ground;
  for (let first = 0; first < tasks.length; first += perProcess) {
    const agents = tasks
      .slice(first, first + perProcess)
      .map((task, at) => ({ index: first + at, workspace: ground.workspace(first + at), task }));
    processes.push(new AgentProcess({ agents, store, open: openOptions(arm), records: arm.records }));
    // One opens the store first.
    if (first === 0) await processes[0]?.until("ready");
  }
  const limit = setTimeout(() => giveUp(processes), modelMs * patience.times + patience.ms);
  await all(processes, "ready");
  settle();
  const disk = readDisk(store);
  const layers = readLoops(store);
  const begun = performance.now();
  for (const one of processes) one.tell("go");

  let memory = memoryBefore;
  const looking = setInterval(() => {
    memory = Math.min(memory, availableMemory());
  }, lookMs);
  const idle = all(processes, "idle");
  // From here on all have begun, and hardly any has ended.
  await sleep(meanLatency(medianMs));
  const load = readProcessors();
  await Promise.race([idle, sleep(modelMs - meanLatency(medianMs))]);
  const used = usedBetween(load, readProcessors());
  await idle;
  clearInterval(looking);
  const seconds = (performance.now() - begun) / 1_000;
  settle();
  const line = {
    sandboxes: tasks.length,
    processes: processes.length,
    seconds,
    used,
    disk: bytesBetween(disk, readDisk(store)),
    layers: bytesBetween(layers, readLoops(store)),
    storeBytes: allocated(store),
    memoryMiB: (memoryBefore - memory) / 2 ** 20,
  };
  for (const one of processes) one.tell("end");
  await all(processes, "over");
  clearTimeout(limit);
  return { ...line, ...gathered(processes, tasks) };
}

const all = (processes: readonly AgentProcess[], type: "ready" | "idle" | "over"): Promise<unknown> =>
  Promise.all(processes.map((one) => one.until(type)));

/** What is on its way to the disk belongs to what came before. */
const settle = (): void => void execFileSync("sync");

function giveUp(processes: readonly AgentProcess[]): void {
  for (const one of processes) one.giveUp("did not come to its end");
}

/** In bytes, holes left out. */
const allocated = (folder: string): number =>
  Number(execFileSync("du", ["-sx", "--block-size=1", folder], { encoding: "utf8" }).split("\t")[0]) -
  statSync(folder).size;

function gathered(processes: readonly AgentProcess[], tasks: readonly Task[]) {
  const idle = processes.flatMap((one) => one.idle ?? []);
  const rss = idle.map(({ rssKiB }) => rssKiB / 1_024);
  const found = processes.flatMap(({ agents, done, left, died }) =>
    agents.map((agent) => {
      const own = done.find(({ index }) => index === agent);
      return { agent, own, left: left.find(({ index }) => index === agent), died };
    }),
  );
  return {
    rssMiB: { sum: rss.reduce((sum, one) => sum + one, 0), max: Math.max(0, ...rss) },
    loopMs: {
      p99: Math.max(0, ...idle.map(({ loopMs }) => loopMs.p99)),
      max: Math.max(0, ...idle.map(({ loopMs }) => loopMs.max)),
    },
    died: found.flatMap(({ agent, left, died }) => {
      if (left === undefined) return [`agent ${agent}: ${died ?? "left no state"}`];
      return left.sameLife ? [] : [`agent ${agent}: its sandbox ended and was made anew`];
    }),
    tasks: found.flatMap(({ agent, own, left }): TaskLine[] => {
      if (own === undefined) return [];
      const { className, turns } = tasks[agent] as Task;
      const { index: _, ...state } = left ?? { index: agent };
      return [
        {
          ...{ agent, className, taskMs: own.taskMs, durableMs: own.durableMs, turns: own.turns, failed: own.failed },
          modelMs: turns.reduce((sum, { latencyMs }) => sum + latencyMs, 0),
          looked: turns.map(({ looks }) => looks),
          left: "state" in state ? state : null,
        },
      ];
    }),
  };
}
