// The run: in every round each arm gets a fresh copy of the tree, and for each operation the arms take turns.
import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Arm, type Operation, operations, type Place, type Running, type Sample } from "./arm.ts";
import type { Options } from "./options.ts";
import { census, type Subject } from "./subjects.ts";

export interface Measured {
  readonly operation: Operation;
  readonly arm: string;
  /** Empty for the operation itself. */
  readonly mode: string;
  readonly samples: Sample[];
  /** Bytes on disk that the arm's store holds behind the operation, and by how many a checkpoint made it grow; one a round. */
  readonly stored: number[];
  readonly grown: number[];
  /** What a rewind left wrong. */
  readonly faults: string[];
}

/** A longer operation is measured once a round. */
const shortMs = 2_000;

/** Where no other arm is compared: longer than a tick of the kernel's clock. */
const ownSettleMs = 100;

interface Lane {
  readonly arm: Arm;
  readonly place: Place;
  readonly running: Running;
}

export async function runSubject(
  subject: Subject,
  arms: readonly Arm[],
  options: Options,
  base: string,
  tell: (line: string) => void,
  afterRound: (measured: readonly Measured[]) => void,
): Promise<void> {
  const all = new Map<string, Measured>();
  const at = (operation: Operation, arm: string, mode: string): Measured => {
    const key = [operation, arm, mode].join("/");
    const found = all.get(key) ?? { operation, arm, mode, samples: [], stored: [], grown: [], faults: [] };
    all.set(key, found);
    return found;
  };
  for (let round = 0; round < options.rounds; round++) {
    const folder = join(base, `round-${round}`);
    const lanes: Lane[] = [];
    try {
      for (const arm of arms) lanes.push(await openLane(arm, subject, join(folder, arm.name)));
      let step = 0;
      for (const operation of operations) {
        if (options.only !== undefined && operation !== "first" && operation !== options.only) continue;
        tell(`${subject.name}, round ${round + 1} of ${options.rounds}: ${operation}`);
        step = await runOperation({ operation, lanes, subject, options, round, step, base, at });
      }
    } finally {
      for (const { running } of lanes) await running.end();
      execFileSync("rm", ["-rf", folder]);
    }
    afterRound([...all.values()]);
  }
}

async function openLane(arm: Arm, subject: Subject, folder: string): Promise<Lane> {
  const place = { work: join(folder, "work"), store: join(folder, "store"), scratch: join(folder, "scratch") };
  for (const one of [place.store, place.scratch]) mkdirSync(one, { recursive: true });
  execFileSync("cp", ["-a", subject.folder, place.work]);
  return { arm, place, running: await arm.start(place) };
}

interface Part {
  readonly operation: Operation;
  readonly lanes: readonly Lane[];
  readonly subject: Subject;
  readonly options: Options;
  readonly round: number;
  readonly step: number;
  readonly base: string;
  readonly at: (operation: Operation, arm: string, mode: string) => Measured;
}

/** @returns the next step's number */
async function runOperation(part: Part): Promise<number> {
  const { operation, lanes, subject, options, round, base, at } = part;
  const rewinds = operation.startsWith("rewind");
  const repeats = operation === "first" || operation === "rewind-all" ? 1 : options.repeats;
  const before = new Map(lanes.map(({ arm, running }) => [arm, diskBytes(running.stored)]));
  const checkpoints = new Map(lanes.map(({ arm }) => [arm, 0]));
  const slow = new Set<Arm>();
  let { step } = part;
  for (const { place } of lanes) warm(place.work);

  const settle = async (ms: number): Promise<void> => {
    if (operation !== "unchanged") await sleep(ms);
    if (!options.quick) syncDisk(base);
  };
  const measure = async (
    lane: Lane,
    mode: string,
    work: () => Promise<Sample>,
    check: () => string[],
  ): Promise<void> => {
    const into = at(operation, lane.arm.name, mode);
    const sample = await work();
    into.samples.push(sample);
    into.faults.push(...check());
    if (mode === "" && sample.ms > shortMs) slow.add(lane.arm);
    if (!options.quick) syncDisk(base);
  };
  const count = ({ arm }: Lane): void => void checkpoints.set(arm, (checkpoints.get(arm) as number) + 1);

  for (let repeat = 0; repeat < repeats; repeat++) {
    const due = lanes.filter(({ arm }) => !slow.has(arm));
    if (due.length === 0) break;
    step++;
    const checks = new Map(due.map((lane) => [lane, disturb(operation, lane.place.work, subject, step)]));
    await settle(options.settleMs);
    for (const lane of rotate(due, round + repeat)) {
      await measure(
        lane,
        "",
        rewinds ? lane.running.rewind : lane.running.checkpoint,
        checks.get(lane) as () => string[],
      );
      if (!rewinds) count(lane);
    }
  }
  for (const lane of lanes) {
    for (const mode of lane.running.modes?.(operation) ?? []) {
      for (let repeat = 0; repeat < (slow.has(lane.arm) ? 1 : repeats); repeat++) {
        const check = disturb(operation, lane.place.work, subject, ++step);
        await settle(Math.min(options.settleMs, ownSettleMs));
        await measure(lane, mode.name, mode.run, check);
        if (mode.stores) count(lane);
      }
    }
    const into = at(operation, lane.arm.name, "");
    const bytes = diskBytes(lane.running.stored);
    const made = checkpoints.get(lane.arm) as number;
    into.stored.push(bytes);
    if (made > 0) into.grown.push((bytes - (before.get(lane.arm) as number)) / made);
  }
  return step;
}

const rotate = <T>(list: readonly T[], by: number): T[] => [
  ...list.slice(by % list.length),
  ...list.slice(0, by % list.length),
];

/** Does to a tree what the operation is about. Returns what is wrong with it afterwards. */
function disturb(operation: Operation, work: string, subject: Subject, step: number): () => string[] {
  if (operation === "one") subject.change(work, 1, step);
  if (operation === "hundred") subject.change(work, 100, step);
  if (operation === "rewind-one") {
    const before = `${subject.peek(work, step)}`;
    subject.change(work, 1, step);
    return () => (`${subject.peek(work, step)}` === before ? [] : ["the changed file did not come back"]);
  }
  if (operation === "rewind-all") {
    const before = census(work);
    execFileSync("sh", ["-c", "rm -rf -- *"], { cwd: work });
    return () => {
      const after = census(work);
      const wrong = (["entries", "files", "bytes"] as const).filter((one) => after[one] !== before[one]);
      return wrong.map((one) => `${after[one]} of ${before[one]} ${one} came back`);
    };
  }
  return () => [];
}

/** Reads everything, so that no arm pays for a cold page cache. */
function warm(work: string): void {
  execFileSync("find", [work, "-type", "f", "-exec", "cat", "{}", "+"], { stdio: ["ignore", "ignore", "inherit"] });
}

/** So that what one arm left to write does not fall into another's time. */
const syncDisk = (folder: string): void => void execFileSync("sync", ["-f", folder]);

const diskBytes = (folder: string): number => {
  try {
    return Number(execFileSync("du", ["-s", "-B1", folder], { encoding: "utf8" }).split("\t")[0]);
  } catch {
    return 0;
  }
};
