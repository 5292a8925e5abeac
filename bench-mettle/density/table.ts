// The result as Markdown.
import { share, table } from "../markdown.ts";
import type { Machine } from "../perf/machine.ts";
import type { Block } from "./cells.ts";
import { mostSandboxes } from "./cells.ts";
import { classes, mixAbout } from "./classes.ts";
import { type ArmFigures, armFigures, turnsOf } from "./figures.ts";
import { type CellFigures, judge } from "./goals.ts";
import { latencyAbout } from "./latency.ts";
import type { Options } from "./options.ts";

export interface Result {
  readonly command: string;
  readonly date: string;
  readonly machine: Machine;
  /** Of all processors, right before it began, from 0 to 1. */
  readonly busyBefore: number;
  readonly seed: number;
  readonly options: Options;
  readonly blocks: readonly Block[];
  /** What must not be, a sentence each. */
  readonly faults: readonly string[];
}

const mebi = (bytes: number | null): string => (bytes === null ? "-" : (bytes / 2 ** 20).toFixed(1));
const percent = (value: number): string => `${(100 * value).toFixed(2)} %`;

function cellRow(cell: string, { blocks, tasks, ...figures }: ArmFigures): (string | number)[] {
  const { arm, used, slower, exposed, exposedShare, waitedShare, written, layers, stored, rssMiB, memoryMiB, loopMs } =
    figures;
  const turns = turnsOf(tasks);
  return [
    `${cell}: \`${arm}\``,
    blocks[0]?.sandboxes ?? 0,
    tasks.length === 0
      ? 0
      : Math.round((tasks.reduce((sum, one) => sum + one.looked.length, 0) / tasks.length) * 10) / 10,
    `${(100 * used).toFixed(0)} %`,
    slower === null ? "-" : `${slower.all.toFixed(3)}x`,
    slower === null ? "-" : `${slower.p50.toFixed(2)} / ${slower.p95.toFixed(2)}x`,
    exposed === null ? "-" : `${exposed.p50.toFixed(1)} / ${exposed.p95.toFixed(1)} / ${exposed.max.toFixed(0)}`,
    exposedShare === null ? "-" : `${percent(exposedShare.p50)} / ${percent(exposedShare.p95)}`,
    waitedShare === null ? "-" : percent(waitedShare.p95),
    share(turns.skipped, turns.all),
    mebi(written),
    mebi(layers),
    mebi(stored),
    `${rssMiB.mean.toFixed(0)} / ${rssMiB.max.toFixed(0)}`,
    memoryMiB.toFixed(0),
    loopMs.toFixed(0),
  ];
}

function cellTable(cells: readonly CellFigures[]): string {
  return table(
    [
      "cell and arm",
      "sandboxes",
      "turns a task",
      "processors used",
      "time against `none`",
      "p50 / p95 of tasks",
      "exposed ms of a turn, p50 / p95 / max",
      "exposed, of a task's time, p50 / p95",
      "the agents' own clock, p95",
      "turns skipped",
      "MiB a task to the disk",
      "to the layers' image",
      "stored by captures",
      "RSS MiB of a process, mean / max",
      "MiB of the machine",
      "event loop late, ms",
    ],
    cells.flatMap(({ cell, arms }) => arms.map((one) => cellRow(cell, one))),
  );
}

/** Of all cells. */
function classTable({ blocks, options }: Result): string {
  const rows = classes.flatMap(({ name, looking }) =>
    options.arms
      .filter(({ records }) => records)
      .flatMap((arm) => {
        const own = blocks.filter((block) => block.arm === arm.name).flatMap((block) => block.tasks);
        const turns = turnsOf(own.filter(({ className }) => className === name));
        if (turns.all === 0) return [];
        return [
          [
            `${name}: \`${arm.name}\``,
            `${looking} %`,
            share(turns.behindLooks, turns.all),
            turns.all,
            share(turns.skipped, turns.all),
            share(turns.skippedBehindLooks, turns.behindLooks),
            share(turns.skipped - turns.skippedBehindLooks, turns.all - turns.behindLooks),
            `${share(turns.filesKept, turns.all)} / ${share(turns.processesKept, turns.all)}`,
          ],
        ];
      }),
  );
  return table(
    [
      "class and arm",
      "looking turns, as planned",
      "as drawn",
      "turns",
      "skipped",
      "of those behind a look",
      "of those behind an act",
      "files / processes kept",
    ],
    rows,
  );
}

const about = ({ command, date, machine, busyBefore, seed, options, blocks }: Result): string => `# Density, ${date}

\`${command}\`

${machine.cores} cores (${machine.processor}), ${machine.memoryGiB} GiB, Linux ${machine.kernel}, ${machine.fileSystem}, Node ${machine.node}${machine.root ? ", as root" : ""}, load ${machine.loadBefore.toFixed(1)} before it began, ${(100 * busyBefore).toFixed(0)} % of the processors in use by others; seed ${seed}.

Agents, each in a sandbox of its own, in one store, replay turns: the model is a wait (${options.latencies.map(latencyAbout).join("; again with ")}), then the tools of its reply run. A task takes one latency from each of as many equally likely slices of that distribution as it has turns, so that the load of a block holds; agents begin within the time of one such turn.
Arms take turns in blocks of the same tasks with the same latencies. Where a cell is named by a load, the number of sandboxes is set so that they use about so much of the processors under \`none\` (at most ${mostSandboxes} are tried); it is the same for all arms. ${processesAbout(options, blocks)}

${options.arms.map(({ name, about }) => `- \`${name}\`: ${about}`).join("\n")}

Of the loads' cells, ${mixAbout}. What the classes do:

${classes.map(({ name, about, looking }) => `- ${name}: ${about}; ${looking} of 100 turns only look`).join("\n")}

Acting turns are those of the crash bench's traces, one trace after the other, each in a repository of its own, of which the first is there, and the server runs, before the task begins; looking ones are the traces' own and others of the same kind (files, searches, git, a test run of half a second of processor time, requests to the server).`;

function processesAbout({ perProcess, idlePerProcess, idle }: Options, blocks: readonly Block[]): string {
  const each = (number: number): string => (number === 1 ? "a process of its own" : `processes of ${number}`);
  const extra = idle > 0 && blocks.some(({ cell }) => cell.includes("idle-heavy"));
  return `An agent has ${each(perProcess)}${extra && idlePerProcess !== perProcess ? `; in the cell of ${idle} idle-heavy ones, ${each(idlePerProcess)}` : ""}.`;
}

export function markdown(result: Result): string {
  const { options, blocks, faults } = result;
  const names = [...new Set(blocks.map(({ cell }) => cell))];
  const cells = names.map((cell) => ({ cell, arms: options.arms.map(({ name }) => armFigures(blocks, cell, name)) }));
  const goals = judge(cells);
  return [
    about(result),
    "## Goals",
    table(
      ["goal", "met", "measured"],
      goals.map(({ goal, met, measured }) => [goal, met === null ? "-" : met ? "met" : "**not met**", measured]),
    ),
    "## Cells",
    cellTable(cells),
    `"Time against \`none\`": of all tasks together, and the middle and the slow ones of the single ratios. "Exposed": what turns say that the agent waited for us (\`exposedMs\`); the agents' own clock has the beginning of each turn as well. "Skipped": turns but the first whose halves are both those of the turn before. "Processors used": of the whole machine, while the model's time lasts.
Bytes to the disk are those of the device that holds the stores, from \`/sys/dev/block\`, until everything was on it, of the whole machine; to the layers' image those of its loop device; both contain what the agents' own work writes. "RSS": the most that an agent's process had. "MiB of the machine": the most that was taken from \`MemAvailable\`. "Event loop late": the latest of all processes.`,
    "## Turns skipped, by class",
    classTable(result),
    `A turn is judged behind the reply before it: "behind a look" are those that nothing should have changed. Published for a system of this kind (Crab): over 75 % of turns change nothing, up to 87 % skipped; exposed 0.44 % of a task's time at p95 with 64 sandboxes; up to 3.78 times as long with a full checkpoint every turn at 96.`,
    "## What must not be",
    faults.length === 0
      ? "Every agent came to its end in the sandbox in which it began; every task left the same files, commits and answers of its server in every arm, and its verifiers passed; every checkpoint can be restored."
      : faults.map((fault) => `- ${fault}`).join("\n"),
  ]
    .join("\n\n")
    .concat("\n");
}
