// Stored trees: loading, comparing two of them, and the objects they need.
import type { Breathe } from "../../breathe.ts";
import type { Hash, ObjectReader } from "../../store/objects.ts";
import { differingItems, readSequence, sequenceObjects } from "../../store/sequence.ts";
import type { FileChanges } from "../environment.ts";
import { contentObjects } from "./content.ts";
import { compareNames, decodeEntry, type Entry, encodeEntry, entryType, sameContent, sameMetadata } from "./entry.ts";
import { display, join, type RawPath } from "./names.ts";

export interface Snapshot {
  readonly fidelity: number;
  readonly root: Entry;
}

export function readSnapshot(objects: ObjectReader, name: string): Snapshot {
  const bytes = objects.get(Buffer.from(name, "hex"));
  return { fidelity: bytes.readUInt8(1), root: decodeEntry(bytes.subarray(2)) };
}

export interface Difference {
  readonly path: RawPath;
  readonly from: Entry | null;
  readonly to: Entry | null;
  /** `to` as it is stored. */
  readonly stored: Buffer | null;
}

/**
 * Where two trees differ, parents before children. A directory that differs only inside is yielded too; what lies below a directory that only one side has is
 * yielded entry by entry. Nothing is read before it is asked for, so that a caller can pause between two steps.
 */
export function* compareTrees(objects: ObjectReader, from: Entry | null, to: Entry | null): Generator<Difference> {
  yield { path: "", from, to, stored: to === null ? null : encodeEntry(to) };
  const open = [{ path: "", pairs: childrenThatDiffer(objects, from, to) }];
  for (let folder = open.at(-1); folder !== undefined; folder = open.at(-1)) {
    const next = folder.pairs.next();
    if (next.done === true) {
      open.pop();
      continue;
    }
    const [before, after] = next.value;
    const one = before === null ? null : decodeEntry(before);
    const other = after === null ? null : decodeEntry(after);
    if (one !== null && other !== null && sameContent(one, other) && sameMetadata(one, other)) continue;
    const path = join(folder.path, (one ?? (other as Entry)).name);
    yield { path, from: one, to: other, stored: after };
    if (one?.type === entryType.directory || other?.type === entryType.directory) {
      open.push({ path, pairs: childrenThatDiffer(objects, one, other) });
    }
  }
}

/** Entries with the same name as pairs, in the order of the names; what is equal may be left out. */
function* childrenThatDiffer(
  objects: ObjectReader,
  from: Entry | null,
  to: Entry | null,
): Generator<[Buffer | null, Buffer | null]> {
  // What lies below a folder that could not be read is unknown, neither come nor gone.
  if (from?.type === entryType.unread || to?.type === entryType.unread) return;
  const before = from?.type === entryType.directory ? from.content : null;
  const after = to?.type === entryType.directory ? to.content : null;
  const listed = (hash: Hash | null): Iterable<Buffer> => (hash === null ? [] : readSequence(objects, hash));
  const items =
    before !== null && after !== null
      ? differingItems(objects, before, after)
      : { from: listed(before), to: listed(after) };
  const left = items.from[Symbol.iterator]();
  const right = items.to[Symbol.iterator]();
  let a = left.next();
  let b = right.next();
  while (a.done !== true || b.done !== true) {
    const one: Buffer | null = a.done === true ? null : a.value;
    const other: Buffer | null = b.done === true ? null : b.value;
    const order = one === null ? 1 : other === null ? -1 : one.equals(other) ? 0 : compareNames(one, other);
    if (order <= 0) a = left.next();
    if (order >= 0) b = right.next();
    if (order === 0 && (one as Buffer).equals(other as Buffer)) continue;
    yield [order <= 0 ? one : null, order >= 0 ? other : null];
  }
}

/** The net effect in words of the contract (environment.ts), gathered while two trees are compared. */
export class Summary {
  readonly #added: Side[] = [];
  readonly #removed: Side[] = [];
  readonly #changed: RawPath[] = [];
  readonly #mode: RawPath[] = [];
  readonly #type: RawPath[] = [];

  add({ path, from, to }: Difference): void {
    if (from?.type === entryType.unread || to?.type === entryType.unread) return;
    if (from === null) this.#added.push({ path, identity: identityOf(to as Entry) });
    else if (to === null) this.#removed.push({ path, identity: identityOf(from) });
    else if (from.type !== to.type) this.#type.push(path);
    else if (from.type !== entryType.directory && !sameContent(from, to)) this.#changed.push(path);
    else if (!sameMetadata(from, to) && path !== "") this.#mode.push(path);
  }

  /** `left` are paths to leave out. */
  async changes(breathe: Breathe, left: ReadonlySet<RawPath> = new Set()): Promise<FileChanges> {
    const shown = async (paths: Iterable<RawPath>, paired?: ReadonlySet<RawPath>): Promise<string[]> => {
      const out: string[] = [];
      for (const path of paths) {
        if (!left.has(path) && paired?.has(path) !== true) out.push(display(path));
        const pause = breathe();
        if (pause !== undefined) await pause;
      }
      return out;
    };
    const renamed = await pairRenames(this.#removed, this.#added, left, breathe);
    return {
      added: await shown(pathsOf(this.#added), new Set(renamed.map((one) => one.to))),
      removed: await shown(pathsOf(this.#removed), new Set(renamed.map((one) => one.from))),
      changed: await shown(this.#changed),
      mode: await shown(this.#mode),
      type: await shown(this.#type),
      renamed: renamed.map(({ from, to }) => ({ from: display(from), to: display(to) })),
    };
  }
}

/** What one side only has. */
interface Side {
  readonly path: RawPath;
  /** Equal for files that may be one renamed; undefined for what is never paired. */
  readonly identity: string | undefined;
}

function* pathsOf(sides: readonly Side[]): Generator<RawPath> {
  for (const { path } of sides) yield path;
}

const identityOf = (entry: Entry): string | undefined =>
  entry.type !== entryType.file || entry.size === 0
    ? undefined
    : `${entry.content?.toString("latin1")} ${entry.mtimeNs} ${entry.mode}`;

/** Only where nothing else could be meant: one file left, one came, with the same content and time. */
async function pairRenames(
  removed: readonly Side[],
  added: readonly Side[],
  left: ReadonlySet<RawPath>,
  breathe: Breathe,
): Promise<{ from: RawPath; to: RawPath }[]> {
  if (removed.length === 0 || added.length === 0) return [];
  const index = async (list: readonly Side[]): Promise<Map<string, RawPath | null>> => {
    const map = new Map<string, RawPath | null>();
    for (const { path, identity } of list) {
      if (identity !== undefined && !left.has(path)) map.set(identity, map.has(identity) ? null : path);
      const pause = breathe();
      if (pause !== undefined) await pause;
    }
    return map;
  };
  const sources = await index(removed);
  const targets = await index(added);
  const pairs: { from: RawPath; to: RawPath }[] = [];
  for (const [identity, from] of sources) {
    const to = targets.get(identity);
    if (from !== null && to !== undefined && to !== null) pairs.push({ from, to });
    const pause = breathe();
    if (pause !== undefined) await pause;
  }
  return pairs;
}

/** Every object that a snapshot needs. */
export function* snapshotObjects(objects: ObjectReader, name: string): Generator<Hash> {
  yield Buffer.from(name, "hex");
  yield* treeObjects(objects, readSnapshot(objects, name).root);
}

function* treeObjects(objects: ObjectReader, folder: Entry): Generator<Hash> {
  const content = folder.content as Hash;
  yield* sequenceObjects(objects, content);
  for (const item of readSequence(objects, content)) {
    const entry = decodeEntry(item);
    if (entry.type === entryType.directory) yield* treeObjects(objects, entry);
    else if (entry.type === entryType.file) yield* contentObjects(objects, entry);
  }
}

/** The entry at `path`, or null. */
export function findEntry(objects: ObjectReader, root: Entry, path: RawPath): Entry | null {
  let at: Entry | null = root;
  if (path === "") return at;
  for (const name of path.split("/")) {
    if (at === null || at.type !== entryType.directory || at.content === null) return null;
    let next: Entry | null = null;
    for (const item of readSequence(objects, at.content)) {
      const entry = decodeEntry(item);
      if (entry.name === name) {
        next = entry;
        break;
      }
    }
    at = next;
  }
  return at;
}
