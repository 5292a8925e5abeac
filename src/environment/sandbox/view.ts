// What a sandbox sees: the steps that make its file system out of the live folder and the host's.
import { chmodSync, chownSync, existsSync, mkdirSync, statSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { workSuffix } from "./layers/layers.ts";

/** Flags of mount(2). */
const flag = { readOnly: 1, noSuid: 2, noDev: 4, noExec: 8, remount: 32, noAtime: 1024, bind: 4096 } as const;

/** A folder of the host that the sandbox may change, with what it changes kept in the live folder. */
export interface Overlay {
  /** Absolute path, the same inside. "/" comes first. */
  readonly path: string;
  /** What lies below: the host's folder, or a root file system's. */
  readonly lower: string;
  /** What its folders in the live folder are called. */
  readonly name: string;
  /** Host path of a folder with what the host had where results were brought back to it: it lies between the two. May be missing. */
  readonly kept: string;
}

/** What lies below an overlay's upper folder, the topmost first. */
export const lowersOf = ({ kept, lower }: Pick<Overlay, "lower"> & Partial<Pick<Overlay, "kept">>): string[] =>
  kept !== undefined && existsSync(kept) ? [kept, lower] : [lower];

export interface ViewOptions {
  /** Host path of the live folder. */
  readonly live: string;
  readonly overlays: readonly Overlay[];
  /** Files and folders that nobody inside may see; those that are not there are left out. */
  readonly hide: readonly string[];
  readonly hostname: string;
  /** Host path of CRIU's feature cache. */
  readonly kernelFeatures: string | undefined;
  /** What has the next pid is numbered from here. */
  readonly lastPid: number | undefined;
}

export const foldersOf = (live: string, name: string) => ({
  upper: join(live, `${name}.upper`),
  work: join(live, `${name}${workSuffix}`),
  merged: join(live, `${name}.merged`),
});

/** Folders of the live folder that are mounted as they are. */
const plain = ["tmp", "shm", "dev", "run"] as const;

/** Makes what the live folder needs; what is there stays. */
export function prepareLive(live: string, overlays: readonly Overlay[]): void {
  for (const { name, lower } of overlays) {
    const { upper, ...others } = foldersOf(live, name);
    for (const folder of Object.values(others)) mkdirSync(folder, { recursive: true });
    if (mkdirSync(upper, { recursive: true }) === undefined) continue;
    // The root of an overlay is its upper folder as it is.
    const { mode, uid, gid, atime, mtime } = statSync(lower);
    chownSync(upper, uid, gid);
    chmodSync(upper, mode & 0o7777);
    utimesSync(upper, atime, mtime);
  }
  for (const name of plain) {
    const folder = join(live, name);
    if (mkdirSync(folder, { recursive: true, mode: 0o755 }) === undefined) continue;
    // The owner's umask is no part of it.
    chmodSync(folder, name === "tmp" || name === "shm" ? 0o1777 : 0o755);
  }
}

/** An overlay's option: commas end it, colons part lower folders. */
export const escaped = (path: string): string => path.replace(/[\\,:]/g, (found) => `\\${found}`);

const nodes = [
  ["null", "0666", 1, 3],
  ["zero", "0666", 1, 5],
  ["full", "0666", 1, 7],
  ["random", "0666", 1, 8],
  ["urandom", "0666", 1, 9],
  ["tty", "0666", 5, 0],
] as const;

const links = [
  ["/proc/self/fd", "fd"],
  ["/proc/self/fd/0", "stdin"],
  ["/proc/self/fd/1", "stdout"],
  ["/proc/self/fd/2", "stderr"],
  ["pts/ptmx", "ptmx"],
] as const;

/** What of /proc tells of the host or changes it. */
const readOnlyProc = ["bus", "fs", "irq", "sysrq-trigger"];
const maskedProc = ["acpi", "kcore", "keys", "latency_stats", "timer_list", "sched_debug", "scsi"];

/** The last step, inside: a restore writes there the settings of the namespaces that it makes. */
export const closeSettings = (): string[] => {
  const bound = ["mount", "", "/proc/sys", "/proc/sys"];
  return [...bound, `${flag.bind}`, "", ...bound, `${flag.bind | flag.remount | flag.readOnly}`, ""];
};

/** Instructions for the keeper, see native/sandbox/launch.c. */
export function viewSteps({ live, overlays, hide, hostname, kernelFeatures, lastPid }: ViewOptions): string[] {
  const root = foldersOf(live, (overlays[0] as Overlay).name).merged;
  const at = (path: string): string => (path === "/" ? root : join(root, path));
  const steps: string[] = [];
  const mount = (type: string, source: string, target: string, flags: number, data = ""): void =>
    void steps.push("mount", type, source, target, `${flags}`, data);
  const bind = (source: string, target: string, flags = 0): void => {
    mount("", source, target, flag.bind);
    if (flags !== 0) mount("", source, target, flag.bind | flag.remount | flags);
  };
  const overlay = (one: Overlay): void => {
    const { path, name } = one;
    const { upper, work } = foldersOf(live, name);
    const data = `lowerdir=${lowersOf(one).map(escaped).join(":")},upperdir=${escaped(upper)},workdir=${escaped(work)}`;
    if (path !== "/") place(path);
    mount("overlay", "overlay", at(path), flag.noAtime | flag.noDev, data);
  };
  // What is inside may be links that the sandbox left: they would lead to the host's folders.
  const place = (path: string): void => void steps.push("place", root, path);
  const [whole, ...others] = overlays;
  overlay(whole as Overlay);
  for (const folder of ["proc", "sys", "dev", "tmp", "run"]) place(folder);
  mount("proc", "proc", at("proc"), flag.noSuid | flag.noDev | flag.noExec);
  for (const name of readOnlyProc.filter((one) => existsSync(`/proc/${one}`)))
    bind(at(`proc/${name}`), at(`proc/${name}`), flag.readOnly);
  // Without what is mounted below it: whoever writes to control groups leaves the sandbox.
  bind("/sys", at("sys"), flag.readOnly | flag.noSuid | flag.noDev | flag.noExec);
  bind(join(live, "dev"), at("dev"));
  for (const [name, mode, major, minor] of nodes)
    steps.push("mknod", at(`dev/${name}`), `${0o20000 | Number.parseInt(mode, 8)}`, `${major}`, `${minor}`);
  for (const [target, name] of links) steps.push("symlink", target, at(`dev/${name}`));
  for (const folder of ["pts", "shm", "mqueue"]) place(`dev/${folder}`);
  mount("devpts", "devpts", at("dev/pts"), flag.noSuid | flag.noExec, "newinstance,ptmxmode=0666,mode=620,gid=5");
  bind(join(live, "shm"), at("dev/shm"), flag.noDev);
  bind(join(live, "tmp"), at("tmp"), flag.noDev);
  place("run/agentrewind");
  bind(join(live, "run"), at("run/agentrewind"), flag.noDev);
  if (kernelFeatures !== undefined) {
    steps.push("touch", at("run/criu.kdat"));
    bind(kernelFeatures, at("run/criu.kdat"), flag.readOnly);
  }
  for (const one of others) overlay(one);
  for (const path of [...maskedProc.map((name) => `/proc/${name}`), ...hide]) {
    const found = statSync(path, { throwIfNoEntry: false });
    if (found !== undefined) steps.push("mask", at(path), found.isDirectory() ? "folder" : "file");
  }
  steps.push("hostname", hostname);
  if (lastPid !== undefined) steps.push("last-pid", `${lastPid}`);
  steps.push("root", root);
  return steps;
}
