// What a program leaves running. A process counts when it outlives the stretch in which it was started by another one: what is there at one pause alone is a command that waits.

export interface StandingChange {
  /** Something that stood has ended. */
  readonly ended: boolean;
  /** What was first seen at the pause before runs on: that stretch has left it. */
  readonly left: boolean;
}

export class Standing {
  readonly #standing = new Set<string>();
  #fresh = new Set<string>();

  /** @param alive what runs at a pause. @param last the program itself has ended: what runs on was left by it */
  pause(alive: readonly string[], last = false): StandingChange & { readonly leftNow: boolean } {
    const here = new Set(alive);
    const gone = [...this.#standing].filter((one) => !here.has(one));
    for (const one of gone) this.#standing.delete(one);
    const left = [...this.#fresh].filter((one) => here.has(one));
    for (const one of left) this.#standing.add(one);
    this.#fresh = new Set(alive.filter((one) => !this.#standing.has(one)));
    return { ended: gone.length > 0, left: left.length > 0, leftNow: last && this.#fresh.size > 0 };
  }
}
