// Lists stored as objects, cut into chunks by content so that equal stretches of two lists are shared (F-7).
import type { Batch, Hash, ObjectReader } from "./objects.ts";

const leafMark = 1;
const nodeMark = 2;
const leafMask = 63;
const nodeMask = 31;
const chunkLimit = 512;

export interface SequenceItem {
  readonly bytes: Uint8Array;
  /** u32 that decides whether a chunk ends behind this item. */
  readonly boundary: number;
}

interface Child {
  readonly hash: Hash;
  readonly count: number;
}

/** Stores a list; equal lists have equal names. */
export function putSequence(batch: Batch, items: Iterable<SequenceItem>): Hash {
  const level: Child[] = [];
  putLeaves(batch, items, level);
  return putNodes(batch, level);
}

/** A list of names that is in the store, with what is needed to store a longer one. */
export interface StoredSequence {
  readonly name: Hash;
  readonly length: number;
  /** Chunks of items in their order. */
  readonly leaves: readonly Child[];
}

/**
 * Stores a list of names that begins as another one.
 * @param before a list of which everything is still in the store
 * @param shared how many names at the beginning are the same
 */
export function extendSequence(
  batch: Batch,
  before: StoredSequence | undefined,
  shared: number,
  names: readonly Hash[],
): StoredSequence {
  const leaves: Child[] = [];
  let from = 0;
  for (const leaf of before?.leaves ?? []) {
    const end = from + leaf.count;
    // The last chunk of a list may end only because the list does.
    if (leaf.count === 0 || end > shared || !endsLeaf(names[end - 1] as Hash, leaf.count)) break;
    leaves.push(leaf);
    from = end;
  }
  putLeaves(batch, names.slice(from).map(named), leaves);
  return { name: putNodes(batch, leaves), length: names.length, leaves };
}

const named = (hash: Hash): SequenceItem => ({ bytes: hash, boundary: hash.readUInt32LE(0) });

const endsLeaf = (name: Hash, count: number): boolean =>
  (name.readUInt32LE(0) & leafMask) === 0 || count === chunkLimit;

function putLeaves(batch: Batch, items: Iterable<SequenceItem>, leaves: Child[]): void {
  let chunk: SequenceItem[] = [];
  const endLeaf = (): void => {
    leaves.push({ hash: batch.put(encodeLeaf(chunk)), count: chunk.length });
    chunk = [];
  };
  for (const item of items) {
    chunk.push(item);
    if ((item.boundary & leafMask) === 0 || chunk.length === chunkLimit) endLeaf();
  }
  if (chunk.length > 0 || leaves.length === 0) endLeaf();
}

function putNodes(batch: Batch, leaves: readonly Child[]): Hash {
  let level = leaves;
  while (level.length > 1) level = raise(batch, level);
  return (level[0] as Child).hash;
}

function raise(batch: Batch, children: readonly Child[]): Child[] {
  const parents: Child[] = [];
  let chunk: Child[] = [];
  const end = (): void => {
    parents.push({ hash: batch.put(encodeNode(chunk)), count: chunk.reduce((sum, child) => sum + child.count, 0) });
    chunk = [];
  };
  children.forEach((child, index) => {
    chunk.push(child);
    const atBoundary = (child.hash.readUInt32LE(0) & nodeMask) === 0 && chunk.length > 1;
    if ((atBoundary || chunk.length === chunkLimit) && index < children.length - 1) end();
  });
  end();
  return parents;
}

/** The items in order. */
export function* readSequence(objects: ObjectReader, hash: Hash): Generator<Buffer> {
  const bytes = objects.get(hash);
  if (bytes[0] === leafMark) yield* leafItems(bytes);
  else for (const child of nodeChildren(bytes)) yield* readSequence(objects, child);
}

/** What one object of a list leads to: chunks below it, or items. */
export function chunkEdges(bytes: Buffer, chunk: (hash: Hash) => void, item: (bytes: Buffer) => void): void {
  if (bytes[0] === leafMark) for (const one of leafItems(bytes)) item(one);
  else for (const child of nodeChildren(bytes)) chunk(child);
}

/** The names of every object of the list itself, not of what its items name. */
export function* sequenceObjects(objects: ObjectReader, hash: Hash): Generator<Hash> {
  yield hash;
  const bytes = objects.get(hash);
  if (bytes[0] === nodeMark) for (const child of nodeChildren(bytes)) yield* sequenceObjects(objects, child);
}

/**
 * The items of two lists outside of the chunks that they share, each in order and read as they are asked for.
 * What is shared may be given in part: a caller that pairs items by key must expect equal items in both.
 */
export function differingItems(
  objects: ObjectReader,
  from: Hash,
  to: Hash,
): { from: Iterable<Buffer>; to: Iterable<Buffer> } {
  if (from.equals(to)) return { from: [], to: [] };
  const leavesFrom = [...leaves(objects, from)];
  const leavesTo = [...leaves(objects, to)];
  const names = (list: readonly Hash[]): Set<string> => new Set(list.map((hash) => hash.toString("latin1")));
  function* unique(list: readonly Hash[], other: Set<string>): Generator<Buffer> {
    for (const hash of list) if (!other.has(hash.toString("latin1"))) yield* leafItems(objects.get(hash));
  }
  return { from: unique(leavesFrom, names(leavesTo)), to: unique(leavesTo, names(leavesFrom)) };
}

function* leaves(objects: ObjectReader, hash: Hash): Generator<Hash> {
  const bytes = objects.get(hash);
  if (bytes[0] === leafMark) yield hash;
  else for (const child of nodeChildren(bytes)) yield* leaves(objects, child);
}

function encodeLeaf(items: readonly SequenceItem[]): Buffer {
  const size = items.reduce((sum, item) => sum + 4 + item.bytes.length, 1);
  const out = Buffer.allocUnsafe(size);
  out[0] = leafMark;
  let at = 1;
  for (const { bytes } of items) {
    out.writeUInt32LE(bytes.length, at);
    out.set(bytes, at + 4);
    at += 4 + bytes.length;
  }
  return out;
}

function encodeNode(children: readonly Child[]): Buffer {
  const out = Buffer.allocUnsafe(1 + children.length * 40);
  out[0] = nodeMark;
  children.forEach((child, index) => {
    out.set(child.hash, 1 + index * 40);
    out.writeBigUInt64LE(BigInt(child.count), 1 + index * 40 + 32);
  });
  return out;
}

function* leafItems(bytes: Buffer): Generator<Buffer> {
  for (let at = 1; at < bytes.length; ) {
    const length = bytes.readUInt32LE(at);
    yield bytes.subarray(at + 4, at + 4 + length);
    at += 4 + length;
  }
}

function* nodeChildren(bytes: Buffer): Generator<Hash> {
  for (let at = 1; at < bytes.length; at += 40) yield bytes.subarray(at, at + 32);
}
