// The whole state of a sandbox, read from outside while everything inside stands still (test/fixtures/oracle): what a rewind has to bring back.
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface, type Interface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import type { Environment } from "agentrewind";
import { Keeper } from "../../src/environment/sandbox/keeper.ts";
import { pythonArguments, pythonPath } from "../helpers/python.ts";

/** Nested maps of what was found; two states are the same where these are equal. */
export interface State {
  // biome-ignore lint/suspicious/noExplicitAny: as deep as a process
  readonly processes: Readonly<Record<string, any>>;
  readonly network: readonly string[];
  readonly ipc: readonly string[];
  readonly files: {
    readonly entries: Readonly<Record<string, string>>;
    readonly mounts: readonly string[];
    readonly terminals: readonly string[];
  };
}

export class Oracle {
  readonly #reader: ChildProcess;
  readonly #lines: Interface;
  readonly #answers: AsyncIterator<string>;
  #last: Promise<unknown> = Promise.resolve();

  constructor() {
    this.#reader = spawn(pythonPath() as string, pythonArguments("oracle/look.py"), {
      stdio: ["pipe", "pipe", "inherit"],
    });
    this.#lines = createInterface({ input: this.#reader.stdout as NodeJS.ReadableStream });
    this.#answers = this.#lines[Symbol.asyncIterator]();
  }

  /** @param group folder of the control group of the tree's processes, which stand still */
  look(group: string): Promise<State> {
    const answer = this.#last.then(async () => {
      this.#reader.stdin?.write(`${group}\n`);
      const { value = "null" } = await this.#answers.next();
      const { state, error } = JSON.parse(value) ?? { error: "the reader has ended" };
      if (error !== undefined) throw new Error(error);
      return state as State;
    });
    this.#last = answer.catch(() => {});
    return answer;
  }

  /** Holds everything in the sandbox still by its control group, looks, and lets it go on. */
  async lookFrozen(environment: Environment): Promise<State> {
    const group = groupOf(environment);
    writeFileSync(join(group, "cgroup.freeze"), "1");
    try {
      while (!/^frozen 1$/m.test(readFileSync(join(group, "cgroup.events"), "utf8"))) await sleep(1);
      return await this.look(group);
    } finally {
      writeFileSync(join(group, "cgroup.freeze"), "0");
    }
  }

  end(): void {
    this.#lines.close();
    this.#reader.kill();
  }
}

/** Of the processes that are captured: beside that of the sandbox's first process. */
function groupOf(environment: Environment): string {
  const init = /^\/proc\/(\d+)\/root/.exec(environment.path(".") ?? "")?.[1];
  const [, own = ""] = /^0::(.*)$/m.exec(readFileSync(`/proc/${init}/cgroup`, "utf8")) ?? [];
  const mount = readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .find((line) => line.includes(" - cgroup2 "))
    ?.split(" ")[4] as string;
  return join(mount, dirname(own), "tree");
}

export type Moment = "captured" | "restored";

/** What CRIU says when all processes are in the images and none has gone on, and when all are there again and none has begun to. */
const said: readonly (readonly [string, Moment])[] = [
  ["post-dump", "captured"],
  ["pre-resume", "restored"],
];

/**
 * Calls `at` in the very moments of captures and restores of this process: CRIU waits meanwhile, and everything in the sandbox with it. What ends these moments is
 * the answer of the library, which is given afterwards. Gives back what takes the watch away.
 */
export function watchMoments(at: (moment: Moment, group: string) => Promise<void>): () => void {
  const { criu } = Keeper.prototype;
  Keeper.prototype.criu = async function (place) {
    const channel = await criu.call(this, place);
    const group = join(dirname(place.cgroup), "tree");
    return {
      ...channel,
      async receive() {
        const message = await channel.receive();
        const moment = said.find(([script]) => message !== null && Buffer.from(message).includes(script))?.[1];
        if (moment !== undefined) await at(moment, group);
        return message;
      },
    };
  };
  return () => {
    Keeper.prototype.criu = criu;
  };
}

/** Paths at which two states differ, with both values; by default the first ones. */
export function differences(before: unknown, after: unknown, most = 40): string[] {
  const found: string[] = [];
  const visit = (one: unknown, other: unknown, path: string): void => {
    if (found.length >= most || Object.is(one, other)) return;
    if (isObject(one) && isObject(other)) {
      for (const key of new Set([...Object.keys(one), ...Object.keys(other)]))
        visit(one[key], other[key], `${path}/${key}`);
    } else found.push(`${path}: ${short(one)} -> ${short(other)}`);
  };
  visit(before, after, "");
  return found;
}

const longest = 600;
const short = (value: unknown): string => String(JSON.stringify(value)).slice(0, longest);
const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;

/** Calls in which a thread waits for another one's doing and for no clock, by their numbers on x86-64: read, wait4, pause, accept, futex, sigsuspend, open, flock, fcntl. */
const waiting = /^(?:0|61|34|43|288|130|2|257|72|73|202 \S+ \S+ \S+ 0x0|247|271 \S+ \S+ 0x0) /;

/**
 * Of a state that was looked at before and behind a capture, and one behind a rewind, what must be the same: of a process that a clock wakes, that never waits, or that was not yet
 * done with what it began, not what it does meanwhile; and not the files and the network where there is one.
 */
export function resting([before, behind]: readonly [State, State], after: State): [unknown, unknown] {
  const waits = (state: State, pid: string): boolean => {
    const found = state.processes[pid];
    // The parent of a stopped process is told once more that it has stopped: CRIU stops it again.
    if (Object.values(state.processes).some(({ parent, stopped }) => stopped === true && `${parent}` === pid))
      return false;
    return (
      found === undefined ||
      "zombie" in found ||
      found.stopped ||
      found.threads.every(({ call }: { call: string }) => waiting.test(call))
    );
  };
  const all = [...new Set([before, behind, after].flatMap(({ processes }) => Object.keys(processes)))];
  const rests = (pid: string): boolean =>
    [before, behind, after].every((state) => waits(state, pid)) &&
    isDeepStrictEqual(before.processes[pid], behind.processes[pid]);
  const moving = new Set(all.filter((pid) => !rests(pid)));
  // Whose parent goes on may be one that it has just made.
  const parentOf = (pid: string): string =>
    `${[before, behind, after].map(({ processes }) => processes[pid]?.parent).find((one) => one !== undefined)}`;
  for (let known = -1; known < moving.size; ) {
    known = moving.size;
    for (const pid of all) if (moving.has(parentOf(pid))) moving.add(pid);
  }
  const part = ({ processes, files, network, ipc }: State): unknown => ({
    processes: Object.fromEntries(Object.entries(processes).filter(([pid]) => !moving.has(pid))),
    ipc,
    mounts: files.mounts,
    ...(moving.size === 0 ? { files, network } : {}),
  });
  return [part(before), part(after)];
}
