// The engine of one process: grants for the whole host, asks the process that does, or goes on alone where neither is to be had.
import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { type EngineEvent, reportEngine } from "../../events.ts";
import type { Lock } from "../../store/lock.ts";
import { type Asking, askLease, type Refusal } from "./asker.ts";
import type { Engine, EngineLimits, Job, JobRequest, Scheduler } from "./engine.ts";
import { type Serving, serveLease, tryLease } from "./lease.ts";
import { beatsInSilence } from "./protocol.ts";
import { Queue } from "./queue.ts";
import { Waiting } from "./waiting.ts";

export interface Patience {
  /** Milliseconds without an answer after which the other end counts as stopped. */
  readonly silenceMs: number;
  /** Milliseconds until a process that goes on alone tries again. */
  readonly retryMs: number;
}

export const defaultPatience: Patience = { silenceMs: 3_000, retryMs: 5_000 };

/** Between two looks for the process that takes the place of one that ended. */
const lookMs = 20;

export class SharedEngine implements Engine {
  readonly #folder: string;
  readonly #limits: EngineLimits;
  readonly #patience: Patience;
  readonly #jobs = new Set<Waiting>();
  /** Undefined while one is looked for: until then jobs wait. */
  #scheduler: Scheduler | undefined;
  #asking: Asking | undefined;
  #lease: Lock | undefined;
  #serving: Serving | undefined;
  #looking: Promise<void> = Promise.resolve();
  #beats: NodeJS.Timeout | undefined;
  readonly #closing = new AbortController();

  /** @param folder of the store's locks */
  constructor(folder: string, limits: EngineLimits, patience: Patience = defaultPatience) {
    this.#folder = folder;
    this.#limits = limits;
    this.#patience = patience;
    if (!this.#takeLease()) this.#looking = this.#look(false);
  }

  run<T>(request: JobRequest, work: () => Promise<T>): Job<T> {
    const job: Waiting = new Waiting(request, () => {
      if (job.ended) this.#jobs.delete(job);
      this.#keepAwake();
    });
    this.#jobs.add(job);
    // Whoever grants is only told of it.
    if (request.kind === "restore") job.grant();
    if (this.#scheduler !== undefined) job.askAt(this.#scheduler);
    const result = job.perform(work);
    this.#keepAwake();
    return { result, promote: () => job.promote(), waitedMs: () => job.waitedMs() };
  }

  hurry(environment: string): void {
    for (const job of this.#jobs) if (job.request.environment === environment) job.promote();
  }

  room(environment: string, waiting: number): Promise<void> | undefined {
    const ahead = [...this.#jobs].filter(
      ({ request, waits }) => waits && request.kind === "persist" && request.environment === environment,
    );
    if (ahead.length <= waiting) return undefined;
    const before = ahead.slice(0, ahead.length - waiting);
    for (const job of before) job.promote();
    return Promise.all(before.map(({ begun }) => begun)).then(() => {});
  }

  async close(): Promise<void> {
    this.#closing.abort();
    clearInterval(this.#beats);
    await this.#looking;
    const asking = this.#asking;
    this.#asking = undefined;
    asking?.close();
    await this.#serving?.close();
    this.#lease?.release();
  }

  /** True when this process grants from now on. */
  #takeLease(): boolean {
    let lease: Lock | undefined;
    try {
      lease = tryLease(this.#folder);
    } catch {
      // A full disk, or a file there that is none of ours.
      return false;
    }
    if (lease === undefined) return false;
    this.#lease = lease;
    const queue = this.#scheduler instanceof Queue ? this.#scheduler : new Queue(this.#limits);
    if (queue !== this.#scheduler) this.#use(queue);
    this.#tell({ role: "grants" });
    this.#serving = serveLease(this.#folder, queue, this.#patience, (error) =>
      this.#tell({ role: "grants", reason: "unreachable", error }),
    );
    return true;
  }

  /** Until this process grants or another grants to it. */
  async #look(alone: boolean): Promise<void> {
    const { silenceMs, retryMs } = this.#patience;
    const { signal } = this.#closing;
    const deadline = performance.now() + silenceMs;
    for (let first = true; !signal.aborted; first = false) {
      // Who goes on alone has just tried.
      if (!(first && alone)) {
        if (this.#takeLease()) return;
        const refused = await this.#ask();
        if (refused === undefined) return;
        if (!alone && (refused !== "nobody" || performance.now() > deadline)) {
          alone = true;
          this.#goAlone(refused);
        }
      }
      const pause = alone ? retryMs : lookMs * (1 + Math.random());
      await sleep(pause, undefined, { signal, ref: false }).catch(() => {});
    }
  }

  /** Undefined when another process grants to this one from now on. */
  async #ask(): Promise<Refusal | undefined> {
    let asking: Asking | undefined;
    let gone: Refusal | undefined;
    const asked = await askLease(this.#folder, this.#patience.silenceMs, (why) => {
      gone = why;
      if (asking !== undefined) this.#lost(asking, why);
    });
    if (typeof asked === "string") return asked;
    if (gone !== undefined) return gone;
    if (this.#closing.signal.aborted) {
      asked.close();
      return undefined;
    }
    asking = asked;
    this.#asking = asking;
    this.#use(asking);
    this.#tell({ role: "asks" });
    return undefined;
  }

  #lost(asking: Asking, why: Refusal): void {
    if (this.#asking !== asking) return;
    this.#asking = undefined;
    this.#scheduler = undefined;
    asking.close();
    const alone = why !== "nobody";
    if (alone) this.#goAlone(why);
    this.#looking = this.#look(alone);
  }

  #goAlone(reason: Refusal): void {
    this.#tell({ role: "alone", reason });
    this.#use(new Queue(this.#limits));
  }

  #use(scheduler: Scheduler): void {
    this.#scheduler = scheduler;
    for (const job of [...this.#jobs]) job.askAt(scheduler);
  }

  #tell(event: Omit<EngineEvent, "locks">): void {
    reportEngine({ locks: this.#folder, ...event });
  }

  /** While a job of its own waits the process lives, and asks whether the one that grants does. */
  #keepAwake(): void {
    let waits = false;
    for (const job of this.#jobs) if (job.waits) waits = true;
    if (waits === (this.#beats !== undefined) || this.#closing.signal.aborted) return;
    clearInterval(this.#beats);
    this.#beats = waits ? setInterval(() => this.#beat(), this.#patience.silenceMs / beatsInSilence) : undefined;
  }

  #beat(): void {
    const asking = this.#asking;
    if (asking?.beat() === false) this.#lost(asking, "silent");
  }
}
