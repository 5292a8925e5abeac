// File contents as objects: one for a small file, a sequence of blocks for a large one (F-9).
import { closeSync, fstatSync, readSync } from "node:fs";
import { systemCode } from "../../errors.ts";
import { setLength, writeAll } from "../../store/io.ts";
import type { Batch, Hash, ObjectReader } from "../../store/objects.ts";
import { putSequence, readSequence, type SequenceItem, sequenceObjects } from "../../store/sequence.ts";
import { type Entry, entryFlag } from "./entry.ts";
import type { RawPath } from "./names.ts";
import type { Posix } from "./posix.ts";

export const blockSize = 256 << 10;
const pageSize = 4096;
const emptyProbe = 4096;
/** Less than this is the file system's rounding or inlining, not a hole. */
const sparseFrom = 65536n;
const hole = Buffer.from([0]);

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
export async function storeContent(
  posix: Posix,
  path: RawPath,
  batch: Batch,
  breathe: () => Promise<void> | undefined,
): Promise<ReadContent> {
  for (let attempt = 1; ; attempt++) {
    const fd = posix.openRead(path);
    try {
      const before = fstatSync(fd, { bigint: true });
      const sparse = before.blocks * 512n + sparseFrom <= before.size;
      const stored = await storeBlocks(fd, Number(before.size), sparse, batch, breathe);
      const after = fstatSync(fd, { bigint: true });
      const stable =
        before.mtimeNs === after.mtimeNs && before.ctimeNs === after.ctimeNs && after.size === BigInt(stored.size);
      const flags = stored.flags | (sparse ? entryFlag.sparse : 0);
      const { ctimeNs } = before;
      if (stable) return { ...stored, flags, ctimeNs };
      if (attempt === attempts) return { ...stored, flags: flags | entryFlag.torn, ctimeNs };
    } finally {
      closeSync(fd);
    }
  }
}

async function storeBlocks(
  fd: number,
  expected: number,
  sparse: boolean,
  batch: Batch,
  breathe: () => Promise<void> | undefined,
): Promise<StoredContent> {
  const blocks: SequenceItem[] = [];
  let first: Hash | undefined;
  let size = 0;
  // What a growing file has gained meanwhile is not read: its size tells, and it is read again. Some file systems say 0 and have content.
  while (size < expected || blocks.length === 0) {
    const bytes = readBlock(fd, expected === 0 ? emptyProbe : Math.min(blockSize, expected - size));
    const { length } = bytes;
    if (length === 0 && blocks.length > 0) break;
    size += length;
    if (sparse && length === blockSize && isZero(bytes)) {
      blocks.push({ bytes: hole, boundary: 1 });
    } else {
      const hash = batch.put(bytes);
      first ??= hash;
      blocks.push({ bytes: Buffer.concat([Buffer.from([1]), hash]), boundary: hash.readUInt32LE(0) });
    }
    if (length < blockSize) break;
    await breathe();
  }
  if (blocks.length === 1 && first !== undefined) return { content: first, flags: 0, size };
  return { content: putSequence(batch, blocks), flags: entryFlag.blocks, size };
}

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
export async function writeContent(
  fd: number,
  entry: Entry,
  objects: ObjectReader,
  breathe: () => Promise<void> | undefined,
): Promise<void> {
  const content = entry.content as Hash;
  if (entry.size === 0) return;
  if ((entry.flags & entryFlag.blocks) === 0) {
    writeBlock(fd, objects.get(content), 0, (entry.flags & entryFlag.sparse) !== 0);
  } else {
    let at = 0;
    for (const item of readSequence(objects, content)) {
      if (item[0] === 1) writeBlock(fd, objects.get(item.subarray(1)), at, (entry.flags & entryFlag.sparse) !== 0);
      at += blockSize;
      await breathe();
    }
  }
  if ((entry.flags & entryFlag.sparse) !== 0) setLength(fd, entry.size);
}

function writeBlock(fd: number, bytes: Buffer, position: number, sparse: boolean): void {
  const step = sparse ? pageSize : bytes.length;
  for (let from = 0; from < bytes.length; from += step) {
    const part = bytes.subarray(from, Math.min(from + step, bytes.length));
    if (sparse && isZero(part)) continue;
    writeAll(fd, part, position + from);
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
  for (const item of readSequence(objects, content)) if (item[0] === 1) yield item.subarray(1);
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
