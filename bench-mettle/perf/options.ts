// The options of the benchmark's command line.
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { count, list } from "../arguments.ts";
import { type Operation, operations } from "./arm.ts";

/** What is measured: a tree of so many files, or a SQLite file of so many MiB. */
export type Size = { readonly files: number } | { readonly databaseMiB: number };

export interface Options {
  readonly sizes: readonly Size[];
  readonly rounds: number;
  /** Samples of a short operation in each round. */
  readonly repeats: number;
  readonly out: string;
  /** Names of arms; undefined for all. */
  readonly arms: readonly string[] | undefined;
  readonly only: Operation | undefined;
  readonly quick: boolean;
  readonly fetchTools: boolean;
  /** Milliseconds between a change and its measurement. */
  readonly settleMs: number;
  /** Milliseconds that the simulated model call takes. */
  readonly modelMs: number;
}

export const usage = `npm run bench:perf -- [options]

  --sizes LIST    trees by number of files, and sqlite or sqlite:MIB (default 1000,10000,100000,sqlite;
                  10000 is this project's node_modules, cut to about 160 MB)
  --rounds N      rounds over everything (default 5)
  --arms LIST     agentrewind, scan (agentrewind without its watcher), cp, git, stash, rsync, restic (default all)
  --only OP       ${operations.join(", ")}
  --out DIR       where perf.json, perf.md and perf.svg are written (default bench-mettle/results)
  --fetch-tools   gets rsync and restic as Debian packages into a private folder, without installing them
  --quick         small trees, one round, no pauses: shows that everything works, measures nothing
`;

/** @throws Error with a sentence that names the option */
export function parseOptions(args: readonly string[]): Options | "help" {
  const { values } = parseArgs({
    args: [...args],
    options: {
      sizes: { type: "string" },
      rounds: { type: "string" },
      arms: { type: "string" },
      only: { type: "string" },
      out: { type: "string" },
      "fetch-tools": { type: "boolean", default: false },
      quick: { type: "boolean", default: false },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  if (values.help) return "help";
  const { quick } = values;
  const only = operations.find((one) => one === values.only);
  if (values.only !== undefined && only === undefined)
    throw new Error(`--only ${values.only}: no such operation; there are ${operations.join(", ")}.`);
  return {
    sizes: list(values.sizes ?? (quick ? "120,sqlite:2" : "1000,10000,100000,sqlite")).map(parseSize),
    rounds: count("--rounds", values.rounds ?? (quick ? "1" : "5")),
    repeats: quick ? 1 : 3,
    out: values.out ?? (quick ? join(tmpdir(), "agentrewind-bench-quick") : join("bench-mettle", "results")),
    arms: values.arms === undefined ? undefined : list(values.arms),
    only,
    quick,
    fetchTools: values["fetch-tools"],
    settleMs: quick ? 50 : 1_100,
    modelMs: quick ? 50 : 1_000,
  };
}

function parseSize(text: string): Size {
  if (text === "sqlite") return { databaseMiB: 1024 };
  if (text.startsWith("sqlite:")) return { databaseMiB: count("--sizes", text.slice("sqlite:".length)) };
  return { files: count("--sizes", text) };
}
