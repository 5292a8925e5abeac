// What differs between two states as the sandbox saw it: the overlays' views, not their upper folders.
import { closeSync, read } from "node:fs";
import { promisify } from "node:util";
import { type Breathe, makeBreather } from "../../breathe.ts";
import type { Native } from "../../native.ts";
import { type Entry, entryType } from "../directory/entry.ts";
import { join, type RawPath } from "../directory/names.ts";
import { Summary } from "../directory/tree.ts";
import type { FileChanges } from "../environment.ts";
import { inFolder, innermost } from "./inside.ts";
import type { LayerDifference, LayerEntry, Layers } from "./layers/layers.ts";
import { type Lower, openLower } from "./lower.ts";
import { Merged, type Shown } from "./merged.ts";

/** A folder below the live folder that the sandbox sees. */
export interface LayerRoot {
  /** Below the live folder, as a difference's path: an overlay's upper folder, or one that is mounted as it is. */
  readonly layer: RawPath;
  /** Where the sandbox sees it, absolute, in the same form. */
  readonly at: RawPath;
  /** Of an overlay: the host's paths of what lies below it, the topmost first. */
  readonly lowers?: readonly string[];
}

export interface ChangesOptions {
  readonly native: Native;
  readonly layers: Layers;
  readonly roots: readonly LayerRoot[];
  /** Absolute, as the sandbox sees it. What is below it is told relative to it, everything else with its absolute path. */
  readonly workspace: RawPath;
}

/** The lower folders are taken to be as they were at both states. Extended attributes of a file that was copied up are not compared. */
export async function fileChanges(options: ChangesOptions, from: string, to: string): Promise<FileChanges> {
  const { native, layers, roots } = options;
  const breathe = makeBreather();
  const differences = await byRoot(layers.diff(from, to), roots);
  const found: Change[] = [];
  for (const [root, below] of differences) {
    const lower = root.lowers === undefined ? undefined : openLower(native, root.lowers);
    try {
      const comparison = new Comparison({ layers, from, to, root, lower, below, breathe });
      for (const change of await comparison.changes()) {
        const path = inFolder(root.at, change.path);
        if (rootOf(roots, path) === root) found.push({ ...change, path: told(path, options.workspace) });
        const pause = breathe();
        if (pause !== undefined) await pause;
      }
    } finally {
      lower?.close();
    }
  }
  const summary = new Summary();
  for (const { path, before, after } of found) {
    if (path !== "") summary.add({ path, from: before, to: after, stored: null });
    const pause = breathe();
    if (pause !== undefined) await pause;
  }
  return summary.changes(breathe);
}

interface Change {
  readonly path: RawPath;
  readonly before: Entry | null;
  readonly after: Entry | null;
  /** Where one of the two is null: from where the other is. */
  readonly from?: Shown["from"];
}

type Differences = Map<RawPath, LayerDifference>;

async function byRoot(
  differences: AsyncIterable<LayerDifference>,
  roots: readonly LayerRoot[],
): Promise<Map<LayerRoot, Differences>> {
  const found = new Map<LayerRoot, Differences>();
  for await (const one of differences) {
    const root = roots.find(({ layer }) => one.path === layer || one.path.startsWith(`${layer}/`));
    if (root === undefined) continue;
    const below = found.get(root) ?? new Map<RawPath, LayerDifference>();
    below.set(one.path.slice(root.layer.length + 1), one);
    found.set(root, below);
  }
  return found;
}

/** A path that another mount covers is that mount's. */
export const rootOf = (roots: readonly LayerRoot[], path: RawPath): LayerRoot | undefined =>
  innermost(roots, ({ at }) => at, path);

function told(path: RawPath, workspace: RawPath): RawPath {
  if (path === workspace) return "";
  const inside = workspace === "/" ? "/" : `${workspace}/`;
  return path.startsWith(inside) ? path.slice(inside.length) : path;
}

interface ComparisonOptions {
  readonly layers: Layers;
  readonly from: string;
  readonly to: string;
  readonly root: LayerRoot;
  readonly lower: Lower | undefined;
  readonly below: Differences;
  readonly breathe: Breathe;
}

class Comparison {
  readonly #options: ComparisonOptions;
  readonly #before: Merged;
  readonly #after: Merged;
  readonly #done = new Set<RawPath>();

  constructor(options: ComparisonOptions) {
    const { layers, from, to, root, lower, below } = options;
    this.#options = options;
    this.#before = new Merged(layers, from, root.layer, lower);
    this.#after = new Merged(layers, to, root.layer, lower);
    for (const [path, { before, after }] of below) {
      this.#before.know(path, before);
      this.#after.know(path, after);
    }
  }

  /** Below the root. */
  async changes(): Promise<Change[]> {
    const found: Change[] = [];
    for await (const change of this.#all()) found.push(change);
    await this.#pairCopiedUp(found);
    return found;
  }

  /** An overlay renames a file of the lower layer by copying it up: where size, time and mode leave one candidate only, the bytes decide. */
  async #pairCopiedUp(found: Change[]): Promise<void> {
    const candidates = new Map<string, { lower: number[]; upper: number[] }>();
    for (const [index, { before, after, from }] of found.entries()) {
      const entry = before ?? after;
      if (from === undefined || entry?.type !== entryType.file || entry.size === 0) continue;
      const key = `${entry.size} ${entry.mtimeNs} ${entry.mode}`;
      const list = candidates.get(key) ?? { lower: [], upper: [] };
      list[from].push(index);
      candidates.set(key, list);
    }
    for (const { lower, upper } of candidates.values()) {
      const [one, other] = [found[lower[0] as number], found[upper[0] as number]];
      if (lower.length !== 1 || upper.length !== 1 || one === undefined || other === undefined) continue;
      if ((one.before === null) === (other.before === null)) continue;
      const state = other.before === null ? this.#options.to : this.#options.from;
      if (!(await this.#sameBytes(one.path, other.path, state))) continue;
      const content = (one.before ?? one.after)?.content ?? null;
      const renamed = (entry: Entry | null): Entry | null => entry && { ...entry, content };
      found[upper[0] as number] = { ...other, before: renamed(other.before), after: renamed(other.after) };
    }
  }

  async *#all(): AsyncGenerator<Change> {
    const { below, lower, breathe } = this.#options;
    for (const path of below.keys()) {
      yield* this.#look(path);
      const pause = breathe();
      if (pause !== undefined) await pause;
      // The lower folder's entries came into sight or went out of it, whatever the upper one holds beside them.
      if (lower === undefined || (await this.#before.showsBelow(path)) === (await this.#after.showsBelow(path)))
        continue;
      const waiting = [path];
      for (let folder = waiting.pop(); folder !== undefined; folder = waiting.pop()) {
        for (const { name, directory } of lower.list(folder)) {
          const child = join(folder, name);
          yield* this.#look(child);
          if (directory) waiting.push(child);
          const pause = breathe();
          if (pause !== undefined) await pause;
        }
      }
    }
  }

  async *#look(path: RawPath): AsyncGenerator<Change> {
    if (this.#done.has(path)) return;
    this.#done.add(path);
    const [before, after] = [await this.#before.shown(path), await this.#after.shown(path)];
    if (before === null && after === null) return;
    if (before === null || after === null) {
      const only = (shown: Shown | null): Entry | null =>
        shown === null ? null : entryOf(shown, this.#token(path, shown));
      yield { path, before: only(before), after: only(after), from: (before ?? (after as Shown)).from };
      return;
    }
    if (before.from === "lower" && after.from === "lower") return;
    const same = await this.#sameContent(path, before, after);
    const attributes = same && this.#options.below.get(path)?.differs === "metadata" && before.from === after.from;
    yield { path, before: entryOf(before, "1"), after: entryOf(after, same ? "1" : "2", attributes) };
  }

  /** Equal for files that may be one under two names. */
  #token(path: RawPath, { entry, from }: Shown): string {
    if (entry.content !== undefined) return entry.content;
    return from === "upper" && entry.inode !== 0n ? `inode ${entry.inode} ${entry.size}` : `${from} ${path}`;
  }

  async #sameContent(path: RawPath, before: Shown, after: Shown): Promise<boolean> {
    const [one, other] = [before.entry, after.entry];
    if (one.type !== other.type) return false;
    if (one.type === "directory") return true;
    if (before.from === after.from) return this.#options.below.get(path)?.differs !== "content";
    // Of a file that was copied up: with its time.
    if (one.size !== other.size) return false;
    if (one.type !== "file" || one.mtimeNs === other.mtimeNs) return one.mtimeNs === other.mtimeNs;
    return this.#sameBytes(path, path, before.from === "upper" ? this.#options.from : this.#options.to);
  }

  /** A file of the lower layer and one of the upper layer in a state. */
  async #sameBytes(lowerPath: RawPath, upperPath: RawPath, state: string): Promise<boolean> {
    const { layers, lower, root } = this.#options;
    if (lower === undefined) return false;
    const below = lower.open(lowerPath);
    try {
      return await holds(below, layers.read(state, join(root.layer, upperPath)));
    } finally {
      closeSync(below);
    }
  }
}

const readAside = promisify(read);

/** The file holds these bytes and no others. */
async function holds(fd: number, bytes: AsyncIterable<Uint8Array>): Promise<boolean> {
  let at = 0;
  for await (const piece of bytes) {
    const own = await readUp(fd, piece.length, at);
    if (own.compare(piece) !== 0) return false;
    at += piece.length;
  }
  return (await readUp(fd, 1, at)).length === 0;
}

async function readUp(fd: number, length: number, at: number): Promise<Buffer> {
  const buffer = Buffer.allocUnsafe(length);
  let done = 0;
  while (done < length) {
    const { bytesRead } = await readAside(fd, buffer, done, length - done, at + done);
    if (bytesRead === 0) break;
    done += bytesRead;
  }
  return buffer.subarray(0, done);
}

const types = {
  file: entryType.file,
  directory: entryType.directory,
  symlink: entryType.symlink,
  other: entryType.fifo,
  whiteout: entryType.characterDevice,
} as const satisfies Record<LayerEntry["type"], number>;

const none = Buffer.alloc(0);

/** In the directory engine's words, for its summary: what counts is which tokens are equal. */
function entryOf({ entry }: Shown, token: string, attributes = false): Entry {
  const { type, mode, uid, gid, mtimeNs, size } = entry;
  return {
    name: "",
    type: types[type],
    flags: 0,
    mode,
    uid,
    gid,
    mtimeNs,
    size,
    rdevMajor: 0,
    rdevMinor: 0,
    tail: type === "file" || type === "directory" ? "" : token,
    xattrs: attributes ? [["changed", none]] : [],
    content: type === "file" ? Buffer.from(token) : null,
  };
}
