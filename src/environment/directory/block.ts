// What is stored of one block of a large file or of one with holes, and which pages of it are data (F-9).
import { RewindError } from "../../errors.ts";
import type { Hash } from "../../store/objects.ts";
import type { SequenceItem } from "../../store/sequence.ts";

export const blockSize = 256 << 10;
export const pageSize = 4096;
/** Bits of a block's pages. */
export const everyPage = (1n << BigInt(blockSize / pageSize)) - 1n;

const kind = { hole: 0, data: 1, partial: 2 } as const;

export interface Block {
  /** Names the pages that are data, end to end; null for a hole. */
  readonly content: Hash | null;
  /** One bit for each page that is data. */
  readonly pages: bigint;
}

export const holeItem: SequenceItem = { bytes: Buffer.from([kind.hole]), boundary: 1 };

export function blockItem(content: Hash, pages: bigint): SequenceItem {
  const boundary = content.readUInt32LE(0);
  if (pages === everyPage) return { bytes: Buffer.concat([Buffer.from([kind.data]), content]), boundary };
  const bits = Buffer.allocUnsafe(8);
  bits.writeBigUInt64LE(pages);
  return { bytes: Buffer.concat([Buffer.from([kind.partial]), content, bits]), boundary };
}

/** @throws STORE_CORRUPT for a kind that this version does not know */
export function decodeBlock(item: Buffer): Block {
  if (item[0] === kind.hole) return { content: null, pages: 0n };
  if (item[0] === kind.data) return { content: item.subarray(1, 33), pages: everyPage };
  if (item[0] === kind.partial) return { content: item.subarray(1, 33), pages: item.readBigUInt64LE(33) };
  throw damagedBlock(`a block of unknown kind ${item[0]}`);
}

export function damagedBlock(what: string): RewindError {
  return new RewindError("STORE_CORRUPT", `What the store holds of a file's content makes no sense: ${what}.`, {
    hint: "Run `agentrewind verify` to see which checkpoints are affected, and rewind to another one.",
  });
}

/** Stretches of data pages in a block of `length` bytes, in order, as [from, to). */
export function* dataStretches(pages: bigint, length: number): Generator<readonly [from: number, to: number]> {
  const isData = (at: number): boolean => (pages & (1n << BigInt(at / pageSize))) !== 0n;
  for (let at = 0; at < length; ) {
    let end = at;
    while (end < length && isData(end)) end += pageSize;
    if (end > at) yield [at, Math.min(end, length)];
    at = end + pageSize;
  }
}
