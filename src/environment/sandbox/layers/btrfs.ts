// Layers on a btrfs: the live folder is a subvolume, a state is a read-only snapshot of it.
import { closeSync, constants, openSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { asWriteFailure, RewindError } from "../../../errors.ts";
import { fault } from "../../../faults.ts";
import type { Native, SubvolumeInfo } from "../../../native.ts";
import { makeFolder, removeFolder } from "../../../store/io.ts";
import { display } from "../../directory/names.ts";
import { removeFolder as removeTree } from "../../directory/remove.ts";
import type { Problem } from "../../environment.ts";
import { areSame, decodeDifferences, decodeSide } from "./difference.ts";
import type { LayerDifference, LayerEntry, LayerSnapshot, Layers, SnapshotOptions } from "./layers.ts";
import { readAll, readFile } from "./read-all.ts";
import {
  commonState,
  type LiveName,
  makeLive,
  makeState,
  parseLive,
  parseState,
  type StateName,
} from "./state-name.ts";

/*
 * In the sandbox's folder (F-61): `live-N…`, where the highest N is the live folder and the others are about to go, and `states`. A state and a live folder are each made by one
 * call, whole or not at all.
 *
 * Whether anything changed is told by the transaction that last changed an inode of the subvolume: a snapshot inherits the number, and neither taking one nor reading moves it. The
 * subvolume's generation would not do: a snapshot moves it. The number in memory would not do either, since dirty pages are not in it before they are written; so the snapshot is
 * taken, which writes them, and given up again where nothing changed. An overlay touches its workdir when it is mounted, and marks of its own when it is read: where inodes were touched
 * and no byte was written, what they lead to is compared.
 */

export interface BtrfsOptions {
  readonly native: Native;
  /** The sandbox's own, on a btrfs mounted noatime; made when it is not there. */
  readonly folder: string;
  /** Is there room, and is the file system sound? Throws when not. */
  readonly check: () => void;
}

/** Above this a look at what was touched would take longer than another state does harm. */
const mostTouched = 256;

/** What the live folder is compared with. */
interface Base {
  readonly state: StateName;
  readonly made: number;
  /** Numbers of the last change with which a subvolume is this state. */
  readonly changed: Set<number>;
}

export async function openBtrfsLayers(options: BtrfsOptions): Promise<Layers> {
  const { folder } = options;
  try {
    makeFolder(join(folder, "states"), 0o700);
    const layers = new BtrfsLayers(options);
    await layers.begin();
    return layers;
  } catch (error) {
    throw asWriteFailure(error, folder);
  }
}

class BtrfsLayers implements Layers {
  readonly kind = "btrfs";
  readonly #native: Native;
  readonly #folder: string;
  readonly #check: () => void;
  readonly #states = new Map<string, StateName>();
  #order = 0;
  #live: LiveName = makeLive(0, undefined);
  #base: Base | undefined;
  #last: Promise<unknown> = Promise.resolve();
  /** Old live folders on their way out. */
  readonly #leaving = new Set<Promise<void>>();

  constructor({ native, folder, check }: BtrfsOptions) {
    this.#native = native;
    this.#folder = folder;
    this.#check = check;
  }

  async begin(): Promise<void> {
    for (const name of readdirSync(this.#statesFolder)) {
      const state = parseState(name);
      if (state !== undefined) this.#states.set(name, state);
    }
    const states = [...this.#states.values()];
    this.#order = states.reduce((highest, state) => Math.max(highest, state.order), 0);
    const lives = readdirSync(this.#folder)
      .map(parseLive)
      .filter((one) => one !== undefined);
    const [live, ...old] = lives.sort((a, b) => b.number - a.number);
    if (live === undefined) {
      const first = states.reduce((highest, state) => Math.max(highest, state.live), 0) + 1;
      this.#live = await this.#makeLive(first, undefined);
    } else this.#live = live;
    for (const one of old) this.#leave(one);
    const own = states.filter((state) => state.live === this.#live.number).sort((a, b) => b.order - a.order);
    const from = this.#live.from === undefined ? undefined : this.#states.get(this.#live.from);
    const base = own[0] ?? from;
    this.#base = base === undefined ? undefined : await this.#baseOf(base);
  }

  get #statesFolder(): string {
    return join(this.#folder, "states");
  }

  get kept(): string {
    return join(this.#folder, "kept");
  }

  live(): string {
    return join(this.#folder, this.#live.text);
  }

  snapshot({ besides }: SnapshotOptions = {}): Promise<LayerSnapshot> {
    return this.#inTurn(() =>
      this.#within(this.live(), async (live) => {
        this.#check();
        const origin = this.#live.from === undefined ? 0 : (parseState(this.#live.from)?.order ?? 0);
        const state = makeState(this.#live.number, this.#order + 1, origin);
        await this.#within(this.#statesFolder, (states) =>
          this.#native.makeSnapshot(live, states, Buffer.from(state.text), 1),
        );
        this.#order = state.order;
        this.#states.set(state.text, state);
        fault("layers.snapshot-made");
        const problems = (await this.#native.innerSubvolumes(live)).map((path) => ({
          path: path.toString("latin1"),
          reason: "a subvolume of its own, which is in no state",
        }));
        return this.#within(this.#pathOf(state.text), async (made) => {
          const info = await this.#native.subvolumeInfo(made);
          const base = this.#base;
          const known = base?.changed.has(info.changed) === true;
          const { inodes, bytes } = known
            ? { inodes: [], bytes: 0 }
            : await this.#native.changedInodes(made, base?.made ?? 0);
          const maySame = known || bytes === 0 || besides !== undefined;
          if (base !== undefined && maySame && (known || (await this.#isSame(base, made, inodes.length, besides)))) {
            if (besides === undefined) base.changed.add(info.changed);
            await this.#remove(state);
            return { name: base.state.text, bytes: 0, problems };
          }
          this.#base = { state, made: info.made, changed: new Set([info.changed]) };
          return { name: state.text, bytes, problems };
        });
      }),
    );
  }

  /** Inodes were touched and no file was written: an overlay was mounted, or something was done and taken back. */
  async #isSame(base: Base, made: number, touched: number, besides: SnapshotOptions["besides"]): Promise<boolean> {
    if (touched > mostTouched) return false;
    return this.#within(this.#pathOf(base.state.text), async (before) =>
      areSame(await this.#native.compareTrees(before, made, base.made), besides),
    );
  }

  async sync(name: string): Promise<void> {
    // The call that made the state has waited for its transaction already.
    const { made } = await this.#infoOf(this.#require(name));
    await this.#within(this.#statesFolder, (states) => this.#native.waitForTransaction(states, made));
  }

  reset(name: string | null, end?: () => Promise<void>): Promise<void> {
    return this.#inTurn(async () => {
      const state = name === null ? undefined : this.#require(name);
      this.#check();
      const base = state === undefined ? undefined : await this.#baseOf(state);
      const [old, next] = [this.#live, await this.#makeLive(this.#live.number + 1, state)];
      fault("layers.reset-made");
      try {
        await end?.();
      } catch (error) {
        await this.#removeFrom(this.#folder, next.text);
        throw error;
      }
      this.#live = next;
      this.#base = base;
      this.#leave(old);
    });
  }

  async *diff(from: string, to: string): AsyncGenerator<LayerDifference> {
    const [one, other] = [this.#require(from), this.#require(to)];
    if (one === other) return;
    const common = commonState(this.#states.values(), one, other);
    const since = common === undefined ? -1 : (await this.#infoOf(common)).made;
    const records = await this.#within(this.#pathOf(from), (before) =>
      this.#within(this.#pathOf(to), (after) => this.#native.compareTrees(before, after, since)),
    );
    yield* decodeDifferences(records);
  }

  async look(name: string, path: string): Promise<LayerEntry | null> {
    const side = await this.#within(this.#pathOf(this.#require(name).text), (state) =>
      this.#native.lookAt(state, Buffer.from(path, "latin1")),
    );
    return side.length === 0 ? null : decodeSide(side, 0);
  }

  async *read(name: string, path: string): AsyncGenerator<Uint8Array> {
    const root = openSync(this.#pathOf(this.#require(name).text), constants.O_RDONLY | constants.O_DIRECTORY);
    try {
      const fd = this.#native.open(root, Buffer.from(path, "latin1"), constants.O_RDONLY | constants.O_NONBLOCK, 0);
      try {
        yield* readFile(fd);
      } finally {
        closeSync(fd);
      }
    } finally {
      closeSync(root);
    }
  }

  folder(name: string): string | undefined {
    return this.has(name) ? this.#pathOf(name) : undefined;
  }

  has(name: string): boolean {
    return this.#states.has(name);
  }

  names(): string[] {
    return [...this.#states.values()].sort((a, b) => a.order - b.order).map((state) => state.text);
  }

  drop(name: string): Promise<void> {
    return this.#inTurn(async () => {
      const state = this.#states.get(name);
      if (state === undefined) return;
      if (this.#base?.state === state) this.#base = undefined;
      await this.#remove(state);
      fault("layers.dropped");
    });
  }

  async verify(name: string): Promise<Problem[]> {
    const state = this.#states.get(name);
    if (state === undefined) return [{ path: name, reason: "the state is not there" }];
    // Each read is checked against its checksum.
    return readAll(this.#pathOf(name));
  }

  fork(name: string, folder: string): Promise<Layers> {
    const state = this.#require(name);
    return this.#inTurn(async () => {
      this.#check();
      const states = join(folder, "states");
      makeFolder(states, 0o700);
      const copy = (from: string, into: string, as: string, readOnly: number): Promise<void> =>
        this.#within(from, (source) =>
          this.#within(into, (target) => this.#native.makeSnapshot(source, target, Buffer.from(as), readOnly)),
        );
      await copy(this.#pathOf(name), states, name, 1);
      fault("layers.forked");
      // The live folder comes last: without it the fork has not been made.
      await copy(join(states, name), folder, makeLive(state.live + 1, name).text, 0);
      return openBtrfsLayers({ native: this.#native, folder, check: this.#check });
    });
  }

  discard(): Promise<void> {
    return this.#inTurn(async () => {
      await Promise.all(this.#leaving);
      for (const state of [...this.#states.values()]) await this.#remove(state);
      await this.#removeFrom(this.#folder, this.#live.text);
      await removeTree(this.kept);
      removeFolder(this.#statesFolder);
      removeFolder(this.#folder);
    });
  }

  async close(): Promise<void> {
    await this.#last;
    await Promise.all(this.#leaving);
  }

  async #makeLive(number: number, from: StateName | undefined): Promise<LiveName> {
    const live = makeLive(number, from?.text);
    const name = Buffer.from(live.text);
    await this.#within(this.#folder, (folder) =>
      from === undefined
        ? this.#native.makeSubvolume(folder, name)
        : this.#within(this.#pathOf(from.text), (state) => this.#native.makeSnapshot(state, folder, name, 0)),
    );
    return live;
  }

  /** An old live folder goes in the background; what a kill or a failure leaves, the next open removes. */
  #leave(old: LiveName): void {
    const gone = this.#removeFrom(this.#folder, old.text)
      .then(() => fault("layers.reset-done"))
      .catch(() => {})
      .finally(() => this.#leaving.delete(gone));
    this.#leaving.add(gone);
  }

  async #remove(state: StateName): Promise<void> {
    await this.#removeFrom(this.#statesFolder, state.text);
    this.#states.delete(state.text);
  }

  #removeFrom(folder: string, name: string): Promise<void> {
    return this.#within(folder, (fd) => this.#native.removeSubvolume(fd, Buffer.from(name)));
  }

  async #baseOf(state: StateName): Promise<Base> {
    const { made, changed } = await this.#infoOf(state);
    return { state, made, changed: new Set([changed]) };
  }

  #infoOf(state: StateName): Promise<SubvolumeInfo> {
    return this.#within(this.#pathOf(state.text), (fd) => this.#native.subvolumeInfo(fd));
  }

  #pathOf(name: string): string {
    return join(this.#statesFolder, name);
  }

  #require(name: string): StateName {
    const state = this.#states.get(name);
    if (state !== undefined) return state;
    throw new RewindError("NOT_RESTORABLE", `The state ${display(name)} of the sandbox's files is not there.`, {
      hint: "Choose another checkpoint.",
    });
  }

  /** One after the other; also behind one that has failed. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => {});
    return done.catch((error: unknown) => {
      throw asWriteFailure(error, this.#folder);
    });
  }

  async #within<T>(folder: string, work: (fd: number) => Promise<T>): Promise<T> {
    const fd = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY);
    try {
      return await work(fd);
    } finally {
      closeSync(fd);
    }
  }
}
