// The lives of one sandbox, one after the other: begun with a pair, ended by a rewind or from inside, taken up again.
import { setTimeout as sleep } from "node:timers/promises";
import { isRewindError, RewindError } from "../../errors.ts";
import type { Manifest, Problem } from "../environment.ts";
import type { Layers } from "./layers/layers.ts";
import { beginLife, type Life, type LifePlan } from "./life.ts";
import type { ImageStore } from "./processes/image-store.ts";
import { bringBack, refusalOf } from "./processes/tree.ts";

export interface LivesOptions {
  readonly plan: LifePlan;
  readonly layers: Layers;
  readonly images: ImageStore;
  /** Another life has begun, with these processes that are not what they were. */
  readonly onAnew: (lost: Problem) => void;
}

export interface BeginSteps {
  /** The life that there is ends when this has settled; where it rejects, nothing has ended. */
  readonly before?: Promise<unknown>;
  /** Is called when the files are there, and before any process runs. */
  readonly put?: () => Promise<void>;
}

/** How long what is left of a life may take to end when its root has. */
const endMs = 5_000;

export class SandboxLives {
  readonly #options: LivesOptions;
  #life: Life | undefined;
  #revival: Promise<void> | undefined;

  constructor(options: LivesOptions) {
    this.#options = options;
  }

  /** Before the first one, and behind the last: undefined. */
  get present(): Life | undefined {
    return this.#life;
  }

  /** @throws SANDBOX_FAILED */
  get alive(): Life {
    if (this.#life !== undefined && !this.#life.over.aborted) return this.#life;
    throw new RewindError("SANDBOX_FAILED", "The sandbox does not run.", {
      hint: "Rewind to a checkpoint, or open the workspace again: the last pair comes back.",
    });
  }

  /** Does the work in the life that runs; once more in the next one where all of it ended meanwhile. @throws SANDBOX_FAILED */
  async inLife<T>(work: (life: Life) => Promise<T>): Promise<T> {
    try {
      return await work(this.alive);
    } catch (error) {
      if (!isRewindError(error, "SANDBOX_FAILED") || !(await this.#isOver())) throw error;
      await this.revive();
      return work(this.alive);
    }
  }

  async #isOver(): Promise<boolean> {
    const over = this.#life?.over;
    if (over === undefined) return false;
    await sleep(endMs, undefined, { signal: over }).catch(() => {});
    return over.aborted;
  }

  /** On the live folder as it is, without processes. */
  async beginEmpty(): Promise<void> {
    const { plan, layers } = this.#options;
    this.#life = await beginLife(plan, layers.live(), undefined);
  }

  /**
   * Ends the life that there is and begins the one of the manifest. Gives the processes that are not what they were.
   */
  async begin(manifest: Manifest, files: string, steps: BeginSteps = {}): Promise<readonly Problem[]> {
    // Processes that one of them ends meanwhile are the end of a restore: what fails once may succeed.
    for (let tries = 0; ; tries++) {
      try {
        return await this.#beginWith(manifest, files, steps);
      } catch (error) {
        const refused = refusalOf(error, "PROCESSES_NOT_RESTORED");
        if (refused === undefined) throw error;
        if (tries > 0) return this.#beginWith(manifest, files, steps, refused);
      }
    }
  }

  async #beginWith(
    { processes }: Manifest,
    files: string,
    { before, put }: BeginSteps,
    refused?: readonly Problem[],
  ): Promise<readonly Problem[]> {
    const { plan, layers, images } = this.#options;
    await this.#life?.commands.settle();
    await layers.reset(files, async () => {
      await before;
      await this.end();
    });
    const { life, ready } = await bringBack(plan, layers.live(), images, processes, refused);
    this.#life = life;
    await put?.();
    return ready();
  }

  /** Whoever is root inside can end everything inside: it goes on with the same files. */
  revive(): Promise<void> {
    this.#revival ??= this.#beginAnew().finally(() => {
      this.#revival = undefined;
    });
    return this.#revival;
  }

  async #beginAnew(): Promise<void> {
    if (this.#life?.over.aborted !== true) return;
    await this.#life.end();
    await this.beginEmpty();
    this.#options.onAnew({
      path: "processes",
      reason: "all of them had ended, from inside, and none was started again",
    });
  }

  async end(): Promise<void> {
    await this.#life?.end();
    this.#life = undefined;
  }
}
