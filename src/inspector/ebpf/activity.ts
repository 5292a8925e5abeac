// Whether anything can have happened in a tree of processes, as the kernel's counters tell it.
import { type CounterName, type Effects, type EffectsWatch, openEffects } from "./effects.ts";

/** Whatever moves one of them may have changed something. How often a thread was given a processor does not: it may have been woken to wait on. */
const telling: readonly CounterName[] = [
  ...([
    "fork",
    "exec",
    "exit",
    "attached",
    "returned",
    "signal",
    "write",
    "open",
    "map",
    "name",
    "meta",
    "mount",
  ] as const),
  ...(["ipc", "peer", "uring", "aio", "unknown", "begun", "ended"] as const),
];

/** The programs stay in the kernel as long as somebody in this process needs them. */
let shared: { readonly effects: Promise<Effects>; uses: number } | undefined;

/** @throws NOT_AVAILABLE */
export async function openActivity() {
  shared ??= { effects: openEffects(), uses: 0 };
  const mine = shared;
  mine.uses++;
  let open = true;
  const close = (): void => {
    if (!open) return;
    open = false;
    if (--mine.uses > 0) return;
    if (shared === mine) shared = undefined;
    mine.effects.then(
      (effects) => effects.close(),
      () => {},
    );
  };
  try {
    const effects = await mine.effects;
    return {
      watch: (group: string, tracers: string) => new TreeWatch(effects.watch({ cgroup: group, tracers })),
      close,
    };
  } catch (error) {
    close();
    throw error;
  }
}

class TreeWatch {
  readonly #watch: EffectsWatch;

  constructor(watch: EffectsWatch) {
    this.#watch = watch;
  }

  mark(): readonly bigint[] | undefined {
    return this.beforeHold()();
  }

  beforeHold(): () => readonly bigint[] | undefined {
    const { broken, takenUp } = this.#watch.counters();
    // One that runs since an earlier hold would be taken for one that this hold has broken.
    return broken === takenUp ? () => this.#heldMark() : () => undefined;
  }

  #heldMark(): readonly bigint[] | undefined {
    const counters = this.#watch.counters();
    // Both may be carried out at any later time, without a thread.
    if (counters.begun !== counters.ended || counters.aio > 0n || counters.uring > 0n) return undefined;
    const lost = this.#watch.lost();
    for (const { waits } of this.#watch.threads().values()) if (!waits) return undefined;
    return [...telling.map((name) => counters[name]), lost];
  }

  isQuiet(since: readonly bigint[]): boolean {
    if (this.#watch.running() > 0) return false;
    const counters = this.#watch.counters();
    if (counters.broken !== counters.takenUp) return false;
    return telling.every((name, at) => counters[name] === since[at]) && this.#watch.lost() === since.at(-1);
  }

  takeContacts(): { address: string; port: number }[] {
    return this.#watch.takeConnections().map(({ address, port }) => ({ address, port }));
  }

  close(): void {
    this.#watch.close();
  }
}
