// What is recorded of the processes beside their image: for people, and for starting again what cannot be brought back.
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
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
export function listeningPorts(infos: readonly ProcessInfo[]): number[] {
  const own = socketsOf(infos.map(({ pid }) => pid));
  const found = listeners(infos[0]?.pid ?? "self").filter(({ socket }) => own.has(socket));
  return [...new Set(found.map(({ port }) => port))].sort((a, b) => a - b);
}

/** Those of the ports on which somebody else of this machine listens. */
export function portsInUse(ports: readonly number[], own: readonly number[]): number[] {
  if (ports.length === 0) return [];
  const sockets = socketsOf(own);
  const taken = new Set(
    listeners("self")
      .filter(({ socket }) => !sockets.has(socket))
      .map(({ port }) => port),
  );
  return ports.filter((port) => taken.has(port));
}

function listeners(pid: number | "self"): { port: number; socket: string }[] {
  const found: { port: number; socket: string }[] = [];
  for (const table of ["tcp", "tcp6"]) {
    const lines = attempt(() => readFileSync(`/proc/${pid}/net/${table}`, "latin1").split("\n").slice(1), []);
    for (const line of lines) {
      const [, local = "", , state, , , , , , socket = ""] = line.trim().split(/\s+/);
      if (state === "0A") found.push({ port: Number.parseInt(local.split(":")[1] ?? "", 16), socket });
    }
  }
  return found;
}

/** Inode numbers of the sockets that they hold. */
function socketsOf(pids: readonly number[]): Set<string> {
  const found = new Set<string>();
  for (const pid of pids) {
    for (const fd of attempt(() => readdirSync(`/proc/${pid}/fd`), [])) {
      const target = attempt(() => readlinkSync(`/proc/${pid}/fd/${fd}`), "");
      const socket = /^socket:\[(\d+)\]$/.exec(target)?.[1];
      if (socket !== undefined) found.add(socket);
    }
  }
  return found;
}

function attempt<T>(read: () => T, otherwise: T): T {
  try {
    return read();
  } catch {
    return otherwise;
  }
}
