// One job from the call until its work is done, whoever grants it meanwhile.
import { performance } from "node:perf_hooks";
import { RewindError } from "../../errors.ts";
import { reportGranted, reportPromoted } from "../../events.ts";
import type { JobRequest, Place, Scheduler } from "./engine.ts";

export class Waiting {
  readonly request: JobRequest;
  readonly #changed: () => void;
  readonly #start = performance.now();
  #waited: number | undefined;
  #promoted: boolean;
  #ended = false;
  #place: Place | undefined;
  #turn: { readonly come: Promise<void>; take(): void; giveUp(why: Error): void } | undefined;

  /** @param changed its turn has come, or it has ended */
  constructor(request: JobRequest, changed: () => void) {
    this.request = request;
    this.#promoted = request.promoted ?? false;
    this.#changed = changed;
  }

  get waits(): boolean {
    return this.#waited === undefined && !this.#ended;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Resolves when it waits no more. */
  get begun(): Promise<void> {
    return this.#turn?.come.catch(() => {}) ?? Promise.resolve();
  }

  /** The scheduler before, if there was one, is not asked any more. */
  askAt(scheduler: Scheduler): void {
    const { kind, environment, device } = this.request;
    const ticket = { kind, environment, device, promoted: this.#promoted, running: !this.waits };
    this.#place = scheduler.ask(ticket, () => this.grant());
  }

  grant(): void {
    if (!this.waits) return;
    this.#waited = performance.now() - this.#start;
    const { kind, environment } = this.request;
    reportGranted({ job: kind, environment, waitedMs: this.#waited, promoted: this.#promoted });
    this.#turn?.take();
    this.#changed();
  }

  promote(): void {
    if (this.#promoted || !this.waits) return;
    this.#promoted = true;
    const { kind, environment } = this.request;
    reportPromoted({ job: kind, environment, waitedMs: this.waitedMs() });
    this.#place?.promote();
  }

  waitedMs(): number {
    return this.#waited ?? performance.now() - this.#start;
  }

  async perform<T>(work: () => Promise<T>): Promise<T> {
    try {
      if (this.waits) await this.#itsTurn();
      return await work();
    } finally {
      this.#ended = true;
      this.#place?.end();
      this.#changed();
    }
  }

  async #itsTurn(): Promise<void> {
    let take = (): void => {};
    let giveUp = (_: Error): void => {};
    const come = new Promise<void>((resolve, reject) => {
      take = resolve;
      giveUp = reject;
    });
    this.#turn = { come, take, giveUp };
    const { signal } = this.request;
    const onAbort = (): void => giveUp(givenUp(signal?.reason));
    signal?.addEventListener("abort", onAbort);
    if (signal?.aborted === true) onAbort();
    try {
      await come;
    } finally {
      signal?.removeEventListener("abort", onAbort);
    }
  }
}

const givenUp = (cause: unknown): RewindError =>
  new RewindError("CAPTURE_FAILED", "The capture was given up before its turn came.", {
    hint: "Nothing was changed; try again without the signal.",
    cause,
  });
