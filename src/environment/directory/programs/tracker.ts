// Keeps track of what the commands of one environment leave running, also of commands that other processes of ours ran in it.
import { randomBytes } from "node:crypto";
import { nameOf } from "../../processes/start-again.ts";
import { belonging, rootsOf, runsAround } from "./belonging.ts";
import { markedVariables } from "./mark.ts";
import { keyOf, type Program, type RecordedProgram, type Run } from "./run.ts";
import { RunNotes } from "./run-notes.ts";
import type { KnownProcess, Seeing, SeenProcess } from "./seeing.ts";

export interface LiveRun {
  readonly run: Run;
  /** Not empty. */
  readonly processes: readonly SeenProcess[];
}

export interface TrackedCommand {
  /** Variables that the command must have. */
  readonly variables: Readonly<Record<string, string>>;
  /** It runs. `group`: it has a process group of its own, under its number (the default). */
  readonly started: (pid: number, group?: boolean) => void;
  /** It has ended, or was never started; what it has left is looked for. */
  ended(): Promise<void>;
}

/** Looks at what a command leaves until nothing ends in between; each time is another one of a hundred. */
const endLooks = 5;

export class ProgramTracker {
  readonly environment: string;
  readonly see: Seeing;
  readonly #notes: RunNotes;
  readonly #runs = new Map<string, Run>();
  /** The notes as they were last written. */
  readonly #written = new Map<string, string>();
  /** Whose commands run here. */
  readonly #own = new Set<string>();

  /** @param folder where the notes lie */
  constructor(environment: string, folder: string, see: Seeing) {
    this.environment = environment;
    this.see = see;
    this.#notes = new RunNotes(folder);
  }

  /** Right before a command is started. */
  begin(): TrackedCommand {
    const id = `${Date.now().toString(36)}-${randomBytes(6).toString("hex")}`;
    const began = Date.now();
    let leader: number | undefined;
    this.#own.add(id);
    const { machine } = this.see;
    this.#runs.set(id, { id, machine, groups: [], known: [], programs: [], waiter: this.#self() });
    this.#write(id);
    return {
      variables: markedVariables(this.environment, id),
      started: (pid, group = true) => {
        leader = pid;
        const start = this.see.startOf(pid);
        const run = this.#runs.get(id) as Run;
        // It may have ended already.
        const known = start === undefined ? [] : [{ pid, start }];
        this.#runs.set(id, { ...run, groups: group ? [pid] : [], known });
        this.#write(id);
      },
      ended: async () => {
        const run: Run = { ...(this.#runs.get(id) ?? this.#unknown(id)), waiter: null };
        const left = leader === undefined ? [] : await this.#leftBy(run, leader, Date.now() - began);
        this.#own.delete(id);
        if (left.length === 0) return this.#forget(id);
        this.#runs.set(id, run);
        this.#update(id, left);
      },
    };
  }

  async #leftBy(run: Run, leader: number, ms: number): Promise<readonly SeenProcess[]> {
    for (let looks = 1; ; looks++) {
      const { seen, whole } = await this.see.list({ pid: leader, ms });
      const left = belonging(seen, [{ ...run, sure: run.groups }], this.environment).get(run.id) ?? [];
      if (left.length > 0 || whole || looks === endLooks) return left;
    }
  }

  mayRun(): boolean {
    this.#load();
    return this.#runs.size > 0;
  }

  /** What runs now. Nothing is read of processes where there is no note of any command. */
  async look(): Promise<LiveRun[]> {
    if (!this.mayRun()) return [];
    // A command that begins or ends while they are looked at is looked at by whoever waits for it.
    const waitedFor = new Set([...this.#runs.values()].filter(({ waiter }) => waiter !== null).map(({ id }) => id));
    const { seen } = await this.see.list();
    const found = belonging(seen, [...this.#runs.values()], this.environment);
    for (const [id, processes] of found) this.#update(id, processes);
    for (const id of [...this.#runs.keys()])
      if (!found.has(id) && !waitedFor.has(id) && !this.#own.has(id)) this.#forget(id);
    return [...found].map(([id, processes]) => ({ run: this.#runs.get(id) as Run, processes }));
  }

  /** A program that was started again belongs to the run that it belonged to. */
  adopt(id: string, about: RecordedProgram, pid: number): void {
    const start = this.see.startOf(pid);
    if (start === undefined) return;
    const run = this.#runs.get(id) ?? this.#unknown(id);
    this.#runs.set(id, {
      ...run,
      groups: [...run.groups, pid],
      known: [...run.known, { pid, start }],
      programs: [...run.programs, { pid, start, about, file: null }],
    });
    this.#write(id);
  }

  /** As "process 12 (node) on port 8000", with its present number. */
  nameOf({ pid, about }: Program, processes: readonly SeenProcess[]): string {
    return nameOf({ ...about, pid, ports: union(about.ports, this.see.portsOf(treeOf(pid, processes))) });
  }

  #load(): void {
    const around = new Set(runsAround(this.environment));
    for (const id of this.#notes.ids()) {
      if (this.#own.has(id) || around.has(id)) continue;
      const run = this.#notes.read(id);
      if (run === undefined || isOfAnotherBoot(run.machine, this.see.machine)) this.#notes.remove(id);
      else if (run.machine === this.see.machine) this.#take(run);
    }
  }

  /** Somebody else may have written it: who waits is his to say, what was seen of it here is newer. */
  #take(run: Run): void {
    const mine = this.#runs.get(run.id);
    const waits = run.waiter !== null && this.see.startOf(run.waiter.pid) === run.waiter.start;
    const { known, programs, groups } = mine ?? run;
    this.#runs.set(run.id, { ...run, known, programs, groups, waiter: waits ? run.waiter : null });
  }

  #update(id: string, processes: readonly SeenProcess[]): void {
    const run = this.#runs.get(id) ?? this.#unknown(id);
    const programs = rootsOf(processes).map((one) => this.#program(run, one, processes));
    const known = processes.map(({ pid, start }) => ({ pid, start }));
    this.#runs.set(id, { ...run, known, programs });
    this.#write(id);
  }

  /** A program stays described as it was first seen, also where it gives itself another name; ports come later, or with what it starts. */
  #program(run: Run, one: SeenProcess, processes: readonly SeenProcess[]): Program {
    const { pid, start, forked } = one;
    const known = run.programs.find((other) => keyOf(other) === keyOf(one));
    if (known?.file === null) return known;
    const ports = this.see.portsOf(treeOf(pid, processes));
    const file = this.see.fileOf(pid);
    if (known !== undefined && known.file === file && known.about.forked === forked)
      return { ...known, about: { ...known.about, ports: union(known.about.ports, ports) } };
    const seen = this.see.describe(pid);
    // The streams of a command are sockets that lead to whoever gave it; what the programs of a line share are pipes.
    const streams = seen.streams.map((stream) => (stream.startsWith("socket:") ? "/dev/null" : stream));
    return { pid, start, file, about: { pid, start, ...seen, env: withoutMarks(seen.env), streams, ports, forked } };
  }

  #unknown = (id: string): Run => ({
    id,
    machine: this.see.machine,
    groups: [],
    known: [],
    programs: [],
    waiter: null,
  });

  #self = (): KnownProcess => ({ pid: process.pid, start: this.see.startOf(process.pid) ?? "" });

  #write(id: string): void {
    const run = this.#runs.get(id) as Run;
    const text = JSON.stringify(run);
    if (this.#written.get(id) === text) return;
    if (this.#notes.write(run)) this.#written.set(id, text);
  }

  #forget(id: string): void {
    this.#runs.delete(id);
    this.#written.delete(id);
    this.#notes.remove(id);
  }
}

/** It, and what it has started, and so on. */
function treeOf(root: number, processes: readonly SeenProcess[]): number[] {
  const pids = new Set([root]);
  for (let size = 0; size < pids.size; ) {
    size = pids.size;
    for (const { pid, parent } of processes) if (pids.has(parent)) pids.add(pid);
  }
  return [...pids];
}

const union = (one: readonly number[], other: readonly number[]): number[] =>
  [...new Set([...one, ...other])].sort((a, b) => a - b);

const isOfAnotherBoot = (machine: string, here: string): boolean => machine.split(" ")[0] !== here.split(" ")[0];

const withoutMarks = (env: readonly string[]): string[] => env.filter((one) => !one.startsWith("AGENTREWIND_RUN="));
