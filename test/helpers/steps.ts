// Runs test/fixtures/steps.mjs: a session in a process of its own, as another user or with a fault point armed if wanted.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { resolve } from "node:path";
import { libraryEntry } from "./library.ts";

export interface Step {
  readonly op: string;
  readonly [argument: string]: unknown;
}

export interface StepResult {
  readonly op: string;
  // biome-ignore lint/suspicious/noExplicitAny: whatever the step gave
  readonly ok?: any;
  readonly error?: string;
  readonly message?: string;
}

export interface RunOptions {
  readonly workspace: string;
  readonly store: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly uid?: number;
  /** More for openRewind. */
  readonly options?: object;
}

export interface Ran {
  readonly results: readonly StepResult[];
  /** The signal that ended it. */
  readonly signal: string | null;
}

const script = resolve(import.meta.dirname, "../fixtures/steps.mjs");

const openOptions = ({ workspace, store, options }: RunOptions): string =>
  JSON.stringify({ workspace, store, ...options });

const parse = (output: string): StepResult[] =>
  output
    .split("\n")
    .filter((line) => line.endsWith("}"))
    .map((line) => JSON.parse(line) as StepResult);

export function runSteps(options: RunOptions, steps: readonly Step[]): Ran {
  const { env = {}, uid } = options;
  const result = spawnSync(process.execPath, [script, libraryEntry, openOptions(options), JSON.stringify(steps)], {
    encoding: "utf8",
    env: { ...process.env, ...env },
    ...(uid === undefined ? {} : { uid, gid: uid }),
  });
  if (result.error !== undefined) throw result.error;
  const results = parse(result.stdout);
  if (result.signal === null && results.length < steps.length)
    throw new Error(`the steps ended early: ${result.stderr}`);
  return { results, signal: result.signal };
}

/** The same, still running. */
export function startSteps(options: RunOptions, steps: readonly Step[]): ChildProcess {
  const { env = {}, uid } = options;
  return spawn(process.execPath, [script, libraryEntry, openOptions(options), JSON.stringify(steps)], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "inherit"],
    ...(uid === undefined ? {} : { uid, gid: uid }),
  });
}

/** A process that has loaded the library and waits: `begin` gives it its steps. */
export function warmSteps(options: RunOptions): { child: ChildProcess; begin(steps: readonly Step[]): void } {
  const { env = {} } = options;
  const child = spawn(process.execPath, [script, libraryEntry, openOptions(options)], {
    env: { ...process.env, ...env },
    stdio: ["pipe", "pipe", "inherit"],
  });
  // It may be killed before it reads.
  child.stdin?.on("error", () => {});
  return { child, begin: (steps) => child.stdin?.write(`${JSON.stringify(steps)}\n`) };
}
