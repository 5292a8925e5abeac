// The options of the suite's command line.
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { count, list } from "../arguments.ts";
import { type Policy, policies, unkilled } from "./policies.ts";
import { traces as allTraces } from "./traces/index.ts";
import type { Trace } from "./traces/trace.ts";

export interface Options {
  readonly traces: readonly Trace[];
  readonly policies: readonly Policy[];
  readonly seeds: readonly number[];
  /** What a latency of the model is multiplied with. */
  readonly scale: number;
  /** Runs beside each other. */
  readonly jobs: number;
  readonly out: string;
  /** What an earlier suite has written there is not done again. */
  readonly resume: boolean;
  /** Only the traces themselves are judged. */
  readonly validate: boolean;
  /** Of how many turns of a trace each check is made: all, or so many. */
  readonly turns: number;
}

export const usage = `npm run bench:crash -- [options]

  --traces LIST         ids or families (default all ${allTraces.length})
  --policies LIST       ${policies.map(({ name }) => name).join(", ")} (default all)
  --seeds LIST          each decides where every trace is killed (default 1)
  --latency-scale X     the model's latencies times X; 0 for none (default 0.02)
  --jobs N              runs beside each other (default 2)
  --out FOLDER          where crash.md, crash.jsonl and traces.jsonl are written (default bench-mettle/results)
  --resume              goes on with a suite that was ended: what those files hold is not done again
  --validate            judges the traces, and runs no policy
  --turns N             judges each trace at N of its turns, chosen by its name (default all)

Needs Linux and root for the shell traces, and what a sandbox needs: see \`agentrewind doctor\`.
`;

/** @throws Error with a sentence that names the option */
export function parseOptions(args: readonly string[]): Options | "help" {
  const { values } = parseArgs({
    args: [...args],
    options: {
      traces: { type: "string" },
      policies: { type: "string" },
      seeds: { type: "string", default: "1" },
      "latency-scale": { type: "string", default: "0.02" },
      jobs: { type: "string", default: "2" },
      out: { type: "string", default: fileURLToPath(new URL("../results", import.meta.url)) },
      resume: { type: "boolean", default: false },
      validate: { type: "boolean", default: false },
      turns: { type: "string" },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  if (values.help) return "help";
  const scale = Number(values["latency-scale"]);
  if (!(scale >= 0 && scale <= 10)) {
    throw new Error(`--latency-scale ${values["latency-scale"]}: give a number from 0 to 10.`);
  }
  return {
    traces: chosen("--traces", values.traces, allTraces, ({ id, family }) => [id, family]),
    policies: chosen("--policies", values.policies, [...unkilled, ...policies], ({ name }) => [name]),
    seeds: list(values.seeds).map((one) => count("--seeds", one)),
    scale,
    jobs: count("--jobs", values.jobs),
    out: values.out === "" ? join(tmpdir(), "agentrewind-crash") : values.out,
    resume: values.resume,
    validate: values.validate,
    turns: values.turns === undefined ? Number.POSITIVE_INFINITY : count("--turns", values.turns),
  };
}

function chosen<T>(
  option: string,
  text: string | undefined,
  all: readonly T[],
  namesOf: (one: T) => readonly string[],
): T[] {
  if (text === undefined) return [...all];
  const wanted = list(text);
  const unknown = wanted.find((name) => !all.some((one) => namesOf(one).includes(name)));
  if (unknown !== undefined) throw new Error(`${option} ${unknown}: there is no such name; see --help.`);
  return all.filter((one) => namesOf(one).some((name) => wanted.includes(name)));
}
