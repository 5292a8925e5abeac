// `exec`: a command in the workspace, with a checkpoint before and after.
import { spawn } from "node:child_process";
import { constants } from "node:os";
import { join } from "node:path";
import { openSeeing } from "../environment/directory/programs/see.ts";
import { ProgramTracker, type TrackedCommand } from "../environment/directory/programs/tracker.ts";
import type { ExecResult } from "../environment/environment.ts";
import { execCommand } from "../environment/exec.ts";
import { RewindError, systemCode } from "../errors.ts";
import type { Activity } from "../session/types.ts";
import { oneLine } from "../text/safe.ts";
import { resolveWorkspace } from "../workspace.ts";
import { makeCheckpoint } from "./checkpoint.ts";
import { commandLine, type Global } from "./global.ts";
import type { Output } from "./output.ts";
import { withReader } from "./recorded.ts";
import { give } from "./writer.ts";

type Ended = Pick<ExecResult, "exitCode" | "signal"> & Partial<Pick<ExecResult, "stdout" | "stderr" | "truncated">>;

export async function exec(global: Global, command: readonly string[]): Promise<Output> {
  const folder = resolveWorkspace(global.workspace, global.store, global.allowBroad);
  const before = await makeCheckpoint(global, {});
  const ended = await runWhereRecorded(global, command, folder);
  const after = await makeCheckpoint({ ...global, thread: before.thread }, { activity: activityOf(command, ended) });
  const failed = ended.exitCode !== 0;
  return {
    json: { before, after, ...ended },
    to: "stderr",
    text: () => [
      `before: ${before.id}, after: ${after.id}. To take it back: ${commandLine(global, `rewind ${before.id}`)}`,
    ],
    ...(failed ? { failure: commandFailed(command, ended) } : {}),
  };
}

async function runWhereRecorded(global: Global, command: readonly string[], folder: string): Promise<Ended> {
  if (await withReader(global, (reader) => reader?.recorded?.kind === "sandbox")) return runInside(global, command);
  const tracked = await beginTracked(global);
  const run = global.json ? runKept : runThrough;
  return run(command, folder, tracked).finally(() => tracked?.ended());
}

/** What it leaves running belongs to the workspace, as with `environment.exec`. */
function beginTracked(global: Global): Promise<TrackedCommand | undefined> {
  return withReader(global, async (reader) => {
    const { recorded, layout } = reader ?? {};
    if (layout === undefined || recorded?.kind !== "directory") return undefined;
    return new ProgramTracker(recorded.id, join(layout.programs, recorded.id), openSeeing()).begin();
  });
}

/** The command has our terminal; what reaches it from there reaches us too, and the checkpoint after it is still made. */
function runThrough(
  [file = "", ...args]: readonly string[],
  cwd: string,
  tracked: TrackedCommand | undefined,
): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const pass = (signal: NodeJS.Signals): void => void child.kill(signal);
    const leaveToChild = (): void => {};
    // Before the command starts: a signal that comes while it does is told once `child` is there.
    process.on("SIGINT", leaveToChild).on("SIGTERM", pass).on("SIGHUP", pass);
    const child = spawn(file, args, { cwd, stdio: "inherit", env: { ...process.env, ...tracked?.variables } });
    // It is in our own process group, with whoever started us.
    if (child.pid !== undefined) tracked?.started(child.pid, false);
    const settle = (): void => void process.off("SIGINT", leaveToChild).off("SIGTERM", pass).off("SIGHUP", pass);
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

/** In the sandbox that the workspace is recorded with; its output comes at its end. */
async function runInside(global: Global, command: readonly string[]): Promise<Ended> {
  const ended = await give<ExecResult>(global, {
    command: "exec",
    arguments: { command },
    here: (_, rewind) => rewind.environment.exec(command),
    begins: false,
    async afterLoss() {
      throw new RewindError("CONTROL_FAILED", "The process that held this workspace ended while the command ran.", {
        hint: "Look what the command did, and run it again if it is still wanted.",
      });
    },
  });
  if (!global.json) {
    process.stdout.write(ended.stdout);
    process.stderr.write(ended.stderr);
  }
  return ended;
}

async function runKept(command: readonly string[], cwd: string, tracked: TrackedCommand | undefined): Promise<Ended> {
  const stop = new AbortController();
  const abort = (): void => stop.abort();
  process.on("SIGINT", abort).on("SIGTERM", abort).on("SIGHUP", abort);
  try {
    const { timedOut: _, ...ended } = await execCommand(
      command,
      cwd,
      { signal: stop.signal, env: tracked?.variables ?? {} },
      tracked?.started,
    );
    return ended;
  } finally {
    process.off("SIGINT", abort).off("SIGTERM", abort).off("SIGHUP", abort);
  }
}

export function notStarted(file: string, cause: Error): RewindError {
  const why = systemCode(cause) === "ENOENT" ? "there is no such program" : cause.message;
  return new RewindError("COMMAND_FAILED", `"${file}" could not be started: ${why}.`, {
    hint: "Check the name; for a line of shell give: -- sh -c 'LINE'.",
    cause,
  });
}

function activityOf(command: readonly string[], ended: Ended): Activity {
  const output = howItEnded(ended);
  return { said: "", actions: [{ tool: "exec", input: command.join(" "), output, failed: ended.exitCode !== 0 }] };
}

function howItEnded({ exitCode, signal }: Ended): string {
  if (exitCode !== null) return `exit code ${exitCode}`;
  const number = constants.signals[signal as NodeJS.Signals] as number | undefined;
  return `ended by ${signal ?? "a signal"}${number === undefined ? "" : ` (${number})`}`;
}

function commandFailed(command: readonly string[], ended: Ended): RewindError {
  return new RewindError(
    "COMMAND_FAILED",
    `The command failed, ${howItEnded(ended)}: ${oneLine(command.join(" "), 120)}.`,
    {
      hint: "The checkpoints before and after it are there.",
      details: { ...ended },
    },
  );
}
