// The task of one agent: turns and latencies that its class and its seed decide, the same in every arm.
import { dirname } from "node:path";
import { between, type Random, randomOf } from "../crash/random.ts";
import { traces } from "../crash/traces/index.ts";
import { bash, type Call, type Trace, type Turn, write } from "../crash/traces/trace.ts";
import type { AgentClass } from "./classes.ts";
import { latenciesOf, meanLatency } from "./latency.ts";
import { lookOf, type Stand } from "./looking.ts";
import { request, serviceState, startService } from "./service.ts";

export interface TaskTurn {
  /** Of the reply: it only looks, or it acts. */
  readonly looks: boolean;
  readonly latencyMs: number;
  readonly calls: readonly Call[];
}

/** A trace that the task has done to its end. */
export interface Finished {
  readonly trace: string;
  readonly folder: string;
  readonly verify: string;
}

export interface Task {
  readonly className: string;
  /** Milliseconds behind the beginning of the block: agents of a host do not begin together. */
  readonly startMs: number;
  /** What makes the agent's first repository, and starts its server: run before the task begins. */
  readonly before: readonly Call[];
  readonly turns: readonly TaskTurn[];
  readonly finished: readonly Finished[];
  /** A script for bash that prints what the task has left, run in the workspace. */
  readonly state: string;
}

export interface TaskSeed {
  /** Everything that distinguishes it from other tasks but the arm. */
  readonly name: readonly (string | number)[];
  readonly workspace: string;
  /** Model decisions, the last of which calls nothing. */
  readonly turns: number;
  readonly medianMs: number;
}

export function taskOf(agentClass: AgentClass, { name, workspace, turns, medianMs }: TaskSeed): Task {
  const random = randomOf("density", ...name);
  const latencies = latenciesOf(randomOf("density latency", ...name), turns, medianMs);
  const work = new Work(agentClass, workspace, random);
  const before = work.begin();
  const made = latencies.map((latencyMs, index): TaskTurn => {
    if (index === turns - 1) return { looks: true, latencyMs, calls: [] };
    const looks = random() * 100 < agentClass.looking;
    return { looks, latencyMs, calls: looks ? work.look() : work.act() };
  });
  const service = agentClass.serves ? serviceState : "true";
  return {
    className: agentClass.name,
    startMs: randomOf("density start", ...name)() * meanLatency(medianMs),
    before,
    turns: made,
    finished: work.finished,
    state: `${leftBehind}\n${service}`,
  };
}

/** Names, modes and contents below the workspace. Of a repository its commit and its changes: the rest of .git holds times. */
const leftBehind = `find . \\( -name .git -o -name __pycache__ \\) -prune -o -printf '%y %m %p %l\\n' | sort
find . \\( -name .git -o -name __pycache__ \\) -prune -o -type f -print0 | sort -z | xargs -0 sha256sum
for repository in */.git; do git -C "\${repository%/.git}" log --all --format=%H; git -C "\${repository%/.git}" status --short; done`;

/** One trace after the other, each in a folder of its own in which the shell stands. */
class Work {
  readonly finished: Finished[] = [];
  readonly #class: AgentClass;
  readonly #workspace: string;
  readonly #random: Random;
  #next: number;
  #folders = 0;
  #requests = 0;
  #serves = false;
  #trace: Trace | undefined;
  #stand: Stand | undefined;
  #left: Turn[] = [];

  constructor(agentClass: AgentClass, workspace: string, random: Random) {
    this.#class = agentClass;
    this.#workspace = workspace;
    this.#random = random;
    this.#next = between(random, 0, agentClass.traces.length - 1);
  }

  look(): readonly Call[] {
    const stand = this.#stand as Stand;
    // What the trace itself looks at comes where it stands.
    const [own] = this.#left;
    if (own?.looks !== true) return lookOf(this.#random, this.#class, stand);
    this.#left.shift();
    return below(stand.folder, own.calls);
  }

  act(): readonly Call[] {
    if (this.#class.serves && !this.#serves) {
      this.#serves = true;
      return [request(this.#requests++)];
    }
    this.#serves = false;
    while (this.#left[0]?.looks === true) this.#left.shift();
    const turn = this.#left.shift();
    if (turn === undefined) return this.begin();
    const { id, verify } = this.#trace as Trace;
    const { folder } = this.#stand as Stand;
    if (!this.#left.some(({ looks }) => !looks)) this.finished.push({ trace: id, folder, verify });
    return below(folder, turn.calls);
  }

  /** The files of the next trace, as a repository. */
  begin(): readonly Call[] {
    const { traces: ids, serves } = this.#class;
    const wanted = ids[this.#next++ % ids.length];
    const trace = traces.find(({ id }) => id === wanted) as Trace;
    const service = serves && this.#stand === undefined ? startService : [];
    const folder = `w${this.#folders++}`;
    const paths = Object.keys(trace.files);
    const folders = [...new Set(paths.map((path) => dirname(`${this.#workspace}/${folder}/${path}`)))];
    this.#trace = trace;
    this.#left = [...trace.turns];
    this.#stand = { workspace: this.#workspace, folder, files: paths };
    const commit = "[ -e .git ] || { git init -q -b main . && git add -A && git commit -qm begin --allow-empty; }";
    return [
      ...service,
      bash(`mkdir -p ${[`${this.#workspace}/${folder}`, ...folders].join(" ")}; cd ${this.#workspace}/${folder}`),
      ...paths.map((path) => write(`${folder}/${path}`, trace.files[path] as string)),
      bash(`( ${trace.prepare ?? "true"}\n${commit} )`),
    ];
  }
}

/** Tools for files know paths below the workspace, not where the shell stands. */
const below = (folder: string, calls: readonly Call[]): readonly Call[] =>
  calls.map((call) =>
    call.tool === "bash" ? call : ({ ...call, args: { ...call.args, path: `${folder}/${call.args.path}` } } as Call),
  );
