// What the host's /proc tells of the processes of a sandbox.
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

export interface ProcessInfo {
  /** In the host's pid namespace, as all numbers here but `inside`. */
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  /** In the sandbox's pid namespace. */
  readonly inside: number;
  /** Clock ticks since the machine started. */
  readonly startTime: number;
  /** One letter: R, S, D, T, Z, … */
  readonly state: string;
}

/** undefined when it has gone. */
export function processInfo(pid: number): ProcessInfo | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The name may hold anything, a closing parenthesis too.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const status = readFileSync(`/proc/${pid}/status`, "latin1");
    const inside = status
      .match(/^NSpid:\t(.*)$/m)?.[1]
      ?.split("\t")
      .at(-1);
    return {
      pid,
      state: fields[0] as string,
      parent: Number(fields[1]),
      group: Number(fields[2]),
      startTime: Number(fields[19]),
      inside: Number(inside ?? pid),
    };
  } catch {
    return undefined;
  }
}

export const processInfos = (pids: readonly number[]): ProcessInfo[] =>
  pids.map(processInfo).filter((one) => one !== undefined);

/** Ids of the commands whose files a process has open. */
export function openCalls(pids: readonly number[]): string[] {
  return pids.flatMap((pid) =>
    descriptors(pid).flatMap((fd) => /\/calls\/([^/]+)\/[^/]+$/.exec(targetOf(pid, fd) ?? "")?.[1] ?? []),
  );
}

function descriptors(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`);
  } catch {
    return [];
  }
}

/** What the descriptor leads to, as the process sees it; undefined when there is none. */
export function targetOf(pid: number, fd: string): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/fd/${fd}`);
  } catch {
    return undefined;
  }
}

export function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has gone already.
  }
}

export const killGroup = (group: number): void => {
  if (group > 1) kill(-group, "SIGKILL");
};
