// What a program leaves running. A process counts as left when whoever started it has gone, or when it outlives the stretch in which it was started by another one: else it is a command that waits.

export interface LiveProcess {
  /** Differs from that of every other process, also of those that had its number before. */
  readonly key: string;
  /** Who started it has gone. */
  readonly orphan: boolean;
}

/** Whether a stretch has left something running, or ended something that was. */
export interface StandingChange {
  /** The stretch that ends now. */
  readonly now: boolean;
  /** The one before: what it started runs on. */
  readonly before: boolean;
}

export class Standing {
  readonly #standing = new Set<string>();
  #fresh = new Set<string>();

  /** @param alive what runs at the end of a stretch. @param last the program itself has ended: what runs on was left by it */
  stretch(alive: readonly LiveProcess[], last = false): StandingChange {
    const here = new Set(alive.map(({ key }) => key));
    const ended = [...this.#standing].filter((key) => !here.has(key));
    const outlived = [...this.#fresh].filter((key) => here.has(key));
    const known = new Set([...this.#standing, ...outlived]);
    const left = alive.filter(({ key, orphan }) => (orphan || last) && !known.has(key)).map(({ key }) => key);
    for (const key of ended) this.#standing.delete(key);
    for (const key of [...outlived, ...left]) this.#standing.add(key);
    this.#fresh = new Set([...here].filter((key) => !this.#standing.has(key)));
    return { now: ended.length + left.length > 0, before: outlived.length > 0 };
  }
}
