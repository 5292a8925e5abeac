// Stored trees: loading, comparing two of them, and the objects they need.
import type { Hash, ObjectReader } from "../../store/objects.ts";
import { differingItems, readSequence, sequenceObjects } from "../../store/sequence.ts";
import type { FileChanges } from "../environment.ts";
import { contentObjects } from "./content.ts";
import { decodeEntry, type Entry, entryType, sameContent, sameMetadata } from "./entry.ts";
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
}

const byName = (a: Entry, b: Entry): number => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);

/**
 * Where two trees differ, parents before children. A directory that differs only inside is yielded too; what lies below a directory that only one side has is
 * yielded entry by entry.
 */
export function* compareTrees(
  objects: ObjectReader,
  from: Entry | null,
  to: Entry | null,
  path: RawPath = "",
): Generator<Difference> {
  yield { path, from, to };
  // What lies below a folder that could not be read is unknown, neither come nor gone.
  if (from?.type === entryType.unread || to?.type === entryType.unread) return;
  const before = from?.type === entryType.directory ? from.content : null;
  const after = to?.type === entryType.directory ? to.content : null;
  const { from: left, to: right } = childrenThatDiffer(objects, before, after);
  for (let i = 0, j = 0; i < left.length || j < right.length; ) {
    const a = left[i];
    const b = right[j];
    const order = a === undefined ? 1 : b === undefined ? -1 : byName(a, b);
    if (order <= 0) i++;
    if (order >= 0) j++;
    const one = order <= 0 ? (a as Entry) : null;
    const other = order >= 0 ? (b as Entry) : null;
    if (one !== null && other !== null && sameContent(one, other) && sameMetadata(one, other)) continue;
    yield* compareTrees(objects, one, other, join(path, (one ?? (other as Entry)).name));
  }
}

function childrenThatDiffer(objects: ObjectReader, from: Hash | null, to: Hash | null): { from: Entry[]; to: Entry[] } {
  const listed = (hash: Hash | null): Entry[] =>
    hash === null ? [] : [...readSequence(objects, hash)].map(decodeEntry);
  if (from === null || to === null) return { from: listed(from), to: listed(to) };
  const items = differingItems(objects, from, to);
  const left = items.from.map(decodeEntry);
  const right = items.to.map(decodeEntry);
  return { from: left.sort(byName), to: right.sort(byName) };
}

const emptyContents = new Set([0]);

/** The net effect in words of the contract (environment.ts). `ignore` leaves a path out. */
export function summarize(differences: Iterable<Difference>): FileChanges {
  const added: Difference[] = [];
  const removed: Difference[] = [];
  const changed: string[] = [];
  const mode: string[] = [];
  const type: string[] = [];
  for (const difference of differences) {
    const { path, from, to } = difference;
    if (from?.type === entryType.unread || to?.type === entryType.unread) continue;
    if (from === null) added.push(difference);
    else if (to === null) removed.push(difference);
    else if (from.type !== to.type) type.push(display(path));
    else if (from.type !== entryType.directory && !sameContent(from, to)) changed.push(display(path));
    else if (!sameMetadata(from, to) && path !== "") mode.push(display(path));
  }
  const renamed = pairRenames(removed, added);
  const gone = new Set(renamed.map((one) => one.from));
  const come = new Set(renamed.map((one) => one.to));
  return {
    added: added.map((one) => display(one.path)).filter((path) => !come.has(path)),
    removed: removed.map((one) => display(one.path)).filter((path) => !gone.has(path)),
    changed,
    mode,
    type,
    renamed,
  };
}

/** Only where nothing else could be meant: one file left, one came, with the same content and time. */
function pairRenames(removed: readonly Difference[], added: readonly Difference[]): { from: string; to: string }[] {
  const key = (entry: Entry | null): string | undefined =>
    entry === null || entry.type !== entryType.file || emptyContents.has(entry.size)
      ? undefined
      : `${entry.content?.toString("hex")} ${entry.mtimeNs} ${entry.mode}`;
  const index = (list: readonly Difference[], side: "from" | "to"): Map<string, RawPath[]> => {
    const map = new Map<string, RawPath[]>();
    for (const one of list) {
      const found = key(one[side]);
      if (found !== undefined) map.set(found, [...(map.get(found) ?? []), one.path]);
    }
    return map;
  };
  const left = index(removed, "from");
  const right = index(added, "to");
  const pairs: { from: string; to: string }[] = [];
  for (const [content, sources] of left) {
    const targets = right.get(content);
    if (sources.length === 1 && targets?.length === 1) {
      pairs.push({ from: display(sources[0] as RawPath), to: display(targets[0] as RawPath) });
    }
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
