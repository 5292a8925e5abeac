// A sandbox that is watched at each capture and each restore: behind a rewind all of it must be what it was at the checkpoint.
import type { Checkpoint } from "agentrewind";
import { expect } from "vitest";
import { Held } from "./held.ts";
import { differences, Oracle, resting, type State, watchMoments } from "./oracle.ts";

/** What was seen at a checkpoint. */
export interface Seen {
  readonly checkpoint: Checkpoint;
  /** In the moment of the capture. */
  readonly captured: State;
  /** Held still from outside, before the capture and behind it; nobody does that at a safety checkpoint. */
  readonly around?: readonly [before: State, behind: State];
}

export class Exact {
  readonly held: Held;
  readonly #oracle = new Oracle();
  readonly #stop: () => void;
  /** Safety checkpoints of rewinds, the newest last; undefined where nothing was captured. */
  readonly #left: (Seen | undefined)[] = [];
  #captured: State | undefined;
  #restored: State | undefined;

  private constructor(held: Held) {
    this.held = held;
    this.#stop = watchMoments(async (moment, group) => {
      const state = await this.#oracle.look(group);
      if (moment === "captured") this.#captured = state;
      else this.#restored = state;
    });
  }

  /** Every checkpoint has an image of its own moment. */
  static async open(...[sandbox, fixtures]: Parameters<typeof Held.open>): Promise<Exact> {
    return new Exact(await Held.open(sandbox, fixtures, "scan"));
  }

  async end(): Promise<void> {
    this.#stop();
    this.#oracle.end();
    await this.held.end();
  }

  look(): Promise<State> {
    return this.#oracle.lookFrozen(this.held.rewind.environment);
  }

  async capture(): Promise<Seen> {
    const before = await this.look();
    this.#captured = undefined;
    const checkpoint = await this.held.checkpoint();
    const behind = await this.look();
    const [one, other] = resting([before, behind], behind);
    expect(differences(one, other), `${checkpoint.id}, changed by its capture`).toEqual([]);
    return { checkpoint, captured: this.#captured as unknown as State, around: [before, behind] };
  }

  /** Gives the safety checkpoint, where one was made. */
  async back(to: Seen): Promise<Seen | undefined> {
    this.#captured = undefined;
    this.#restored = undefined;
    const { left, notRestored } = await this.held.back(to.checkpoint);
    expect(notRestored).toEqual([]);
    const captured = this.#captured as State | undefined;
    const seen = left === null || captured === undefined ? undefined : { checkpoint: left, captured };
    this.#left.push(seen);
    await this.#compare(to);
    return seen;
  }

  /** The last rewind, undone; nothing where there is none any more. */
  async undo(): Promise<void> {
    if (this.#left.length === 0) return;
    const to = this.#left.pop();
    this.#restored = undefined;
    await this.held.thread.undo();
    if (to !== undefined) await this.#compare(to);
  }

  forgetRewinds(): void {
    this.#left.length = 0;
  }

  async #compare({ checkpoint, captured, around }: Seen): Promise<void> {
    expect(differences(captured, this.#restored), `${checkpoint.id}, in the moment of the restore`).toEqual([]);
    if (around === undefined) return;
    const [before, after] = resting(around, await this.look());
    expect(differences(before, after), `${checkpoint.id}, behind the rewind`).toEqual([]);
  }
}
