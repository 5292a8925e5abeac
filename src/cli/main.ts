#!/usr/bin/env node
// The `agentrewind` command: runs one command, prints what it gives back, and sets the exit status.
import { CommanderError } from "commander";
import { oneLine } from "../text/safe.ts";
import { exit, printFailure, toFailure } from "./failure.ts";
import type { Global } from "./global.ts";
import { print } from "./output.ts";
import { refusedPlatform } from "./platform.ts";
import { makeProgram } from "./program.ts";
import { showProgress } from "./progress.ts";

/** `--json` of ours, also where the rest is not understood. */
function wantsJson(args: readonly string[]): boolean {
  const end = args.indexOf("--");
  return (end < 0 ? args : args.slice(0, end)).includes("--json");
}

function fail(error: unknown, json: boolean): void {
  const failure = toFailure(error);
  if (process.env.AGENTREWIND_DEBUG) console.error(error);
  printFailure(failure, json);
  process.exitCode = failure.status;
}

const tellThemselves: ReadonlySet<string> = new Set(["doctor", "prune", "gc"]);

/** A line on stderr where the store has grown beyond its soft limit. */
async function warnOfSize(name: string, global: Global): Promise<void> {
  if (tellThemselves.has(name)) return;
  const { sizeWarning } = await import("./size.ts");
  const warning = sizeWarning(global);
  if (warning !== undefined) process.stderr.write(`agentrewind: ${oneLine(warning)}\n`);
}

async function main(args: readonly string[]): Promise<void> {
  const json = wantsJson(args);
  try {
    const program = makeProgram(json, async (name, global, work) => {
      const refused = name === "doctor" ? undefined : refusedPlatform();
      if (refused !== undefined) throw refused;
      const stop = global.json ? undefined : showProgress(process.stderr);
      const output = await work(global).finally(() => stop?.());
      print(output, global.json);
      if (output.failure !== undefined) fail(output.failure, global.json);
      if (output.status !== undefined) process.exitCode = output.status;
      if (!global.json) await warnOfSize(name, global);
    });
    await program.parseAsync([...args], { from: "user" });
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === exit.done) return;
    fail(error, json);
  }
}

// Whoever reads us may stop early, as `head` does.
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
  });
}

await main(process.argv.slice(2));
