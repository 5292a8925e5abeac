// What is recorded of the processes beside their image: for people, and for starting again what cannot be brought back.
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import type { Problem } from "../../environment.ts";
import { rootPid } from "../life.ts";
import type { ProcessInfo } from "../proc.ts";
import type { ImageProcess } from "./image-store.ts";
import { named } from "./process-name.ts";

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
    .filter(({ state }) => state !== "Z")
    .sort((a, b) => a.startTime - b.startTime || a.inside - b.inside)
    .map((one) => {
      const status = attempt(() => readFileSync(`/proc/${one.pid}/status`, "latin1"), "");
      const field = (name: string): string[] =>
        (new RegExp(`^${name}:[ \\t]*(.*)$`, "m").exec(status)?.[1] ?? "").trim().split(/\s+/).filter(Boolean);
      const sockets = socketsOf([one.pid]);
      return {
        pid: one.inside,
        parent: inside.get(one.parent) ?? 1,
        role: roleOf(one),
        command: field("Name").join(" "),
        argv: strings(`/proc/${one.pid}/cmdline`),
        cwd: linkOf(`/proc/${one.pid}/cwd`),
        env: strings(`/proc/${one.pid}/environ`),
        ids: [Number(field("Uid")[0]), Number(field("Gid")[0]), field("Groups").map(Number)],
        umask: field("Umask")[0] ?? "0022",
        streams: [0, 1, 2].map((fd) => linkOf(`/proc/${one.pid}/fd/${fd}`)),
        ports: portsOf(network.filter(({ socket }) => sockets.has(socket))),
        cpus: field("Cpus_allowed_list")[0] ?? "",
        personality: attempt(() => readFileSync(`/proc/${one.pid}/personality`, "latin1").trim(), ""),
      };
    });
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
  linkOf(`/proc/${pid}/exe`) === linkOf(`/proc/${parent}/exe`) &&
  strings(`/proc/${pid}/cmdline`).join("\0") === strings(`/proc/${parent}/cmdline`).join("\0");

const strings = (path: string): string[] => attempt(() => readFileSync(path, "utf8").split("\0").slice(0, -1), []);
const linkOf = (path: string): string => attempt(() => readlinkSync(path), "");

const portsOf = (found: readonly Listener[]): number[] =>
  [...new Set(found.map(({ port }) => port))].sort((a, b) => a - b);

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

interface Listener {
  readonly port: number;
  /** Its inode number. */
  readonly socket: string;
}

/** In the network of that process. */
function listeners(pid: number | "self"): Listener[] {
  const found: Listener[] = [];
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
      const socket = /^socket:\[(\d+)\]$/.exec(linkOf(`/proc/${pid}/fd/${fd}`))?.[1];
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
