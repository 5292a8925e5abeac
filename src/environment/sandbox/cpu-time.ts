// Whether any process of a sandbox was given a processor, as /proc and its control group tell: it needs nothing but costs the sandbox nothing either, and knows less than the kernel's counters.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { processStat, threadsOf } from "../processes/proc.ts";
import type { Activity, ActivityMark, TreeActivity } from "./activity.ts";
import { processesOf } from "./cgroup.ts";

/** Whoever holds the processes wakes them: from then on nothing can be told before the next look at who waits. */
export const cpuTimeActivity: Activity = {
  watch: (group) => new CpuTime(group),
  close() {},
};

class CpuTime implements TreeActivity {
  readonly #group: string;

  constructor(group: string) {
    this.#group = group;
  }

  mark(): ActivityMark | undefined {
    try {
      // What was handed in may be carried out at any later time, by the kernel's own threads.
      if (readFileSync("/proc/sys/fs/aio-nr", "latin1").trim() !== "0") return undefined;
      return this.#read();
    } catch {
      return undefined;
    }
  }

  beforeHold(): () => undefined {
    return () => undefined;
  }

  isQuiet(since: ActivityMark): boolean {
    try {
      const now = this.#read();
      return now !== undefined && now.length === since.length && now.every((one, at) => one === since[at]);
    } catch {
      return false;
    }
  }

  close(): void {}

  /** Times of all, and how often each thread was given a processor. undefined where one has, or wants, one now: its time is not counted yet. */
  #read(): string[] | undefined {
    const found: string[] = [];
    for (const pid of processesOf(this.#group)) {
      for (const tid of threadsOf(pid)) {
        if (!waits.has(processStat(tid)?.state ?? "R")) return undefined;
        found.push(`${tid} ${readFileSync(`/proc/${pid}/task/${tid}/schedstat`, "latin1")}`);
      }
    }
    const used = /^usage_usec \d+$/m.exec(readFileSync(join(this.#group, "cpu.stat"), "latin1"))?.[0];
    return used === undefined ? undefined : [...found, used];
  }
}

/** Asleep, ended. */
const waits: ReadonlySet<string> = new Set(["S", "Z", "X"]);
