// Runs a command of the agent: bounded output, and a time limit that ends the whole process group.
import type { ChildProcess } from "node:child_process";
import { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { execa } from "execa";
import { RewindError } from "../errors.ts";
import type { ExecOptions, ExecResult } from "./environment.ts";
import { collectOutput, type Output } from "./output.ts";

const defaultMaxBytes = 10 << 20;
/** How long a killed command's output pipes may stay open before they are given up (a grandchild can hold them). */
const settleMs = 500;
/** How long output that still comes is waited for when the command has ended. */
const longestMs = 2_000;
const lookMs = 20;

/**
 * @param command a line for `bash -c` (`sh` where bash is missing), or a program and its arguments
 * @param started called with its number, which is that of its process group too
 */
export async function execCommand(
  command: string | readonly string[],
  cwd: string,
  options: ExecOptions = {},
  started?: (pid: number) => void,
): Promise<ExecResult> {
  // bash -c reads its settings where it takes its input, a socket, for a remote login's.
  const [file, ...args] = typeof command === "string" ? ["bash", "--norc", "-c", command] : command;
  if (file === undefined || file === "") {
    throw new RewindError("BAD_ARGUMENT", "The command is empty.", {
      hint: "Give a command line or a program with its arguments.",
    });
  }
  let timedOut = false;
  let truncated = false;
  const subprocess = execa(file, args, {
    cwd,
    env: options.env ?? {},
    ...(options.input === undefined ? { stdin: "ignore" as const } : { input: options.input }),
    reject: false,
    detached: true,
    buffer: false,
  });
  if (subprocess.pid !== undefined) started?.(subprocess.pid);
  const killGroup = (): void => {
    const { pid } = subprocess;
    if (pid === undefined) return;
    try {
      process.kill(-pid, "SIGKILL");
    } catch {
      // The group is gone already.
    }
    setTimeout(() => {
      subprocess.stdout.destroy();
      subprocess.stderr.destroy();
    }, settleMs).unref();
  };
  const [stdout, stderr] = (["stdout", "stderr"] as const).map((name) =>
    collectOutput(
      subprocess[name],
      options.maxBytes ?? defaultMaxBytes,
      (bytes) => options.onOutput?.(name, bytes),
      () => {
        if (truncated) return;
        truncated = true;
        killGroup();
      },
    ),
  ) as [Output, Output];
  const timer =
    options.timeoutMs === undefined
      ? undefined
      : setTimeout(() => {
          timedOut = true;
          killGroup();
        }, options.timeoutMs);
  options.signal?.addEventListener("abort", killGroup, { once: true });
  if (options.signal?.aborted) killGroup();
  const done = new AbortController();
  try {
    const result = await Promise.race([subprocess, leftBehind(subprocess, [stdout, stderr], done.signal)]);
    if ("shortMessage" in result && result.exitCode === undefined && result.signal === undefined && result.failed) {
      if (!timedOut && !truncated && options.signal?.aborted !== true) {
        throw new RewindError("COMMAND_FAILED", `The command could not be started: ${result.shortMessage}`, {
          hint: "Check that the program and the working directory exist.",
          cause: result.cause,
        });
      }
    }
    return {
      exitCode: result.exitCode ?? null,
      signal: result.signal ?? (timedOut ? "SIGKILL" : null),
      stdout: stdout.text(),
      stderr: stderr.text(),
      timedOut,
      truncated,
    };
  } finally {
    done.abort();
    clearTimeout(timer);
    options.signal?.removeEventListener("abort", killGroup);
  }
}

interface End {
  readonly exitCode: number | undefined;
  readonly signal: string | undefined;
}

/**
 * The end of a command whose output is still held by what it left in the background. That is read on, and dropped, so that whoever writes there can go on; it does not keep this
 * process from ending.
 */
async function leftBehind(subprocess: ChildProcess, outputs: readonly Output[], closed: AbortSignal): Promise<End> {
  const ended = await new Promise<End>((resolve) => {
    subprocess.once("exit", (exitCode, signal) =>
      resolve({ exitCode: exitCode ?? undefined, signal: signal ?? undefined }),
    );
  });
  const end = Date.now() + longestMs;
  while (!closed.aborted && Date.now() < end && outputs.some((one) => one.quietMs() < settleMs)) await sleep(lookMs);
  for (const stream of [subprocess.stdout, subprocess.stderr]) if (stream instanceof Socket) stream.unref();
  return ended;
}
