// File contents as objects: one for a small file, a sequence of blocks for a large one and for one with holes (F-9).

import { closeSync, fstatSync, readSync } from "node:fs";
import type { Breathe } from "../../breathe.ts";
import { systemCode } from "../../errors.ts";
import { setLength, writeAll } from "../../store/io.ts";
import type { Batch, Hash, ObjectReader } from "../../store/objects.ts";
import { putSequence, readSequence, type SequenceItem, sequenceObjects } from "../../store/sequence.ts";
import {
  blockItem,
  blockSize,
  damagedBlock,
  dataStretches,
  decodeBlock,
  everyPage,
  holeItem,
  pageSize,
} from "./block.ts";
import { type Entry, entryFlag } from "./entry.ts";
import type { RawPath } from "./names.ts";
import type { Posix } from "./posix.ts";

const emptyProbe = 4096;

export interface StoredContent {
  readonly content: Hash;
  readonly flags: number;
  readonly size: number;
}

export interface ReadContent extends StoredContent {
  /** Of the inode that was read, when it was opened. */
  readonly ctimeNs: bigint;
}

const attempts = 3;

/**
 * Reads a file into the batch. One that changes while it is read is read again; after three attempts it is stored with the torn flag.
 * @throws system errors of open and read
 */
export async function storeContent(posix: Posix, path: RawPath, batch: Batch, breathe: Breathe): Promise<ReadContent> {
  for (let attempt = 1; ; attempt++) {
    const fd = posix.openRead(path);
    try {
      const before = fstatSync(fd, { bigint: true });
      const hasHoles = before.blocks * 512n < before.size;
      const stored = await storeBlocks(fd, Number(before.size), hasHoles, batch, breathe);
      const after = fstatSync(fd, { bigint: true });
      const stable =
        before.mtimeNs === after.mtimeNs && before.ctimeNs === after.ctimeNs && after.size === BigInt(stored.size);
      const { ctimeNs } = before;
      if (stable) return { ...stored, ctimeNs };
      if (attempt === attempts) return { ...stored, flags: stored.flags | entryFlag.torn, ctimeNs };
    } finally {
      closeSync(fd);
    }
  }
}

/** Node cannot ask where holes lie: in a file that has some, pages of zeros are taken for them. */
async function storeBlocks(
  fd: number,
  expected: number,
  hasHoles: boolean,
  batch: Batch,
  breathe: Breathe,
): Promise<StoredContent> {
  const blocks: SequenceItem[] = [];
  let single: Hash | undefined;
  let size = 0;
  // What a growing file has gained meanwhile is not read: its size tells, and it is read again. Some file systems say 0 and have content.
  while (size < expected || blocks.length === 0) {
    const bytes = readBlock(fd, expected === 0 ? emptyProbe : Math.min(blockSize, expected - size));
    const { length } = bytes;
    if (length === 0 && blocks.length > 0) break;
    size += length;
    const pages = hasHoles ? pagesWithContent(bytes) : everyPage;
    if (pages === 0n) {
      blocks.push(holeItem);
    } else {
      const hash = batch.put(pages === everyPage ? bytes : onlyPages(bytes, pages));
      single = blocks.length === 0 && pages === everyPage ? hash : undefined;
      blocks.push(blockItem(hash, pages));
    }
    if (length < blockSize) break;
    await breathe();
  }
  if (blocks.length === 1 && single !== undefined) return { content: single, flags: 0, size };
  return { content: putSequence(batch, blocks), flags: entryFlag.blocks, size };
}

/** Every page where none is zero, so that a block that ends early counts as whole. */
function pagesWithContent(bytes: Buffer): bigint {
  let pages = everyPage;
  for (let at = 0; at < bytes.length; at += pageSize) {
    if (isZero(bytes.subarray(at, at + pageSize))) pages &= ~(1n << BigInt(at / pageSize));
  }
  return pages === everyPage ? pages : pages & ((1n << BigInt(Math.ceil(bytes.length / pageSize))) - 1n);
}

const onlyPages = (bytes: Buffer, pages: bigint): Buffer =>
  Buffer.concat([...dataStretches(pages, bytes.length)].map(([from, to]) => bytes.subarray(from, to)));

/** A buffer of its own, since the batch keeps it; shorter than asked for at the end of the file. */
function readBlock(fd: number, wanted: number): Buffer {
  const bytes = Buffer.allocUnsafe(wanted);
  let length = 0;
  while (length < wanted) {
    const n = readSync(fd, bytes, length, wanted - length, null);
    if (n === 0) break;
    length += n;
  }
  return bytes.subarray(0, length);
}

/** Writes the content of `entry` to an empty file. */
export async function writeContent(fd: number, entry: Entry, objects: ObjectReader, breathe: Breathe): Promise<void> {
  const content = entry.content as Hash;
  if (entry.size === 0) return;
  const zerosAreHoles = (entry.flags & entryFlag.sparse) !== 0;
  const inBlocks = (entry.flags & entryFlag.blocks) !== 0;
  // Before any content: some file systems fill gaps when a file grows by writing behind its end.
  if (inBlocks || zerosAreHoles) setLength(fd, entry.size);
  const write = zerosAreHoles ? writeContentOnly : writeAll;
  if (!inBlocks) return write(fd, objects.get(content), 0);
  let position = 0;
  for (const item of readSequence(objects, content)) {
    const block = decodeBlock(item);
    if (block.content !== null) {
      const bytes = objects.get(block.content);
      if (block.pages === everyPage) write(fd, bytes, position);
      else writePages(fd, bytes, position, [...dataStretches(block.pages, Math.min(blockSize, entry.size - position))]);
    }
    position += blockSize;
    await breathe();
  }
}

/** The bytes of the stretches lie end to end. */
function writePages(
  fd: number,
  bytes: Buffer,
  position: number,
  stretches: readonly (readonly [from: number, to: number])[],
): void {
  const expected = stretches.reduce((sum, [from, to]) => sum + to - from, 0);
  if (expected !== bytes.length) throw damagedBlock(`${bytes.length} bytes are stored for ${expected}`);
  let done = 0;
  for (const [from, to] of stretches) {
    writeAll(fd, bytes.subarray(done, done + to - from), position + from);
    done += to - from;
  }
}

/** Leaves out the pages that are zero. */
function writeContentOnly(fd: number, bytes: Buffer, position: number): void {
  for (const [from, to] of dataStretches(pagesWithContent(bytes), bytes.length)) {
    writeAll(fd, bytes.subarray(from, to), position + from);
  }
}

function isZero(bytes: Buffer): boolean {
  return bytes[0] === 0 && bytes.compare(zeros, 0, bytes.length) === 0;
}
const zeros = Buffer.alloc(blockSize);

/** Every object that a file's content needs. */
export function* contentObjects(objects: ObjectReader, entry: Entry): Generator<Hash> {
  const content = entry.content as Hash;
  if ((entry.flags & entryFlag.blocks) === 0) {
    yield content;
    return;
  }
  yield* sequenceObjects(objects, content);
  for (const item of readSequence(objects, content)) {
    const block = decodeBlock(item);
    if (block.content !== null) yield block.content;
  }
}

/** Why a file cannot be read, in words; undefined when it merely vanished. @throws errors that are not the file's fault */
export function unreadableReason(error: unknown): string | undefined {
  const code = systemCode(error);
  if (code === "ENOENT" || code === "ENOTDIR") return undefined;
  if (
    code !== undefined &&
    ["EACCES", "EPERM", "EIO", "ELOOP", "ENXIO", "ENAMETOOLONG", "ESTALE", "EBUSY", "ETXTBSY", "ENODEV"].includes(code)
  ) {
    return `cannot be read (${code})`;
  }
  throw error;
}
