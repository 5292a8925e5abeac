// Observes a program that knows nothing of AgentRewind: what its processes do, and what of the workspace has changed when they pause.
import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { classifyWords } from "../../coordinator/policy/commands/classify.ts";
import type { Manifest } from "../../environment/environment.ts";
import { changedHalves } from "../../session/turn-stats.ts";
import type { TurnFacts } from "../turns.ts";
import { nameOfWords } from "./names.ts";
import { Stretches } from "./stretches.ts";
import type { Tree, Words } from "./tree.ts";

const lookMs = 30;
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
  readonly #options: OutsideOptions;
  readonly #stop = new AbortController();
  readonly #stretches: Stretches;
  #ran: Words[] = [];
  #began = Date.now();
  #last: Manifest | undefined;
  #filesAt = 0;
  #filesTook = 0;

  constructor(options: OutsideOptions) {
    this.#options = options;
    this.#stretches = new Stretches(options.pauseMs, performance.now());
  }

  /** The state before the command begins. */
  async begin(): Promise<void> {
    await this.#boundary();
  }

  /** Until `end`. */
  async follow(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      await sleep(lookMs, undefined, { signal }).catch(() => {});
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
    if (!this.#options.isTold()) await this.#boundary(this.#stretches.open || this.#ran.length > 0);
  }

  /** Something that computes next to nothing may write all the same. */
  #mayLook(now: number): boolean {
    return now - this.#filesAt > Math.max(this.#options.pauseMs, this.#filesTook / filesShare);
  }

  /** @param worked a stretch has ended; else it is one only where something changed */
  async #boundary(worked = false): Promise<void> {
    const start = performance.now();
    const manifest = { files: await this.#options.files(), processes: await this.#options.tree.left() };
    this.#filesAt = performance.now();
    this.#filesTook = this.#filesAt - start;
    const before = this.#last;
    this.#last = manifest;
    const changed = before === undefined ? null : changedHalves(before, manifest);
    if (changed === "none" && !worked) return;
    const ran = this.#ran;
    this.#ran = [];
    const calls = ran.map((words) => ({ name: nameOfWords(words), classes: classifyWords(words) }));
    this.turns.push({
      ...{ thread: "command", turn: this.turns.length + 1, at: this.#began, calls, reply: [], changed },
      ...{ bytes: this.#options.takeBytes(), exposedMs: this.#filesTook, overlappedMs: 0 },
    });
    // What is asked for before a stretch is what ran in it.
    const last = this.turns.at(-2);
    if (last !== undefined) this.turns[this.turns.length - 2] = { ...last, reply: calls };
  }
}
