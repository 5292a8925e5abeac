// Runs test/fixtures/layers.mjs: layers in a process of its own, with a fault point armed if wanted.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { resolve } from "node:path";
import { inject } from "vitest";
import type { Layers } from "../../src/environment/sandbox/layers/layers.ts";
import { mkfsBtrfs } from "../helpers/tools.ts";
import type { Place } from "./place.ts";

export interface Step {
  readonly op: "open" | "sh" | "snapshot" | "reset" | "drop" | "fork" | "close" | "hold";
  readonly [argument: string]: unknown;
}

export interface Ran {
  // biome-ignore lint/suspicious/noExplicitAny: whatever the step gave
  readonly results: readonly { readonly op: string; readonly ok?: any; readonly error?: string }[];
  readonly signal: string | null;
}

const script = resolve(import.meta.dirname, "../fixtures/layers.mjs");

const argumentsOf = (place: Place, kind: Layers["kind"], steps: readonly Step[]): string[] => {
  const options = { store: place.store, kind, mkfs: mkfsBtrfs(), reserve: 8 << 20 };
  return [script, inject("library"), JSON.stringify(options), JSON.stringify(steps)];
};

export function runLayers(
  place: Place,
  kind: Layers["kind"],
  steps: readonly Step[],
  env: Readonly<Record<string, string>> = {},
): Ran {
  const ran = spawnSync(process.execPath, argumentsOf(place, kind, steps), {
    encoding: "utf8",
    env: { ...process.env, ...env },
  });
  if (ran.error !== undefined) throw ran.error;
  const results = ran.stdout
    .split("\n")
    .filter((line) => line.endsWith("}"))
    .map((line) => JSON.parse(line) as Ran["results"][number]);
  if (ran.signal === null && results.length < steps.length) throw new Error(`the steps ended early: ${ran.stderr}`);
  return { results, signal: ran.signal };
}

/** The same, still running; resolves when it has done `count` steps. */
export async function startLayers(
  place: Place,
  kind: Layers["kind"],
  steps: readonly Step[],
  count: number,
): Promise<ChildProcess> {
  const child = spawn(process.execPath, argumentsOf(place, kind, steps), { stdio: ["ignore", "pipe", "inherit"] });
  let output = "";
  await new Promise<void>((done, fail) => {
    child.once("exit", () => fail(new Error(`it ended early: ${output}`)));
    child.stdout?.on("data", (data: Buffer) => {
      output += data;
      if (output.split("\n").length > count) done();
    });
  });
  child.removeAllListeners("exit");
  return child;
}
