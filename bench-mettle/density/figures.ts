// What the blocks of a cell say of each arm.
import { sum } from "../markdown.ts";
import { quantile } from "../perf/figures.ts";
import type { TaskLine } from "./block.ts";
import type { Block } from "./cells.ts";
import { sameTasks } from "./compare.ts";

export interface ArmFigures {
  readonly arm: string;
  readonly blocks: readonly Block[];
  readonly tasks: readonly TaskLine[];
  /** Of all processors, without what the machine waits, from 0 to 1. */
  readonly used: number;
  /** How much longer the tasks took than the same ones without checkpoints: all together, and of the tasks the middle and the slow ones. Null where these did not run. */
  readonly slower: { readonly all: number; readonly p50: number; readonly p95: number } | null;
  /** Milliseconds that a turn waited. */
  readonly exposed: { readonly p50: number; readonly p95: number; readonly max: number } | null;
  /** Of a task's time, what it waited: from 0 to 1. */
  readonly exposedShare: { readonly p50: number; readonly p95: number } | null;
  /** The same by the agents' own clocks, with the beginning of each turn. */
  readonly waitedShare: { readonly p95: number } | null;
  /** Of a task, in bytes: written to the disk and to the image of the layers, and what the captures say that they stored. */
  readonly written: number | null;
  readonly layers: number | null;
  readonly stored: number;
  readonly rssMiB: { readonly mean: number; readonly max: number };
  readonly memoryMiB: number;
  readonly loopMs: number;
}

export interface Turns {
  /** Pairs that have one before them. */
  readonly all: number;
  /** Of which neither half is new. */
  readonly skipped: number;
  readonly filesKept: number;
  readonly processesKept: number;
  /** Behind replies that only looked. */
  readonly behindLooks: number;
  readonly skippedBehindLooks: number;
}

export function armFigures(all: readonly Block[], cell: string, arm: string): ArmFigures {
  const blocks = all.filter((one) => one.cell === cell && one.arm === arm);
  const tasks = blocks.flatMap((block) => block.tasks);
  const turns = tasks.flatMap((task) => task.turns);
  const pairs = blocks.flatMap((block) => {
    const plain = sameTasks(all, block, "none");
    return block.tasks.flatMap(({ agent, taskMs }) => {
      const without = plain.get(agent)?.taskMs;
      return without === undefined ? [] : [{ with: taskMs, without }];
    });
  });
  const perTask = (of: (block: Block) => number | undefined): number | null => {
    const found = blocks.map(of);
    return found.includes(undefined) || tasks.length === 0 ? null : sum(found as number[]) / tasks.length;
  };
  const ratios = pairs.map((pair) => pair.with / pair.without);
  const exposed = turns.map(({ exposedMs }) => exposedMs);
  const shares = tasks.map((task) => sum(task.turns.map(({ exposedMs }) => exposedMs)) / task.taskMs);
  const waited = tasks.map((task) => sum(task.turns.map(({ waitedMs }) => waitedMs)) / task.taskMs);
  return {
    ...{ arm, blocks, tasks },
    used: sum(blocks.map(({ used }) => used)) / Math.max(1, blocks.length),
    slower:
      pairs.length === 0
        ? null
        : {
            all: sum(pairs.map((pair) => pair.with)) / sum(pairs.map((pair) => pair.without)),
            p50: quantile(ratios, 0.5),
            p95: quantile(ratios, 0.95),
          },
    exposed:
      turns.length === 0
        ? null
        : { p50: quantile(exposed, 0.5), p95: quantile(exposed, 0.95), max: Math.max(...exposed) },
    exposedShare: turns.length === 0 ? null : { p50: quantile(shares, 0.5), p95: quantile(shares, 0.95) },
    waitedShare: turns.length === 0 ? null : { p95: quantile(waited, 0.95) },
    written: perTask(({ disk }) => disk?.written),
    layers: perTask(({ layers }) => layers?.written),
    stored: sum(turns.map(({ bytes }) => bytes)) / Math.max(1, tasks.length),
    rssMiB: {
      mean: sum(blocks.map(({ rssMiB, processes }) => rssMiB.sum / processes)) / Math.max(1, blocks.length),
      max: Math.max(0, ...blocks.map(({ rssMiB }) => rssMiB.max)),
    },
    memoryMiB: Math.max(0, ...blocks.map(({ memoryMiB }) => memoryMiB)),
    loopMs: Math.max(0, ...blocks.map(({ loopMs }) => loopMs.max)),
  };
}

export function turnsOf(tasks: readonly TaskLine[]): Turns {
  const found = tasks.flatMap(({ turns, looked }) =>
    turns.slice(1).map((turn, index) => ({
      ...turn,
      looked: looked[index] === true,
      skipped: turn.filesKept && turn.processesKept,
    })),
  );
  const number = (is: (one: (typeof found)[number]) => boolean): number => found.filter(is).length;
  return {
    all: found.length,
    skipped: number(({ skipped }) => skipped),
    filesKept: number(({ filesKept }) => filesKept),
    processesKept: number(({ processesKept }) => processesKept),
    behindLooks: number(({ looked }) => looked),
    skippedBehindLooks: number(({ looked, skipped }) => looked && skipped),
  };
}
