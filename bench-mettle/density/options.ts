// The options of the bench's command line.
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { count, list } from "../arguments.ts";
import { type Arm, arms } from "./arms.ts";

export interface Options {
  /** About how long a cell takes. */
  readonly minutes: number;
  /** Shares of the processors that the agents use without checkpoints, in percent. */
  readonly loads: readonly number[];
  /** Medians of the model's latency, in milliseconds. */
  readonly latencies: readonly number[];
  readonly arms: readonly Arm[];
  readonly seed: number;
  /** Instead of the loads. */
  readonly sandboxes: number | null;
  /** How many idle-heavy ones the extra cell has; 0: there is none. */
  readonly idle: number;
  readonly rounds: number;
  /** Of a task; null: what the minutes allow. */
  readonly turns: number | null;
  /** Agents in one process. */
  readonly perProcess: number;
  readonly idlePerProcess: number;
  readonly out: string;
}

const usual = ["none", "full", "ours"];

export const usage = `npm run bench:density -- [options]

  --minutes X           about how long each cell takes, all arms and rounds of it (default 4)
  --loads LIST          the number of sandboxes is set so that they use so many percent of the processors without checkpoints (default 30,60,90)
  --sandboxes N         so many instead, whatever they use
  --idle N              an extra cell of so many idle-heavy sandboxes at the first latency; 0 for none (default 96)
  --latency LIST        medians of the model's latency in milliseconds; p95 is 3.75 times that (default 4000,800)
  --arms LIST           ${arms.map(({ name }) => name).join(", ")} (default ${usual.join(",")})
  --rounds N            blocks of each arm in a cell, by turns, where the time allows so many (default 2)
  --turns N             model decisions of each task, whatever time that takes
  --per-process N       agents in one process (default 1)
  --idle-per-process N  the same in the extra cell (default 8)
  --seed N              decides tasks and latencies (default 1)
  --out FOLDER          where density.md and density.jsonl are written (default bench-mettle/results)

Needs Linux and root, what a sandbox needs (\`agentrewind doctor\`), and a machine on which nothing else runs.
`;

/** @throws Error with a sentence that names the option */
export function parseOptions(args: readonly string[]): Options | "help" {
  const { values } = parseArgs({
    args: [...args],
    options: {
      minutes: { type: "string", default: "4" },
      loads: { type: "string", default: "30,60,90" },
      sandboxes: { type: "string" },
      idle: { type: "string", default: "96" },
      latency: { type: "string", default: "4000,800" },
      arms: { type: "string", default: usual.join(",") },
      rounds: { type: "string", default: "2" },
      turns: { type: "string" },
      "per-process": { type: "string", default: "1" },
      "idle-per-process": { type: "string", default: "8" },
      seed: { type: "string", default: "1" },
      out: { type: "string", default: fileURLToPath(new URL("../results", import.meta.url)) },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  if (values.help) return "help";
  const minutes = Number(values.minutes);
  if (!(minutes > 0 && minutes <= 600)) throw new Error(`--minutes ${values.minutes}: give a number up to 600.`);
  const optional = (option: string, text: string | undefined): number | null =>
    text === undefined ? null : count(option, text);
  const turns = optional("--turns", values.turns);
  if (turns !== null && turns < leastTurns) throw new Error(`--turns ${turns}: a task has at least ${leastTurns}.`);
  return {
    minutes,
    loads: list(values.loads).map((one) => {
      const load = count("--loads", one);
      if (load > 95) throw new Error(`--loads ${one}: give whole percents from 1 to 95.`);
      return load;
    }),
    latencies: list(values.latency).map((one) => count("--latency", one)),
    arms: list(values.arms).map(armNamed),
    seed: count("--seed", values.seed),
    sandboxes: optional("--sandboxes", values.sandboxes),
    idle: values.idle === "0" ? 0 : count("--idle", values.idle),
    rounds: count("--rounds", values.rounds),
    turns,
    perProcess: count("--per-process", values["per-process"]),
    idlePerProcess: count("--idle-per-process", values["idle-per-process"]),
    out: values.out,
  };
}

/** Less is no task: it begins, looks or acts, and ends. */
export const leastTurns = 4;

function armNamed(name: string): Arm {
  const found = arms.find((one) => one.name === name);
  if (found === undefined)
    throw new Error(`--arms ${name}: no such arm; there are ${arms.map((one) => one.name).join(", ")}.`);
  return found;
}
