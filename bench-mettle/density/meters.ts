// What a block takes of the machine, read from the kernel's counters. All but one are of the whole machine: nothing else may run.
import { readdirSync, readFileSync, statSync } from "node:fs";

/** Ticks since the start of the machine, of all processors together. */
export interface Processors {
  readonly busy: number;
  readonly all: number;
}

export function readProcessors(): Processors {
  const [user = 0, nice = 0, system = 0, idle = 0, waiting = 0, irq = 0, softirq = 0, steal = 0] = (
    readFileSync("/proc/stat", "utf8").split("\n")[0] as string
  )
    .split(/\s+/)
    .slice(1)
    .map(Number);
  const busy = user + nice + system + irq + softirq + steal;
  return { busy, all: busy + idle + waiting };
}

/** From 0 to 1. */
export const usedBetween = (before: Processors, after: Processors): number =>
  (after.busy - before.busy) / Math.max(1, after.all - before.all);

export interface Bytes {
  readonly read: number;
  readonly written: number;
}

const sector = 512;

function counted(file: string): Bytes | null {
  try {
    const fields = readFileSync(file, "utf8").trim().split(/\s+/).map(Number);
    return { read: (fields[2] as number) * sector, written: (fields[6] as number) * sector };
  } catch {
    return null;
  }
}

/** Of the device that holds the folder; null where the kernel counts none for it. */
export function readDisk(folder: string): Bytes | null {
  const { dev } = statSync(folder);
  const [major, minor] = [(dev >> 8) & 0xfff, (dev & 0xff) | ((dev >> 12) & ~0xff)];
  return counted(`/sys/dev/block/${major}:${minor}/stat`);
}

/** Of the loop devices whose image lies below the folder; null where there is none: the layers lie on the disk itself. */
export function readLoops(folder: string): Bytes | null {
  const all = readdirSync("/sys/block").filter((name) => {
    if (!name.startsWith("loop")) return false;
    try {
      return readFileSync(`/sys/block/${name}/loop/backing_file`, "utf8").startsWith(`${folder}/`);
    } catch {
      return false;
    }
  });
  const read = all.flatMap((name) => counted(`/sys/block/${name}/stat`) ?? []);
  if (read.length === 0) return null;
  const sum = (of: (one: Bytes) => number): number => read.reduce((total, one) => total + of(one), 0);
  return { read: sum((one) => one.read), written: sum((one) => one.written) };
}

export const bytesBetween = (before: Bytes | null, after: Bytes | null): Bytes | null =>
  before === null || after === null
    ? null
    : { read: after.read - before.read, written: after.written - before.written };

/** Bytes that could be had without taking them from anybody. */
export const availableMemory = (): number =>
  Number(/^MemAvailable:\s+(\d+)/m.exec(readFileSync("/proc/meminfo", "utf8"))?.[1]) * 1_024;
