// Whether anything can have happened in a tree of processes, as the kernel's counters tell it.
import { reportLoss } from "../../events.ts";
import { counterNames } from "./counters.ts";
import { type Connection, type CounterName, type Effects, type EffectsWatch, openEffects } from "./effects.ts";

/** How often a thread was given a processor says nothing: it may have been woken to wait on. What a tracer broke and losses are judged by themselves; connections are made by calls. */
const apart: readonly string[] = ["scheduled", "broken", "takenUp", "lost", "connect", "inode"];
/** Whatever moves one of these may have changed something. */
const telling = counterNames.filter((name) => !apart.includes(name)) as CounterName[];

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
    return new OpenActivity(await mine.effects, close);
  } catch (error) {
    close();
    throw error;
  }
}

class OpenActivity {
  readonly close: () => void;
  readonly #effects: Effects;
  readonly #trees = new Set<TreeWatch>();
  readonly #left: Connection[] = [];

  constructor(effects: Effects, close: () => void) {
    this.#effects = effects;
    this.close = close;
  }

  watch(group: string, tracers: string): TreeWatch {
    const made = new TreeWatch(group, this.#effects.watch({ cgroup: group, tracers }), () => {
      if (this.#trees.delete(made)) this.#left.push(...made.takeConnections());
    });
    this.#trees.add(made);
    return made;
  }

  takeContacts(): { address: string; port: number }[] {
    const found = [...this.#left.splice(0), ...[...this.#trees].flatMap((tree) => tree.takeConnections())];
    return found.map(({ address, port }) => ({ address, port }));
  }
}

class TreeWatch {
  readonly #watch: EffectsWatch;
  readonly #closes: () => void;
  readonly #group: string;
  #lost = 0n;

  constructor(group: string, watch: EffectsWatch, closes: () => void) {
    this.#group = group;
    this.#lost = watch.lost();
    this.#watch = watch;
    this.#closes = closes;
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
    const lost = this.#losses();
    for (const { waits } of this.#watch.threads().values()) if (!waits) return undefined;
    return [...telling.map((name) => counters[name]), lost];
  }

  isQuiet(since: readonly (bigint | string)[]): boolean {
    if (this.#watch.running() > 0) return false;
    const counters = this.#watch.counters();
    if (counters.broken !== counters.takenUp) return false;
    return telling.every((name, at) => counters[name] === since[at]) && this.#losses() === since.at(-1);
  }

  #losses(): bigint {
    const lost = this.#watch.lost();
    if (lost > this.#lost) reportLoss({ watcher: "ebpf", path: this.#group });
    this.#lost = lost;
    return lost;
  }

  takeConnections(): Connection[] {
    return this.#watch.takeConnections();
  }

  close(): void {
    this.#closes();
    this.#watch.close();
  }
}
