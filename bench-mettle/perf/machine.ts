// The machine that a result was measured on.
import { execFileSync } from "node:child_process";
import { readFileSync, realpathSync } from "node:fs";
import { availableParallelism, cpus, loadavg, release, totalmem } from "node:os";

export interface Machine {
  readonly cores: number;
  readonly processor: string;
  readonly memoryGiB: number;
  readonly kernel: string;
  readonly fileSystem: string;
  readonly node: string;
  readonly root: boolean;
  /** One-minute load when it began: what else ran. */
  readonly loadBefore: number;
}

export function describeMachine(place: string): Machine {
  return {
    cores: availableParallelism(),
    processor: cpus()[0]?.model.trim() ?? "unknown",
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    kernel: /^\d+\.\d+/.exec(release())?.[0] ?? release(),
    fileSystem: fileSystemOf(realpathSync(place)),
    node: process.version,
    root: process.getuid?.() === 0,
    loadBefore: loadavg()[0] as number,
  };
}

function fileSystemOf(path: string): string {
  try {
    const mounts = readFileSync("/proc/self/mountinfo", "utf8")
      .split("\n")
      .filter(Boolean)
      .map((line) => ({ at: line.split(" ")[4] as string, type: line.split(" - ")[1]?.split(" ")[0] ?? "unknown" }))
      .filter(({ at }) => at === "/" || path === at || path.startsWith(`${at}/`));
    return mounts.reduce((best, one) => (one.at.length >= best.at.length ? one : best)).type;
  } catch {
    return "unknown";
  }
}

export function versionOf(program: string, ...before: string[]): string {
  const args = before.at(-1)?.endsWith("restic") || program.endsWith("restic") ? ["version"] : ["--version"];
  try {
    return (execFileSync(program, [...before, ...args], { encoding: "utf8" }).split("\n")[0] as string).trim();
  } catch {
    return "missing";
  }
}
