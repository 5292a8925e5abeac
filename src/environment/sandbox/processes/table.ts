// What is recorded of the processes beside their image: for people, and for starting again what cannot be brought back.
import { readFileSync } from "node:fs";
import type { Problem } from "../../environment.ts";
import { argumentsOf, describeProcess, programOf, statusOf } from "../../processes/description.ts";
import { listeners, portsOf, socketsOf } from "../../processes/listeners.ts";
import { type ProcessInfo, processStat, threadsOf } from "../../processes/proc.ts";
import { named } from "../../processes/process-name.ts";
import { rootPid } from "../life.ts";
import type { ImageProcess } from "./image-store.ts";

/** `shells` are the numbers, inside, of the persistent shells. */
export function recordProcesses(infos: readonly ProcessInfo[], shells: ReadonlySet<number>): ImageProcess[] {
  const inside = new Map(infos.map((one) => [one.pid, one.inside]));
  const network = listeners(infos[0]?.pid ?? "self");
  const roles = new Map<number, ImageProcess["role"]>();
  const roleOf = (one: ProcessInfo | undefined): ImageProcess["role"] => {
    if (one === undefined || one.inside === rootPid) return "root";
    const known = roles.get(one.pid);
    if (known !== undefined) return known;
    const parent = infos.find(({ pid }) => pid === one.parent);
    const above = roleOf(parent);
    const forked = parent !== undefined && (above === "shell" || above === "subshell") && isFork(one.pid, parent.pid);
    const role = forked ? "subshell" : above === "inner" || above === "background" ? "inner" : "background";
    roles.set(one.pid, shells.has(one.inside) ? "shell" : role);
    return roles.get(one.pid) as ImageProcess["role"];
  };
  return infos
    .map((one) => ({ ...one, thread: livingThread(one) }))
    .filter((one): one is ProcessInfo & { thread: number } => one.thread !== undefined)
    .sort((a, b) => a.startTime - b.startTime || a.inside - b.inside)
    .map((one) => {
      const sockets = socketsOf([one.thread]);
      return {
        pid: one.inside,
        parent: inside.get(one.parent) ?? 1,
        role: roleOf(one),
        ...describeProcess(one.thread),
        ports: portsOf(network.filter(({ socket }) => sockets.has(socket))),
        cpus: statusOf(one.thread)("Cpus_allowed_list")[0] ?? "",
        personality: personalityOf(one.thread),
      };
    });
}

/** Of a process whose first thread has ended the others tell what it has. undefined where none is left. */
function livingThread({ pid, state }: ProcessInfo): number | undefined {
  if (state !== "Z") return pid;
  return threadsOf(pid).find((thread) => !["Z", "X", undefined].includes(processStat(thread)?.state));
}

/** What CRIU leaves out without a word. */
export function unkeptSettings(processes: readonly ImageProcess[]): Problem[] {
  const root = processes.find(({ role }) => role === "root");
  return processes.flatMap(({ pid, command, cpus, personality }) => {
    const lost = [
      ...(cpus === root?.cpus ? [] : [`that it runs on processor ${cpus} only`]),
      ...(personality === root?.personality ? [] : [`its personality ${personality}`]),
    ];
    return lost.length === 0 ? [] : [{ path: named(`${pid}`, command), reason: `${lost.join(" and ")} is not kept` }];
  });
}

/** Whether it runs the program of its parent with the same arguments: it has not become another one yet. */
const isFork = (pid: number, parent: number): boolean =>
  programOf(pid) === programOf(parent) && argumentsOf(pid).join("\0") === argumentsOf(parent).join("\0");

function personalityOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/personality`, "latin1").trim();
  } catch {
    return "";
  }
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
