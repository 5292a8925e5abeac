// Runs and times commands, with nothing of the user's own settings.
import { spawnSync } from "node:child_process";
import { performance } from "node:perf_hooks";
import type { Sample } from "./arm.ts";

/** A program and the arguments that come before all others. */
export type Tool = readonly [program: string, ...before: string[]];

export interface Where {
  readonly cwd: string;
  /** Stands for the home folder. */
  readonly home: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** @throws Error with what the command said */
export function run([program, ...before]: Tool, args: readonly string[], { cwd, home, env = {} }: Where): string {
  const result = spawnSync(program, [...before, ...args], {
    cwd,
    encoding: "utf8",
    maxBuffer: 1 << 28,
    stdio: ["ignore", "pipe", "pipe"],
    env: { PATH: process.env.PATH ?? "", LC_ALL: "C", HOME: home, ...env },
  });
  if (result.error !== undefined) throw result.error;
  if (result.status !== 0)
    throw new Error(`${program} ${args.join(" ")}: ${result.signal ?? result.status}\n${result.stderr.slice(-2000)}`);
  return result.stdout;
}

export function time(work: () => void): Sample {
  const start = performance.now();
  work();
  return { ms: performance.now() - start };
}
