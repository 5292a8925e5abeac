// A stored file's bytes, one block after the other.
import type { ObjectReader } from "../../store/objects.ts";
import { readSequence } from "../../store/sequence.ts";
import { blockSize, damagedBlock, dataStretches, decodeBlock } from "./block.ts";
import { type Entry, entryFlag } from "./entry.ts";

export function* readContent(objects: ObjectReader, entry: Entry): Generator<Buffer> {
  if (entry.content === null || entry.size === 0) return;
  if ((entry.flags & entryFlag.blocks) === 0) {
    yield objects.get(entry.content);
    return;
  }
  let position = 0;
  for (const item of readSequence(objects, entry.content)) {
    const { content, pages } = decodeBlock(item);
    const bytes = Buffer.alloc(Math.min(blockSize, entry.size - position));
    position += bytes.length;
    if (content !== null) fill(bytes, objects.get(content), pages);
    yield bytes;
  }
}

function fill(block: Buffer, stored: Buffer, pages: bigint): void {
  let done = 0;
  for (const [from, to] of dataStretches(pages, block.length)) done += stored.copy(block, from, done, done + to - from);
  if (done !== stored.length) throw damagedBlock(`${stored.length} bytes are stored for ${done}`);
}
