// Starts a recorded program again, which nobody waits for.
import { type ChildProcess, spawn } from "node:child_process";
import { systemCode } from "../../../errors.ts";
import { commandOf, endedAtOnce, environmentOf, obstacleOf, watchedMs } from "../../processes/start-again.ts";
import type { RecordedProgram } from "./run.ts";

/** Null where it can be started again. */
export function obstacle(program: RecordedProgram): string | null {
  if (program.forked) return "it was a part of another program, and what it did was in memory only";
  const reason = obstacleOf(program);
  if (reason !== null) return reason;
  const [user] = program.ids;
  return user === process.getuid?.() || process.getuid?.() === 0 ? null : "it ran as another user";
}

export interface Launched {
  /** Where it was started at all. */
  readonly pid: number | undefined;
  /** null where it still runs after a moment; else how it has ended. */
  readonly end: Promise<string | null>;
}

/** @param variables besides its own */
export function launch(program: RecordedProgram, variables: Readonly<Record<string, string>>): Launched {
  const self = { user: process.getuid?.() ?? 0, group: process.getgid?.() ?? 0 };
  const [file = "", ...args] = commandOf(program, self);
  const child = spawn(file, args, {
    cwd: program.cwd,
    env: { ...environmentOf(program), ...variables },
    // A group of its own, which outlives this process.
    detached: true,
    stdio: "ignore",
  });
  child.unref();
  return { pid: child.pid, end: watch(child) };
}

function watch(child: ChildProcess): Promise<string | null> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(null), watchedMs);
    const ended = (how: string): void => {
      clearTimeout(timer);
      resolve(endedAtOnce(how));
    };
    child.once("exit", (code, signal) => ended(signal ?? `exit status ${code}`));
    // Its folder may be gone.
    child.on("error", (error) => ended(systemCode(error) ?? error.message));
  });
}
