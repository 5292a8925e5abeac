// Observes a program that knows nothing of AgentRewind: what its processes do, and what of the workspace has changed when they pause.
import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { classifyWords } from "../../coordinator/policy/commands/classify.ts";
import type { TurnClass } from "../../session/turn-stats.ts";
import type { TurnFacts } from "../turns.ts";
import { nameOfWords } from "./names.ts";
import { Standing, type StandingChange } from "./standing.ts";
import { Stretches } from "./stretches.ts";
import type { Tree, Words } from "./tree.ts";

/** Milliseconds between two looks at the processes, while they work and while they pause. */
const lookMs = { working: 10, pausing: 30 };
/** Of the time, at most, that looks at the files may take while nothing else happens. */
const filesShare = 0.05;

export interface OutsideOptions {
  readonly tree: Tree;
  readonly pauseMs: number;
  /** The files as they are now: equal names where nothing changed. */
  readonly files: () => Promise<string | null>;
  /** Bytes that captures would have stored since the last call. */
  readonly takeBytes: () => number;
  /** The program tells of its turns itself: nothing is to be guessed. */
  readonly isTold: () => boolean;
}

export class Outside {
  readonly turns: TurnFacts[] = [];
  /** What was there before the command began. */
  baseBytes = 0;
  readonly #options: OutsideOptions;
  readonly #stop = new AbortController();
  readonly #stretches: Stretches;
  readonly #standing = new Standing();
  readonly #ran: Words[] = [];
  #following = Promise.resolve();
  #began = Date.now();
  #files: string | null | undefined;
  #filesAt = 0;
  #filesTook = 0;

  constructor(options: OutsideOptions) {
    this.#options = options;
    this.#stretches = new Stretches(options.pauseMs, performance.now());
  }

  /** The state before the command begins. */
  async begin(): Promise<void> {
    this.#files = await this.#options.files();
    this.baseBytes = this.#options.takeBytes();
  }

  /** Until `end`. */
  follow(): void {
    this.#following = this.#follow();
  }

  async #follow(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      await sleep(this.#stretches.open ? lookMs.working : lookMs.pausing, undefined, { signal }).catch(() => {});
      if (this.#options.isTold()) continue;
      const { started, ended, computedMs } = this.#options.tree.look();
      if (!this.#stretches.open) this.#began = Date.now();
      this.#ran.push(...started);
      const at = performance.now();
      const paused = this.#stretches.look({ at, changes: started.length + ended > 0, computedMs });
      if (paused || (!this.#stretches.open && this.#mayLook(at))) await this.#boundary(paused);
    }
  }

  /** The command has ended: what it did last is a turn as well. */
  async end(): Promise<void> {
    this.#stop.abort();
    await this.#following;
    if (!this.#options.isTold()) await this.#boundary(this.#stretches.open || this.#ran.length > 0, true);
  }

  /** Something that computes next to nothing may write all the same. */
  #mayLook(now: number): boolean {
    return now - this.#filesAt > Math.max(this.#options.pauseMs, this.#filesTook / filesShare);
  }

  /** @param worked a stretch has ended; else it is one only where something changed */
  async #boundary(worked = false, last = false): Promise<void> {
    const start = performance.now();
    // The workspace may have gone: that is a change like another, and the command goes on.
    const files = await this.#options.files().catch(() => null);
    // Within a pause nothing more is known of what waits and what was left.
    const processes = worked || last ? this.#standing.stretch(await this.#options.tree.left(), last) : nothingLeft;
    this.#filesAt = performance.now();
    this.#filesTook = this.#filesAt - start;
    const before = this.#files;
    this.#files = files;
    if (processes.before) this.#changeLast(({ changed }) => ({ changed: withProcesses(changed) }));
    const changed = classOf(before !== files, processes.now);
    if (changed === "none" && !worked) return;
    const calls = this.#ran.splice(0).map((words) => ({ name: nameOfWords(words), classes: classifyWords(words) }));
    // What is asked for before a stretch is what ran in it.
    this.#changeLast(() => ({ reply: calls }));
    this.turns.push({
      ...{ thread: "command", turn: this.turns.length + 1, at: this.#began, calls, reply: [], changed },
      ...{ bytes: this.#options.takeBytes(), exposedMs: this.#filesTook, overlappedMs: 0 },
    });
  }

  #changeLast(change: (last: TurnFacts) => Partial<TurnFacts>): void {
    const last = this.turns.at(-1);
    if (last !== undefined) this.turns[this.turns.length - 1] = { ...last, ...change(last) };
  }
}

const nothingLeft: StandingChange = { now: false, before: false };

function classOf(files: boolean, processes: boolean): TurnClass {
  if (files) return processes ? "both" : "files";
  return processes ? "processes" : "none";
}

const withProcesses = (changed: TurnClass | null): TurnClass | null =>
  changed === null ? null : classOf(changed === "files" || changed === "both", true);
