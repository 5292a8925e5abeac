// What a machine must have for processes to go on there with their memory.
import { readFileSync } from "node:fs";
import { release } from "node:os";
import { type Below, programsAt } from "../environment/sandbox/programs.ts";
import { compareVersions, findCriu } from "../environment/sandbox/tools.ts";
import type { Native } from "../native.ts";
import type { ImagePart, Machine } from "./schema.ts";

/** What programs choose their code by, not what tells of the machine itself. */
const instructions =
  /^(?:cmov|cx8|cx16|fxsr|mmx|sse\w*|ssse3|pni|avx\w*|fma|f16c|aes|vaes|v?pclmulqdq|popcnt|bmi[12]|abm|lahf_lm|movbe|rdrand|rdseed|adx|sha_ni|erms|fsrm|xsave\w*|xgetbv1|gfni|amx_\w+|clflushopt|clwb|rdpid|rdtscp|fsgsbase|rtm|movdiri|movdir64b|serialize|pku|ospke|user_shstk|3dnow\w*|sse4a|xop|fma4|tbm)$/;

export function thisMachine(cpuinfo = readCpuinfo()): Machine {
  const [, features = ""] = /^(?:flags|Features)\s*:\s*(.*)$/m.exec(cpuinfo) ?? [];
  const all = features.split(/\s+/).filter((one) => one !== "");
  const cpuFeatures =
    process.arch === "x64" || process.arch === "ia32" ? all.filter((one) => instructions.test(one)) : all;
  return { architecture: process.arch, kernel: release(), cpuFeatures: cpuFeatures.sort() };
}

function readCpuinfo(): string {
  try {
    return readFileSync("/proc/cpuinfo", "utf8");
  } catch {
    return "";
  }
}

export interface Place {
  readonly native: Native;
  readonly overlays: readonly Below[];
}

/** Why processes of these images cannot go on here, each a sentence's beginning; [] where they can. */
export async function unlikenesses(there: Machine, images: readonly ImagePart[], place: Place): Promise<string[]> {
  const memory = images.filter(({ kind }) => kind === "memory");
  if (memory.length === 0) return [];
  const found = machineDifferences(there, thisMachine());
  const kernels = memory.map(({ kernel }) => kernel).sort(compareKernels);
  const kernel = kernels.at(-1) ?? "";
  if (compareKernels(kernel, release()) > 0) found.push(`its kernel ${release()} is older than ${kernel}`);
  const { tool, reason } = await findCriu();
  const [newest = ""] = memory.map(({ criu }) => criu).sort((a, b) => compareVersions(b, a));
  if (tool === null) found.push(`processes cannot be restored: ${reason}`);
  else if (compareVersions(tool.version, newest) < 0) found.push(`its CRIU ${tool.version} is older than ${newest}`);
  return [...found, ...(await programDifferences(memory, place))];
}

export function machineDifferences(there: Machine, here: Machine): string[] {
  if (there.architecture !== here.architecture)
    return [`its architecture is ${here.architecture}, not ${there.architecture}`];
  const missing = there.cpuFeatures.filter((one) => !here.cpuFeatures.includes(one));
  return missing.length === 0 ? [] : [`its processor lacks ${some(missing)}`];
}

async function programDifferences(images: readonly ImagePart[], { native, overlays }: Place): Promise<string[]> {
  const wanted = new Map(images.flatMap(({ programs }) => programs).map((one) => [one.path, one]));
  const here = new Map((await programsAt(native, overlays, [...wanted.keys()])).map((one) => [one.path, one.digest]));
  const other = [...wanted.values()].filter(({ path, digest }) => here.get(path) !== digest).map(({ path }) => path);
  return other.length === 0 ? [] : [`processes use files that differ here: ${some(other)}`];
}

/** By the version's first two numbers: what follows is the distribution's. */
function compareKernels(a: string, b: string): number {
  const [one, other] = [a, b].map((text) => /^\d+\.\d+/.exec(text)?.[0] ?? "0") as [string, string];
  return compareVersions(one, other);
}

const shown = 5;
const some = (all: readonly string[]): string =>
  all.length <= shown ? all.join(", ") : `${all.slice(0, shown).join(", ")} and ${all.length - shown} more`;
