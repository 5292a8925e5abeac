// What /proc tells of processes.
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

export interface ProcessStat extends Pick<ProcessInfo, "parent" | "group" | "startTime" | "state"> {
  /** It was forked and has not become another program yet (PF_FORKNOEXEC). */
  readonly forked: boolean;
  /** Clock ticks that it has computed. */
  readonly ticks: number;
}

/** @throws when it has gone */
function readStat(pid: number): ProcessStat {
  const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
  // The name may hold anything, a closing parenthesis too.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return {
    state: fields[0] as string,
    parent: Number(fields[1]),
    group: Number(fields[2]),
    startTime: Number(fields[19]),
    forked: (Number(fields[6]) & 0x40) !== 0,
    ticks: Number(fields[11]) + Number(fields[12]),
  };
}

/** undefined when it has gone. */
export function processStat(pid: number): ProcessStat | undefined {
  try {
    return readStat(pid);
  } catch {
    return undefined;
  }
}

/** undefined when it has gone. */
function processInfo(pid: number): ProcessInfo | undefined {
  try {
    const { state, parent, group, startTime } = readStat(pid);
    const status = readFileSync(`/proc/${pid}/status`, "latin1");
    const inside = status
      .match(/^NSpid:\t(.*)$/m)?.[1]
      ?.split("\t")
      .at(-1);
    return { pid, state, parent, group, startTime, inside: Number(inside ?? pid) };
  } catch {
    return undefined;
  }
}

export const processInfos = (pids: readonly number[]): ProcessInfo[] =>
  pids.map(processInfo).filter((one) => one !== undefined);

/** Numbers of its threads, which /proc knows as well. */
export function threadsOf(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).map(Number);
  } catch {
    return [];
  }
}

/** Numbers of its descriptors. */
export function descriptors(pid: number): string[] {
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
