// `observe`: an agent as it runs without us, and at its end what its turns changed, what captures would have cost, and which policy fits.
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, readFileSync } from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";
import { openDirectory } from "../environment/directory/directory.ts";
import { countingObjects } from "../observe/counting.ts";
import { readLines } from "../observe/lines.ts";
import { Outside } from "../observe/outside/outside.ts";
import { Tree } from "../observe/outside/tree.ts";
import { type Observed, observeReport } from "../observe/report.ts";
import { openScratch } from "../observe/scratch.ts";
import { reportLines } from "../observe/table.ts";
import { observeVariable } from "../observed.ts";
import { resolveWorkspace } from "../workspace.ts";
import { notStarted } from "./exec.ts";
import type { Global } from "./global.ts";
import type { Output } from "./output.ts";

export interface ObserveOptions {
  /** Milliseconds. */
  readonly pause?: number;
}

interface Ended {
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
}

const defaultPauseMs = 2_000;

export async function observe(
  global: Global,
  command: readonly string[],
  { pause = defaultPauseMs }: ObserveOptions,
): Promise<Output> {
  const scratch = openScratch();
  try {
    const workspace = resolveWorkspace(global.workspace, scratch.folder, global.allowBroad);
    const reports = join(scratch.folder, "reports");
    mkdirSync(reports, { mode: 0o700 });
    const told = toldIn(reports);
    const tree = new Tree(randomBytes(6).toString("hex"));
    const objects = countingObjects();
    const environment = openDirectory({
      ...{ root: workspace, objects, id: "observed", exclude: [], watches: true },
      ...{ cacheFile: join(scratch.folder, "tree"), isHeld: () => false, raiseGeneration: () => 0 },
    });
    const outside = new Outside({
      tree,
      pauseMs: pause,
      files: async () => (await environment.capture().captured).manifest.files,
      takeBytes: objects.take,
      isTold: told,
    });
    await outside.begin();
    const ended = await run(command, workspace, {
      json: global.json,
      variables: { ...tree.variables, [observeVariable]: reports },
      started(pid) {
        tree.started(pid);
        outside.follow();
      },
    });
    await outside.end();
    await environment.close();
    const inside = readLines(reports);
    const found: Observed =
      inside.turns.length > 0
        ? { source: "turns", pauseMs: null, baseBytes: 0, ...inside }
        : {
            ...{
              source: "pauses",
              pauseMs: pause,
              workspaces: [workspace],
              turns: outside.turns,
              baseBytes: outside.baseBytes,
            },
            writeRate: scratch.writeRate,
            notes: outsideNotes(inside.notes),
          };
    const report = observeReport(found);
    return {
      json: { ...ended, ...report },
      to: "stderr",
      text: (paint) => reportLines(report, paint),
      status: statusOf(ended),
    };
  } finally {
    scratch.remove();
  }
}

/** Whether a process has told of a turn of its own. */
function toldIn(reports: string): () => boolean {
  const everyMs = 250;
  let at = 0;
  let told = false;
  return () => {
    if (told || Date.now() - at < everyMs) return told;
    at = Date.now();
    told = readLines(reports).turns.length > 0;
    return told;
  };
}

interface RunOptions {
  readonly json: boolean;
  readonly variables: Readonly<Record<string, string>>;
  readonly started: (pid: number) => void;
}

/** It has our terminal. With `--json` its output goes to stderr, since stdout holds the report alone. */
function run([file = "", ...args]: readonly string[], cwd: string, options: RunOptions): Promise<Ended> {
  return new Promise((resolve, reject) => {
    let asked = 0;
    const pass = (signal: NodeJS.Signals): void => {
      // From the terminal it has had it already.
      if (signal === "SIGINT" && isInForeground()) return;
      child.kill(asked++ === 0 ? signal : "SIGKILL");
    };
    const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
    // Before the command starts: a signal that comes while it does is told once `child` is there.
    for (const signal of signals) process.on(signal, pass);
    const child = spawn(file, args, {
      cwd,
      stdio: ["inherit", options.json ? 2 : "inherit", "inherit"],
      env: { ...process.env, ...options.variables },
    });
    if (child.pid !== undefined) options.started(child.pid);
    const settle = (): void => {
      for (const signal of signals) process.off(signal, pass);
    };
    child.once("error", (error) => {
      settle();
      reject(notStarted(file, error));
    });
    child.once("close", (exitCode, signal) => {
      settle();
      resolve({ exitCode, signal });
    });
  });
}

/** A terminal gives its signals to the processes of the group in its foreground, the command's among them. */
function isInForeground(): boolean {
  try {
    const stat = readFileSync("/proc/self/stat", "latin1");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields[2] === fields[5];
  } catch {
    return process.stdin.isTTY === true;
  }
}

/** As a shell tells it. */
const statusOf = ({ exitCode, signal }: Ended): number =>
  exitCode ?? 128 + (signal === null ? 0 : (constants.signals[signal] ?? 0));

const outsideNotes = (notes: readonly string[]): string[] =>
  process.platform === "linux"
    ? [...notes, "Commands that ran for less than some 30 ms may not have been seen."]
    : [...notes, "Only Linux shows which commands ran: here files alone are told."];
