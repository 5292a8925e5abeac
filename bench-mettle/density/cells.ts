// A cell: so many agents of some classes with a model of some latency, under every arm, in rounds.
import { type Arm, arms } from "./arms.ts";
import { type BlockLine, type BlockRequest, runBlock } from "./block.ts";
import { type AgentClass, classNamed, mixedClass } from "./classes.ts";
import { meanLatency } from "./latency.ts";
import { leastTurns, type Options } from "./options.ts";

export interface Cell {
  readonly name: string;
  /** Share of the processors that it is meant to use without checkpoints, in percent; null: it is what it is. */
  readonly load: number | null;
  /** So many instead; null: as many as that load takes. */
  readonly sandboxes: number | null;
  readonly medianMs: number;
  readonly perProcess: number;
  classOf(agent: number): AgentClass;
}

/** What is common to all blocks of a cell. */
export interface Shape {
  readonly sandboxes: number;
  readonly rounds: number;
  readonly turns: number;
  readonly modelMs: number;
}

export interface Block extends BlockLine {
  readonly cell: string;
  readonly medianMs: number;
  readonly load: number | null;
  readonly arm: string;
  readonly round: number;
}

/** More are not tried: their memory would be what is measured. */
export const mostSandboxes = 128;
/** How far from the wanted load the first block may be, in percents of the processors. */
const near = 8;
/** How often the number is set anew. */
const corrections = 2;
/** With which the load of one is found. */
const firstSandboxes = 10;

const without = arms[0] as Arm;
const idle = classNamed("idle-heavy");

export function cellsOf({ loads, latencies, sandboxes, idle: extra, perProcess, idlePerProcess }: Options): Cell[] {
  const seconds = (medianMs: number): string => `${medianMs / 1_000} s`;
  const mixed = latencies.flatMap((medianMs) =>
    (sandboxes === null ? loads : [null]).map((load): Cell => {
      const name = `${load === null ? `${sandboxes} sandboxes` : `${load} %`}, ${seconds(medianMs)}`;
      return { name, load, sandboxes, medianMs, perProcess, classOf: mixedClass };
    }),
  );
  const [medianMs] = latencies;
  if (extra === 0 || medianMs === undefined) return mixed;
  const name = `${extra} idle-heavy, ${seconds(medianMs)}`;
  return [...mixed, { name, load: null, sandboxes: extra, medianMs, perProcess: idlePerProcess, classOf: () => idle }];
}

/** What the minutes allow: rather fewer rounds than tasks of hardly any turns. */
export function shapeOf(options: Options, { medianMs, perProcess }: Cell, sandboxes: number): Shape {
  const mean = meanLatency(medianMs);
  const enough = 6;
  const openMs = 4_000 + 300 * Math.ceil(sandboxes / perProcess) + 100 * sandboxes;
  const turnsIn = (rounds: number): number => {
    const blockMs = (options.minutes * 60_000) / (rounds * options.arms.length) - openMs;
    // Arms that are slower than the model's time are part of it.
    return Math.max(leastTurns, Math.floor(blockMs / 1.3 / mean));
  };
  let { rounds } = options;
  while (rounds > 1 && options.turns === null && turnsIn(rounds) < enough) rounds--;
  const turns = options.turns ?? turnsIn(rounds);
  return { sandboxes, rounds, turns, modelMs: turns * mean };
}

const requestOf = (options: Options, cell: Cell, shape: Shape, arm: Arm, round: number): BlockRequest => ({
  seed: [options.seed, cell.name, round],
  arm,
  classes: Array.from({ length: shape.sandboxes }, (_, agent) => cell.classOf(agent)),
  perProcess: cell.perProcess,
  medianMs: cell.medianMs,
  turns: shape.turns,
  modelMs: shape.modelMs,
});

/** How many agents use one percent of the processors. */
export async function perPercent(options: Options, cell: Cell, tell: (text: string) => void): Promise<number> {
  const shape = shapeOf({ ...options, arms: [without], minutes: 0.5, rounds: 1 }, cell, firstSandboxes);
  const { used } = await runBlock(requestOf(options, cell, shape, without, 0));
  tell(
    `${firstSandboxes} sandboxes, ${cell.medianMs} ms, no checkpoints: ${(100 * used).toFixed(0)} % of the processors`,
  );
  return firstSandboxes / Math.max(0.5, 100 * used);
}

export const bounded = (sandboxes: number): number => Math.min(mostSandboxes, Math.max(1, Math.round(sandboxes)));

/** Each block when it has ended. The arms take turns, the other way round in every second round. */
export async function* blocksOf(
  options: Options,
  cell: Cell,
  sandboxes: number,
  tell: (text: string) => void,
): AsyncGenerator<Block> {
  let shape = shapeOf(options, cell, sandboxes);
  let first: BlockLine | undefined;
  for (let left = corrections; cell.load !== null && options.arms.includes(without); left--) {
    first = await runBlock(requestOf(options, cell, shape, without, 0));
    const used = 100 * first.used;
    const better = bounded((shape.sandboxes * cell.load) / Math.max(0.5, used));
    if (left === 0 || Math.abs(used - cell.load) <= near || better === shape.sandboxes) break;
    tell(`${cell.name}: ${shape.sandboxes} sandboxes use ${used.toFixed(0)} %, so ${better} are tried`);
    shape = shapeOf(options, cell, better);
    first = undefined;
  }
  for (let round = 0; round < shape.rounds; round++) {
    const order = round % 2 === 0 ? options.arms : [...options.arms].reverse();
    for (const arm of order) {
      const known = round === 0 && arm === without ? first : undefined;
      const line = known ?? (await runBlock(requestOf(options, cell, shape, arm, round)));
      const about = { cell: cell.name, medianMs: cell.medianMs, load: cell.load, arm: arm.name, round };
      tell(
        `${cell.name}, ${line.sandboxes} sandboxes, ${arm.name}, round ${round + 1}/${shape.rounds}: ${line.seconds.toFixed(1)} s, ${(100 * line.used).toFixed(0)} % used`,
      );
      for (const died of line.died) tell(`${cell.name}, ${arm.name}: ${died}`);
      yield { ...about, ...line };
    }
  }
}
