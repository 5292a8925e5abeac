// Processes as Linux shows them.
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { makeBreather } from "../../../breathe.ts";
import { describeProcess, programOf } from "../../processes/description.ts";
import { listeners, portsOf, socketsOf } from "../../processes/listeners.ts";
import { descriptors, processStat, targetOf } from "../../processes/proc.ts";
import { markVariable } from "./mark.ts";
import type { Seeing, SeenProcess } from "./seeing.ts";

/** In a shorter time the numbers do not go round. */
const roundMs = 5_000;

export function seeByProc(): Seeing {
  return {
    machine: `${read("/proc/sys/kernel/random/boot_id").trim()} ${linkOf("/proc/self/ns/pid")}`,
    async list(since) {
      const breathe = makeBreather();
      const seen: SeenProcess[] = [];
      let whole = true;
      for (const pid of pidsSince(since)) {
        const one = look(pid);
        if (one === undefined) whole = false;
        else if (one !== null) seen.push(one);
        const pause = breathe();
        if (pause !== undefined) await pause;
      }
      return { seen, whole };
    },
    startOf(pid) {
      const stat = processStat(pid);
      return stat === undefined || hasEnded(stat) ? undefined : `${stat.startTime}`;
    },
    describe: describeProcess,
    fileOf: (pid) => programOf(pid).replace(/ \(deleted\)$/, ""),
    portsOf(pids) {
      const sockets = socketsOf(pids);
      if (sockets.size === 0) return [];
      return portsOf(listeners(pids[0] as number).filter(({ socket }) => sockets.has(socket)));
    },
    writtenBy: (pids) =>
      pids.flatMap((pid) =>
        descriptors(pid)
          .filter((fd) => isForWriting(pid, fd))
          .flatMap((fd) => targetOf(pid, fd) ?? []),
      ),
  };
}

/** null for one that has ended and was not waited for, undefined for one that is gone. */
function look(pid: number): SeenProcess | null | undefined {
  const stat = processStat(pid);
  if (stat === undefined) return undefined;
  if (hasEnded(stat)) return null;
  const { startTime, parent, group, forked } = stat;
  return { pid, start: `${startTime}`, parent, group, forked, marks: marksOf(pid) };
}

const hasEnded = ({ state }: { readonly state: string }): boolean => state === "Z" || state === "X";

function marksOf(pid: number): string {
  const variables = read(`/proc/${pid}/environ`);
  const at = `\0${variables}`.indexOf(`\0${markVariable}=`);
  if (at < 0) return "";
  const start = at + markVariable.length + 1;
  const end = variables.indexOf("\0", start);
  return variables.slice(start, end < 0 ? undefined : end);
}

function pidsSince(since: { readonly pid: number; readonly ms: number } | undefined): number[] {
  const last = Number(/(\d+)\s*$/.exec(read("/proc/loadavg"))?.[1]);
  if (since !== undefined && since.ms < roundMs && last === since.pid) return [];
  const all = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
  if (since === undefined || since.ms >= roundMs || !Number.isFinite(last)) return all;
  const { pid: first } = since;
  // What came while the list was read may be above the last one.
  return last > first ? all.filter((pid) => pid > first) : all.filter((pid) => pid > first || pid <= last);
}

function isForWriting(pid: number, fd: string): boolean {
  const flags = /^flags:\s*(\d+)$/m.exec(read(`/proc/${pid}/fdinfo/${fd}`))?.[1];
  return flags !== undefined && (Number.parseInt(flags, 8) & 3) !== 0;
}

function read(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}
