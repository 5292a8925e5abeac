// Whether something of these processes changes though none of them runs: a clock that expires, data that arrives from outside.
import { readFileSync } from "node:fs";
import { descriptors, targetOf } from "../../processes/proc.ts";

/** @param network the sandbox's: in one of its own nothing arrives from outside */
export function changesByItself(pids: readonly number[], network: "host" | "own"): boolean {
  try {
    const waiting = network === "own" ? undefined : inertSockets(pids[0]);
    return pids.some((pid) => hasTimers(pid) || descriptors(pid).some((fd) => isMoving(pid, fd, waiting)));
  } catch {
    return true;
  }
}

const hasTimers = (pid: number): boolean => readFileSync(`/proc/${pid}/timers`, "latin1") !== "";

function isMoving(pid: number, fd: string, inert: ReadonlySet<string> | undefined): boolean {
  const target = targetOf(pid, fd) ?? "";
  if (target.includes("[timerfd]"))
    return !/^it_value: \(0, 0\)$/m.test(readFileSync(`/proc/${pid}/fdinfo/${fd}`, "latin1"));
  const socket = /^socket:\[(\d+)\]$/.exec(target)?.[1];
  return socket !== undefined && inert !== undefined && !inert.has(socket);
}

const listening = "0A";
const streamType = "0001";

/** Inode numbers of sockets to which nothing comes of which no process is told: those that listen for TCP, and Unix streams, whose other end CRIU wants inside. */
function inertSockets(pid: number | undefined): Set<string> {
  const rows = (table: string): string[][] =>
    readFileSync(`/proc/${pid}/net/${table}`, "latin1")
      .split("\n")
      .slice(1)
      .map((line) => line.trim().split(/\s+/));
  const tcp = ["tcp", "tcp6"].flatMap((table) => rows(table).filter((row) => row[3] === listening));
  const unix = rows("unix").filter((row) => row[4] === streamType);
  return new Set([...tcp.map((row) => row[9] ?? ""), ...unix.map((row) => row[6] ?? "")]);
}
