// Runs a command of the agent: bounded output, and a time limit that ends the whole process group.
import { execa } from "execa";
import { RewindError } from "../errors.ts";
import type { ExecOptions, ExecResult } from "./environment.ts";

const defaultMaxBytes = 10 << 20;
/** How long a killed command's output pipes may stay open before they are given up (a grandchild can hold them). */
const settleMs = 500;

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
  const subprocess = execa(file, args, {
    cwd,
    env: options.env ?? {},
    ...(options.input === undefined ? { stdin: "ignore" as const } : { input: options.input }),
    reject: false,
    detached: true,
    stripFinalNewline: false,
    maxBuffer: options.maxBytes ?? defaultMaxBytes,
  });
  if (subprocess.pid !== undefined) started?.(subprocess.pid);
  const { onOutput } = options;
  if (onOutput !== undefined) {
    subprocess.stdout.on("data", (bytes: Uint8Array) => onOutput("stdout", bytes));
    subprocess.stderr.on("data", (bytes: Uint8Array) => onOutput("stderr", bytes));
  }
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
  const timer =
    options.timeoutMs === undefined
      ? undefined
      : setTimeout(() => {
          timedOut = true;
          killGroup();
        }, options.timeoutMs);
  options.signal?.addEventListener("abort", killGroup, { once: true });
  if (options.signal?.aborted) killGroup();
  try {
    const result = await subprocess;
    if (result.isMaxBuffer) killGroup();
    if (
      result.exitCode === undefined &&
      result.signal === undefined &&
      !result.isMaxBuffer &&
      !timedOut &&
      result.failed &&
      !options.signal?.aborted
    ) {
      throw new RewindError("COMMAND_FAILED", `The command could not be started: ${result.shortMessage}`, {
        hint: "Check that the program and the working directory exist.",
        cause: result.cause,
      });
    }
    return {
      exitCode: result.exitCode ?? null,
      signal: result.signal ?? (timedOut ? "SIGKILL" : null),
      stdout: String(result.stdout),
      stderr: String(result.stderr),
      timedOut,
      truncated: result.isMaxBuffer === true,
    };
  } finally {
    clearTimeout(timer);
    options.signal?.removeEventListener("abort", killGroup);
  }
}
