// The processes of a command that is observed from outside: which there are, what they were started as, and how much they compute.
import { readFileSync } from "node:fs";
import { belonging } from "../../environment/directory/programs/belonging.ts";
import { markedVariables } from "../../environment/directory/programs/mark.ts";
import { openSeeing } from "../../environment/directory/programs/see.ts";
import type { KnownProcess } from "../../environment/directory/programs/seeing.ts";
import { processStat, threadsOf } from "../../environment/processes/proc.ts";
import type { LiveProcess } from "./standing.ts";

/** Words of a command line. */
export type Words = readonly string[];

export interface Seen {
  /** Those that were not there at the look before; of a process that became another program both. */
  readonly started: readonly Words[];
  readonly ended: number;
  /** Milliseconds that the processes computed since the look before. */
  readonly computedMs: number;
}

const run = "command";

interface Known {
  readonly start: string;
  readonly words: string;
  readonly ticks: number;
}

/** Clock ticks of /proc are hundredths of a second on every Linux that Node runs on. */
const tickMs = 10;

export class Tree {
  readonly #environment: string;
  readonly #see = openSeeing();
  readonly #known = new Map<number, Known>();
  #root: KnownProcess | undefined;

  /** @param name of the observation, by which its processes are known when their parents have gone */
  constructor(name: string) {
    this.#environment = `observe-${name}`;
  }

  /** Variables that the command must have. */
  get variables(): Readonly<Record<string, string>> {
    return markedVariables(this.#environment, run);
  }

  started(pid: number): void {
    const start = this.#see.startOf(pid);
    if (start === undefined) return;
    this.#root = { pid, start };
    const stat = processStat(pid);
    this.#known.set(pid, { start, words: wordsOf(pid), ticks: stat?.ticks ?? 0 });
  }

  /** The root, and what descends from what is known. Cheap: reads of these processes only. */
  look(): Seen {
    const started: Words[] = [];
    let ended = 0;
    let ticks = 0;
    const found = new Set<number>();
    const visit = (pid: number): void => {
      if (found.has(pid)) return;
      const stat = processStat(pid);
      if (stat === undefined || stat.state === "Z" || stat.state === "X") return;
      found.add(pid);
      const known = this.#known.get(pid);
      const start = `${stat.startTime}`;
      const same = known?.start === start;
      const words = wordsOf(pid);
      // What was forked and has not become another program yet carries its parent's words.
      const isNew = !stat.forked && (!same || known.words !== words) && pid !== this.#root?.pid;
      if (isNew && words !== "") started.push(words.split("\0"));
      ticks += stat.ticks - (same ? known.ticks : 0);
      this.#known.set(pid, { start, words: stat.forked ? "" : words, ticks: stat.ticks });
      for (const child of childrenOf(pid)) visit(child);
    };
    for (const pid of [...this.#known.keys()]) visit(pid);
    for (const pid of [...this.#known.keys()]) {
      if (found.has(pid)) continue;
      this.#known.delete(pid);
      ended++;
    }
    return { started, ended, computedMs: Math.max(0, ticks) * tickMs };
  }

  /** All that the command has started and that runs, but the command itself; also what its parents have left. */
  async left(): Promise<LiveProcess[]> {
    const { seen } = await this.#see.list();
    const known = this.#root === undefined ? [] : [this.#root];
    const own = belonging(seen, [{ id: run, groups: [], known }], this.#environment).get(run) ?? [];
    const here = new Set([...own.map(({ pid }) => pid), this.#root?.pid]);
    for (const { pid, start } of own)
      if (!this.#known.has(pid))
        this.#known.set(pid, { start, words: wordsOf(pid), ticks: processStat(pid)?.ticks ?? 0 });
    return own
      .filter(({ pid }) => pid !== this.#root?.pid)
      .map(({ pid, start, parent }) => ({ key: `${pid}@${start}`, orphan: !here.has(parent) }));
  }
}

function wordsOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").replace(/\0$/, "");
  } catch {
    return "";
  }
}

function childrenOf(pid: number): number[] {
  return threadsOf(pid).flatMap((thread) => {
    try {
      return readFileSync(`/proc/${pid}/task/${thread}/children`, "latin1").split(" ").filter(Boolean).map(Number);
    } catch {
      return [];
    }
  });
}
