// Whether the processes of a sandbox can have changed since their image was made: where nothing but waiting shells is there, that can be told without another image.
import { createHash } from "node:crypto";
import { constants, readdirSync, readFileSync, readlinkSync, statSync } from "node:fs";
import { descriptors, type ProcessInfo, processInfos, targetOf, threadsOf } from "../../processes/proc.ts";
import type { LayerDifference } from "../layers/layers.ts";
import { type Life, type LifePlan, rootPid } from "../life.ts";
import { runLayer, runPath } from "../run-folder.ts";

/** The tree's root and persistent shells that wait for a command, and nothing else. */
export interface Still {
  /** Equal for two moments in which everything is the same that a later command can see: what the shells know, and what the kernel says of them. */
  readonly key: string;
  /** What the shells know (`shellDigest`), by their numbers inside. */
  readonly shells: readonly (readonly [pid: number, digest: string])[];
}

/** undefined where anything else is there, or a shell of which it cannot be told. */
export async function stillState(plan: LifePlan, life: Life): Promise<Still | undefined> {
  const { begun } = life.commands;
  const known = life.commands.knownShells();
  if (known === undefined) return undefined;
  const infos = processInfos(plan.group.processes());
  const root = infos.find(({ inside }) => inside === rootPid);
  if (root === undefined || (await plan.native.countIpcObjects(root.pid)) > 0) return undefined;
  const shells: [number, string][] = [];
  const told: string[] = [];
  for (const one of infos.sort((a, b) => a.inside - b.inside)) {
    if (one === root) continue;
    const digest = known.get(one.inside);
    const said = digest === undefined || one.parent !== root.pid ? undefined : kernelSays(one);
    if (digest === undefined || said === undefined) return undefined;
    shells.push([one.inside, digest]);
    told.push(`${one.inside} ${digest} ${said}`);
  }
  if (life.commands.begun !== begun) return undefined;
  return { key: createHash("sha256").update(told.join("\n")).digest("hex"), shells };
}

/** Lines of /proc/PID/status that tell of what ran, or of memory. */
const passing =
  /^(State|FDSize|Vm\w+|Rss\w+|HugetlbPages|Threads|SigQ|SigPnd|ShdPnd|\w*ctxt_switches|TracerPid|Pid|Tgid|Ngid|PPid|NS\w+|Mems\w+|x86\w*|Speculation\w*|CoreDumping|THP\w*|untag\w*):/;

/** undefined where it has gone, has children or more than one thread, or is held. */
function kernelSays({ pid, state }: ProcessInfo): string | undefined {
  try {
    if (state !== "S" || threadsOf(pid).length !== 1) return undefined;
    const read = (name: string): string => readFileSync(`/proc/${pid}/${name}`, "latin1");
    if (read(`task/${pid}/children`).trim() !== "" || read("timers") !== "") return undefined;
    const status = read("status")
      .split("\n")
      .filter((line) => !passing.test(line));
    const links = ["cwd", "root", "exe"].map((name) => readlinkSync(`/proc/${pid}/${name}`));
    const targets = descriptors(pid).map((fd) => [fd, targetOf(pid, fd) ?? ""] as const);
    if (!targets.every(([fd, target]) => isKept(pid, fd, target))) return undefined;
    // Whether two of one file share a position is not told.
    const files = targets.filter(([fd, target]) => Number(fd) > 2 && fd !== "255" && target.startsWith("/"));
    if (new Set(files.map(([, target]) => target)).size < files.length) return undefined;
    const open = targets.map(([fd, target]) => `${fd} ${target} ${positionOf(read(`fdinfo/${fd}`))}`);
    const stat = read("stat").split(") ").at(-1)?.split(" ") ?? [];
    const scheduled = [scheduledFields.map((at) => stat[at]).join(" "), read("timerslack_ns")];
    return [
      ...status,
      ...links,
      ...open,
      ...scheduled,
      read("limits"),
      read("oom_score_adj"),
      read("coredump_filter"),
    ].join("\n");
  } catch {
    return undefined;
  }
}

/** Of /proc/PID/stat behind the name: nice, rt_priority, policy. */
const scheduledFields = [16, 37, 38];

/** Devices that hold nothing: major and minor number. */
const empty = new Set(["1:3", "1:5", "1:7", "1:8", "1:9"]);

/** What it leads to is in the state of the files, or holds nothing: of a pipe's bytes, a terminal or a file without a name nothing is told here. Its own pipe is empty while it waits. */
function isKept(pid: number, fd: string, target: string): boolean {
  const { mode, nlink, rdev } = statSync(`/proc/${pid}/fd/${fd}`);
  const kind = mode & constants.S_IFMT;
  if (kind === constants.S_IFCHR) return empty.has(`${rdev >> 8}:${rdev & 0xff}`);
  if (kind === constants.S_IFIFO) return fd === "0" && ownPipe.test(target);
  return target.startsWith("/") && nlink > 0 && (kind === constants.S_IFREG || kind === constants.S_IFDIR);
}

const ownPipe = new RegExp(`^${runPath}/calls/[^/]+/in$`);

/** Its position, its flags and its locks. */
const positionOf = (about: string): string => about.replace(/^(mnt_id|ino):.*\n/gm, "");

/** Whether something that is open, mapped, or stood in is another one behind these differences: an image of who has it is one of the older state's files. */
export async function isOfOthersFiles(differences: AsyncIterable<LayerDifference>, open: OpenPaths): Promise<boolean> {
  for await (const one of differences) if (concerns(one, open)) return true;
  return false;
}

/** Below the live folder. */
export interface OpenPaths {
  readonly paths: ReadonlySet<string>;
  /** The folders in which these lie. */
  readonly folders: ReadonlySet<string>;
}

const concerns = (one: LayerDifference, { paths, folders }: OpenPaths): boolean =>
  (paths.has(one.path) && isAnother(one, true)) || (folders.has(one.path) && isAnother(one, false));

/** In the folder through which commands are run, and nothing that anybody has open: no later command sees it. */
export const isPassing =
  (open: OpenPaths) =>
  (one: LayerDifference): boolean =>
    (one.path === runLayer || one.path.startsWith(`${runLayer}/`)) && !concerns(one, open);

function isAnother({ before, after, differs }: LayerDifference, withContent: boolean): boolean {
  if (before === null || after === null) return true;
  if (before.type !== after.type || before.inode !== after.inode) return true;
  return withContent && before.type === "file" && differs === "content";
}

/** Everything that these processes have open, mapped, or stand in. @param mapped false: without what is mapped, of which the commands' folder holds nothing that changes */
export function openPaths(pids: readonly number[], inLayers: (path: string) => string, mapped = true): OpenPaths {
  const paths = new Set<string>();
  const add = (read: () => string | undefined): void => {
    try {
      const path = read()?.replace(/ \(deleted\)$/, "");
      if (path?.startsWith("/")) paths.add(inLayers(path));
    } catch {
      // It has gone, or is no link.
    }
  };
  for (const pid of pids) {
    for (const name of ["cwd", "root", "exe"]) add(() => readlinkSync(`/proc/${pid}/${name}`));
    for (const fd of descriptors(pid)) add(() => targetOf(pid, fd));
    for (const range of mapped ? mappings(pid) : []) add(() => readlinkSync(`/proc/${pid}/map_files/${range}`));
  }
  const folders = new Set<string>();
  for (const path of paths)
    for (let end = path.lastIndexOf("/"); end > 0; end = path.lastIndexOf("/", end - 1))
      folders.add(path.slice(0, end));
  return { paths, folders };
}

function mappings(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/map_files`);
  } catch {
    return [];
  }
}
