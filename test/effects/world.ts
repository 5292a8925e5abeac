// A world outside of the workspace, and processes of their own that act on it.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { afterEach } from "vitest";
import { libraryEntry } from "../helpers/library.ts";
import type { Step, StepResult } from "../helpers/steps.ts";
// Its own `afterEach`, which removes the places, must be registered before the one here: the last registered runs first.
import "../helpers/workspace.ts";
import type { Place } from "../helpers/workspace.ts";

const script = resolve(import.meta.dirname, "../fixtures/world.mjs");

const argsOf = (place: Place, steps: readonly Step[]): string[] => [
  script,
  libraryEntry,
  JSON.stringify({ workspace: place.workspace, store: place.store, world: worldOf(place) }),
  JSON.stringify(steps),
];

export const worldOf = (place: Place): string => join(place.base, "world.log");

/** What was done in the world, in its order. */
export const done = (place: Place): string[] =>
  existsSync(worldOf(place)) ? readFileSync(worldOf(place), "utf8").trim().split("\n") : [];

export function runWorld(
  place: Place,
  steps: readonly Step[],
  env: Readonly<Record<string, string>> = {},
): { results: StepResult[]; signal: string | null } {
  const ran = spawnSync(process.execPath, argsOf(place, steps), { encoding: "utf8", env: { ...process.env, ...env } });
  const results = ran.stdout
    .split("\n")
    .filter((line) => line.endsWith("}"))
    .map((line) => JSON.parse(line) as StepResult);
  if (ran.signal === null && results.length < steps.length) throw new Error(`the steps ended early: ${ran.stderr}`);
  return { results, signal: ran.signal };
}

export interface Started {
  readonly child: ChildProcess;
  /** The next line that it prints of this kind. */
  next(op: string): Promise<StepResult>;
  readonly ended: Promise<void>;
}

const started: Started[] = [];

// Until a process has ended it may write where its place is removed.
afterEach(async () => {
  for (const { child, ended } of started.splice(0)) {
    child.kill("SIGKILL");
    await ended;
  }
});

/** It ends with its test. */
export function startWorld(place: Place, steps: readonly Step[]): Started {
  const child = spawn(process.execPath, argsOf(place, steps), { stdio: ["ignore", "pipe", "inherit"] });
  const lines: StepResult[] = [];
  const waiting: { op: string; resolve: (line: StepResult) => void }[] = [];
  createInterface({ input: child.stdout as NodeJS.ReadableStream }).on("line", (text) => {
    const line = JSON.parse(text) as StepResult;
    const at = waiting.findIndex((one) => one.op === line.op);
    if (at < 0) lines.push(line);
    else waiting.splice(at, 1)[0]?.resolve(line);
  });
  const world: Started = {
    child,
    next(op) {
      const at = lines.findIndex((line) => line.op === op);
      if (at >= 0) return Promise.resolve(lines.splice(at, 1)[0] as StepResult);
      return new Promise((resolve) => waiting.push({ op, resolve }));
    },
    ended: new Promise((resolve) => child.once("close", () => resolve())),
  };
  started.push(world);
  return world;
}
