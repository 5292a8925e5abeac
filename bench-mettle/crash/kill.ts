// SIGKILL for a process, or for everything that descends from it as well.
import { readdirSync, readFileSync } from "node:fs";

/** Those of the sandbox first: its owner must not take the end of all of them for the agent's work. */
export function killTree(pid: number): void {
  for (const one of descendants(pid)) kill(one);
  kill(pid);
}

export function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** Children before their parents' parents' end: the nearest come first. */
export function descendants(pid: number): number[] {
  const children = new Map<number, number[]>();
  for (const name of readdirSync("/proc")) {
    const parent = /^\d+$/.test(name) ? parentOf(name) : undefined;
    if (parent !== undefined) children.set(parent, [...(children.get(parent) ?? []), Number(name)]);
  }
  const found: number[] = [];
  for (let next = [pid]; next.length > 0; ) {
    next = next.flatMap((one) => children.get(one) ?? []);
    found.push(...next);
  }
  return found;
}

function parentOf(pid: string): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
  } catch {
    return undefined;
  }
}
