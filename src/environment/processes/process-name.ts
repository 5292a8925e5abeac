// How a process of a sandbox is named to a person: by its number inside, and the command without its arguments, which may hold secrets.
import { readFile } from "node:fs/promises";
import { join } from "node:path";

/** As "process 12 (curl)". `proc` is the host path of the sandbox's /proc. */
export async function processName(pid: string | null, proc?: string): Promise<string> {
  if (pid === null) return "processes";
  const comm = proc === undefined ? "" : await readFile(join(proc, pid, "comm"), "utf8").catch(() => "");
  return named(pid, comm.trim());
}

export const named = (pid: string, command: string): string => `process ${pid}${command === "" ? "" : ` (${command})`}`;
