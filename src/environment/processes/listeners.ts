// Which processes listen on which TCP ports.
import { readFileSync } from "node:fs";
import { descriptors, targetOf } from "./proc.ts";

export interface Listener {
  readonly port: number;
  /** Its inode number. */
  readonly socket: string;
}

/** In the network of that process. */
export function listeners(pid: number | "self"): Listener[] {
  return ["tcp", "tcp6"].flatMap((table) =>
    linesOf(`/proc/${pid}/net/${table}`).flatMap((line) => {
      const [, local = "", , state, , , , , , socket = ""] = line.trim().split(/\s+/);
      return state === "0A" ? [{ port: Number.parseInt(local.split(":")[1] ?? "", 16), socket }] : [];
    }),
  );
}

/** Inode numbers of the sockets that they hold. */
export function socketsOf(pids: readonly number[]): Set<string> {
  const found = new Set<string>();
  for (const pid of pids) {
    for (const fd of descriptors(pid)) {
      const socket = /^socket:\[(\d+)\]$/.exec(targetOf(pid, fd) ?? "")?.[1];
      if (socket !== undefined) found.add(socket);
    }
  }
  return found;
}

/** Each once, in order. */
export const portsOf = (found: readonly Listener[]): number[] =>
  [...new Set(found.map(({ port }) => port))].sort((a, b) => a - b);

function linesOf(path: string): string[] {
  try {
    return readFileSync(path, "latin1").split("\n").slice(1);
  } catch {
    return [];
  }
}
