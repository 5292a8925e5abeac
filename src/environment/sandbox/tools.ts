// Finds the programs that a sandbox needs, CRIU and mkfs.btrfs: on the machine, then in the folder that scripts/sandbox-tools.mjs fills. Downloads nothing.
import { open, readdir } from "node:fs/promises";
import { homedir } from "node:os";
import { isAbsolute, join, relative } from "node:path";
import type { ProbeResult } from "../environment.ts";
import { loaderApart } from "./loader-apart.ts";
import { type Placed, placeInMachine, placeInPrefix } from "./placed.ts";
import type { CriuProgram } from "./processes/criu-channel.ts";
import { checkKernel, isKernelKnown } from "./processes/kernel-features.ts";
import { runProgram } from "./run.ts";

/** An answer of a probe, and how to get what is missing. */
export interface Found<Tool> extends ProbeResult {
  /** Null unless available. */
  readonly tool: Tool | null;
  /** "" when available. */
  readonly hint: string;
}

export interface HostProgram {
  readonly version: string;
  readonly command: readonly string[];
}

/** CRIU before 4.2 fails on sockets of kernels from 6.16 on, and may hang there. */
export const oldestCriu = "4.2";

export const installHint =
  "Run `node scripts/sandbox-tools.mjs` of the installed package (Debian and Ubuntu), which puts it into a private folder.";

/** Where private copies lie, one folder for each, named PACKAGE-VERSION. */
export function toolsFolder(): string {
  const cache = process.env.XDG_CACHE_HOME ?? "";
  return join(isAbsolute(cache) ? cache : join(homedir(), ".cache"), "agentrewind", "tools");
}

/** Of copies of the loader, below the place's prefix. */
const loaderFolder = ({ prefix }: Placed): string =>
  prefix === "/" ? relative("/", join(toolsFolder(), "..")) : "agentrewind";

export interface Search {
  /** Of private copies. */
  readonly folder?: string;
  /** Private copies only. */
  readonly privateOnly?: boolean;
}

/** One that is new enough, runs, and finds all that it needs in the kernel. `refuse` gives a reason against one that does. */
export async function findCriu(
  search: Search & { readonly refuse?: (program: CriuProgram) => Promise<string | null> } = {},
): Promise<Found<CriuProgram>> {
  if (process.platform !== "linux") return notHere("CRIU exists for Linux only");
  if (process.env.AGENTREWIND_CRIU === "off") return notHere("CRIU is switched off (AGENTREWIND_CRIU=off)");
  if (process.getuid?.() !== 0) return { ...notHere("CRIU is used by root only"), hint: "Run it as root." };
  const reasons: string[] = [];
  let inconclusive = false;
  for await (const place of places("criu", "criu", search)) {
    const version = await criuVersion(place);
    if (version === null) {
      inconclusive = true;
      reasons.push(`${place.shown} does not run`);
    } else if (compareVersions(version, oldestCriu) < 0) {
      reasons.push(`${place.shown} is version ${version}, older than ${oldestCriu}`);
    } else {
      const loader = place.loader === null ? null : await loaderApart(place.prefix, place.loader, loaderFolder(place));
      const program = { version, prefix: place.prefix, command: place.commandAt("/proc/self/fd/8", loader) };
      const reason = (await reasonAgainst(program)) ?? (await search.refuse?.(program)) ?? null;
      if (reason === null)
        return { status: "available", tool: program, reason: `${version}, ${place.shown}`, hint: "" };
      reasons.push(`${place.shown} (${version}) says: ${reason}`);
    }
  }
  return {
    status: inconclusive ? "inconclusive" : "unsupported",
    tool: null,
    reason: reasons.length === 0 ? "there is no CRIU" : reasons.join("; "),
    hint: installHint,
  };
}

export async function findMkfsBtrfs(search: Search = {}): Promise<Found<HostProgram>> {
  if (process.platform !== "linux") return notHere("btrfs exists for Linux only");
  const reasons: string[] = [];
  for await (const place of places("mkfs.btrfs", "btrfs-progs", search)) {
    const command = place.commandAt(place.prefix);
    const version = versionIn((await runProgram([...command, "--version"])).stdout);
    if (version !== null)
      return { status: "available", tool: { version, command }, reason: `${version}, ${place.shown}`, hint: "" };
    reasons.push(`${place.shown} does not run`);
  }
  return {
    status: reasons.length === 0 ? "unsupported" : "inconclusive",
    tool: null,
    reason: reasons.length === 0 ? "there is no mkfs.btrfs" : reasons.join("; "),
    hint: `Install the package btrfs-progs. ${installHint}`,
  };
}

/** On the machine first, then private copies, newest first. */
async function* places(
  program: string,
  name: string,
  { folder = toolsFolder(), privateOnly = false }: Search,
): AsyncGenerator<Placed> {
  const onMachine = privateOnly ? null : await placeInMachine(program);
  if (onMachine !== null) yield onMachine;
  const entries = await readdir(folder).catch(() => []);
  const versions = entries
    .filter((entry) => entry.startsWith(`${name}-`))
    .map((entry) => entry.slice(name.length + 1))
    .filter((version) => /^\d+(\.\d+)*$/.test(version))
    .sort((a, b) => compareVersions(b, a));
  for (const version of versions) {
    const place = await placeInPrefix(program, join(folder, `${name}-${version}`));
    if (place !== null) yield place;
  }
}

const reasonAgainst = async (program: CriuProgram): Promise<string | null> =>
  (await isKernelKnown(program)) ? null : (await checkKernel(program)).reason;

async function criuVersion(place: Placed): Promise<string | null> {
  const folder = await open(place.prefix, "r");
  try {
    const { stdout } = await runProgram([...place.commandAt("/proc/self/fd/8"), "--version"], { folder: folder.fd });
    return versionIn(stdout);
  } finally {
    await folder.close();
  }
}

const versionIn = (output: Buffer): string | null => /\d+(?:\.\d+)+/.exec(output.toString())?.[0] ?? null;

export function compareVersions(a: string, b: string): number {
  const [one, other] = [a, b].map((text) => text.split(".").map(Number)) as [number[], number[]];
  for (let i = 0; i < Math.max(one.length, other.length); i++) {
    const difference = (one[i] ?? 0) - (other[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

const notHere = (reason: string) => ({ status: "unsupported", tool: null, reason, hint: "" }) as const;
