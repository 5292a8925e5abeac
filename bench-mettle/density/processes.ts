// The processes that hold the agents of a block, from outside.
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { OpenOptions } from "agentrewind";
import { kill } from "../crash/kill.ts";
import { plainEnvironment } from "../crash/place.ts";
import type { Task } from "./task.ts";

const program = fileURLToPath(new URL("agent.mjs", import.meta.url));

/** What waited at one turn, and which halves are those of the turn before. */
export interface TurnLine {
  readonly exposedMs: number;
  readonly overlappedMs: number;
  readonly bytes: number;
  /** The same as `exposedMs`, by the agent's own clock, with the beginning of the turn. */
  readonly waitedMs: number;
  readonly filesKept: boolean;
  readonly processesKept: boolean;
  /** It cannot be restored. */
  readonly lost: boolean;
  readonly problems: readonly string[];
}

export interface Done {
  readonly index: number;
  readonly taskMs: number;
  /** Behind the task, until everything was on the disk. */
  readonly durableMs: number;
  /** [] where nothing is recorded. */
  readonly turns: readonly TurnLine[];
  /** Calls of tools that answered with an error of ours. */
  readonly failed: number;
}

export interface Left {
  readonly index: number;
  /** Its shell is the one that it began with: the sandbox has lived through. */
  readonly sameLife: boolean;
  readonly state: string;
  readonly verdicts: readonly { readonly trace: string; readonly pass: boolean; readonly why: string }[];
}

export interface Idle {
  /** The most memory that it has ever had. */
  readonly rssKiB: number;
  /** How late its event loop was. */
  readonly loopMs: { readonly p99: number; readonly max: number };
}

type Told =
  | { readonly type: "ready" | "over" }
  | ({ readonly type: "done" } & Done)
  | ({ readonly type: "idle" } & Idle)
  | ({ readonly type: "left" } & Left);

export interface Begin {
  readonly agents: readonly { readonly index: number; readonly workspace: string; readonly task: Task }[];
  readonly store: string;
  readonly open: Partial<OpenOptions>;
  readonly records: boolean;
}

/** Times of commits, so that their names are the same in every arm. */
const fixed = { GIT_AUTHOR_DATE: "2024-01-01T00:00:00Z", GIT_COMMITTER_DATE: "2024-01-01T00:00:00Z" };

export class AgentProcess {
  readonly done: Done[] = [];
  readonly left: Left[] = [];
  readonly agents: readonly number[];
  idle: Idle | undefined;
  /** Why it ended, where nobody had ended it. */
  died: string | undefined;
  readonly #child: ChildProcess;
  readonly #reached = new Set<Told["type"]>();
  readonly #closed: Promise<unknown>;
  #wake = (): void => {};
  #ending = false;

  constructor(begin: Begin) {
    this.agents = begin.agents.map(({ index }) => index);
    const child = fork(program, [], {
      cwd: "/",
      env: { ...plainEnvironment(), ...fixed },
      execArgv: [],
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    });
    let stderr = "";
    child.stderr?.on("data", (bytes) => {
      stderr = `${stderr}${bytes}`.slice(-2_000);
    });
    child.on("message", (told: Told) => this.#take(told));
    this.#closed = once(child, "close").then(([code, signal]) => {
      if (!this.#ending) this.died = `ended (${signal ?? code}): ${stderr.trim() || "it said nothing"}`;
      this.#wake();
    });
    this.#child = child;
    this.tell("begin", begin);
  }

  tell(type: "begin" | "go" | "end", more: object = {}): void {
    this.#child.send({ type, ...more }, () => {});
  }

  /** Resolves when it has said so, or has ended. */
  async until(type: Told["type"]): Promise<void> {
    while (!this.#reached.has(type) && this.died === undefined) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  /** Ends it by SIGKILL, and with it its sandboxes. */
  kill(): void {
    this.#ending = true;
    if (this.#child.pid !== undefined && this.#child.exitCode === null && this.#child.signalCode === null)
      kill(this.#child.pid);
  }

  /** As `kill`; it counts as died. */
  giveUp(why: string): void {
    this.died ??= why;
    this.kill();
    this.#wake();
  }

  async closed(): Promise<void> {
    await this.#closed;
  }

  #take(told: Told): void {
    if (told.type === "done") this.done.push(told);
    if (told.type === "left") this.left.push(told);
    if (told.type === "idle") this.idle = told;
    this.#reached.add(told.type);
    this.#wake();
  }
}
