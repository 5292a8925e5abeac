// When a program that is observed from outside is at work, and when it pauses: stretches of activity between pauses count as turns.

/** How much a tree of processes may compute, of one processor, and still count as waiting: a client that reads a model's stream does. */
const idleShare = 0.2;

export interface Activity {
  /** Milliseconds on any clock. */
  readonly at: number;
  /** Processes began or ended. */
  readonly changes: boolean;
  /** Milliseconds that they computed since the look before. */
  readonly computedMs: number;
}

/** Pure: what the clock says is given. */
export class Stretches {
  readonly #pauseMs: number;
  #looked: number;
  #active: number | undefined;

  constructor(pauseMs: number, now: number) {
    this.#pauseMs = pauseMs;
    this.#looked = now;
  }

  /** Whether something was done that no pause has ended yet. */
  get open(): boolean {
    return this.#active !== undefined;
  }

  /** @returns true where a stretch has ended with this look: since its last activity nothing was done for the length of a pause */
  look({ at, changes, computedMs }: Activity): boolean {
    const busy = changes || computedMs > idleShare * Math.max(1, at - this.#looked);
    this.#looked = at;
    if (busy) {
      this.#active = at;
      return false;
    }
    if (this.#active === undefined || at - this.#active < this.#pauseMs) return false;
    this.#active = undefined;
    return true;
  }
}
