// What is recorded of a process, for people and for starting it again.
import { readFileSync, readlinkSync } from "node:fs";

export interface ProcessDescription {
  /** The kernel's name of it. */
  readonly command: string;
  readonly argv: readonly string[];
  readonly cwd: string;
  /** As it was started. */
  readonly env: readonly string[];
  /** User, group and groups. */
  readonly ids: readonly [user: number, group: number, groups: readonly number[]];
  /** Octal. */
  readonly umask: string;
  /** What its first three descriptors are: paths, or "pipe:[…]" and the like. */
  readonly streams: readonly string[];
}

/** @param pid in this process's pid namespace */
export function describeProcess(pid: number): ProcessDescription {
  const field = statusOf(pid);
  return {
    command: field("Name").join(" "),
    argv: argumentsOf(pid),
    cwd: linkOf(`/proc/${pid}/cwd`),
    env: strings(`/proc/${pid}/environ`),
    ids: [Number(field("Uid")[0]), Number(field("Gid")[0]), field("Groups").map(Number)],
    umask: field("Umask")[0] ?? "0022",
    streams: [0, 1, 2].map((fd) => linkOf(`/proc/${pid}/fd/${fd}`)),
  };
}

/** The words of a line of /proc/PID/status. */
export function statusOf(pid: number): (name: string) => string[] {
  const status = attempt(() => readFileSync(`/proc/${pid}/status`, "latin1"), "");
  return (name) =>
    (new RegExp(`^${name}:[ \\t]*(.*)$`, "m").exec(status)?.[1] ?? "").trim().split(/\s+/).filter(Boolean);
}

export const argumentsOf = (pid: number): string[] => strings(`/proc/${pid}/cmdline`);
export const programOf = (pid: number): string => linkOf(`/proc/${pid}/exe`);

const strings = (path: string): string[] => attempt(() => readFileSync(path, "utf8").split("\0").slice(0, -1), []);
const linkOf = (path: string): string => attempt(() => readlinkSync(path), "");

function attempt<T>(read: () => T, otherwise: T): T {
  try {
    return read();
  } catch {
    return otherwise;
  }
}
