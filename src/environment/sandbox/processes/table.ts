// What is recorded of the processes beside their image: for people, and for starting again what cannot be brought back.
import { readFileSync, readlinkSync } from "node:fs";
import type { ProcessInfo } from "../proc.ts";
import type { ImageProcess } from "./image-store.ts";

export function recordProcesses(infos: readonly ProcessInfo[]): ImageProcess[] {
  const inside = new Map(infos.map((one) => [one.pid, one.inside]));
  return infos.map((one) => ({
    pid: one.inside,
    parent: inside.get(one.parent) ?? 1,
    argv: attempt(() => readFileSync(`/proc/${one.pid}/cmdline`, "latin1").split("\0").slice(0, -1), []),
    cwd: attempt(() => readlinkSync(`/proc/${one.pid}/cwd`), ""),
  }));
}

/** TCP ports on which these processes listen, in the network of the first. */
export function listeningPorts(infos: readonly ProcessInfo[], sockets: ReadonlySet<string>): number[] {
  const first = infos[0];
  if (first === undefined) return [];
  const ports = new Set<number>();
  for (const table of ["tcp", "tcp6"]) {
    const lines = attempt(() => readFileSync(`/proc/${first.pid}/net/${table}`, "latin1").split("\n").slice(1), []);
    for (const line of lines) {
      const fields = line.trim().split(/\s+/);
      if (fields[3] === "0A" && sockets.has(fields[9] ?? ""))
        ports.add(Number.parseInt(fields[1]?.split(":")[1] ?? "", 16));
    }
  }
  return [...ports].sort((a, b) => a - b);
}

function attempt<T>(read: () => T, otherwise: T): T {
  try {
    return read();
  } catch {
    return otherwise;
  }
}
