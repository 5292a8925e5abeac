// Whether an object of a bundle is what its kind says, and names only what came before it: nothing else is taken into a store (F-71).
import { z } from "zod";
import { type Block, blockSize, decodeBlock, everyPage, pageSize } from "../environment/directory/block.ts";
import { decodeEntry, type Entry, entryFlag, entryType } from "../environment/directory/entry.ts";
import type { Hash } from "../store/objects.ts";
import { kindBit } from "../store/reach.ts";
import { damaged } from "./format.ts";
import type { ObjectTable } from "./object-table.ts";

/** Above it a tree is one that names the same folders again and again, to fill the disk. */
const mostEntries = 100_000_000;
const nameLimit = 255;

const contextSchema = z.strictObject({
  serializer: z.string(),
  messages: z.string().regex(/^[0-9a-f]{64}$/),
  count: z.int().min(0),
  channels: z.string().regex(/^[0-9a-f]{64}$/),
});

/** Of a part of a folder's list. */
interface Names {
  readonly first: string;
  readonly last: string;
  /** With all that lies below. */
  readonly entries: number;
  /** Something of that is a hard link. */
  readonly links: boolean;
}

export class ObjectCheck {
  readonly #met: ObjectTable;
  /** By the names of chunks of folders. */
  readonly #names = new Map<string, Names>();

  constructor(met: ObjectTable) {
    this.#met = met;
  }

  hasLinks(list: Hash): boolean {
    return this.#names.get(list.toString("latin1"))?.links ?? false;
  }

  /** @throws BUNDLE_DAMAGED */
  add(kind: number, hash: Hash, bytes: Buffer): void {
    if (this.#met.get(kind, hash) !== undefined) return;
    let value: number;
    try {
      value = this.#valueOf(kind, hash, bytes);
    } catch (error) {
      if (error instanceof RangeError) throw damaged(`object ${hash.toString("hex")} ends too early`, error);
      throw error;
    }
    this.#met.add(kind, hash, value);
  }

  /** What the table holds of it: bytes of content, items of a list. */
  #valueOf(kind: number, hash: Hash, bytes: Buffer): number {
    if (kind === kindBit.content) return bytes.length;
    if (kind === kindBit.blocks) return this.#list(kind, bytes, (item) => this.#block(item));
    if (kind === kindBit.messages) return this.#list(kind, bytes, (item) => this.#content(item));
    if (kind === kindBit.channels)
      return this.#list(kind, bytes, (item) => {
        requireThat(item.length === 2 + item.readUInt16LE(0) + 32, "a channel has no form that is known");
        this.#content(item.subarray(-32));
      });
    if (kind === kindBit.tree) return this.#tree(hash, bytes);
    if (kind === kindBit.snapshot) return this.#snapshot(bytes);
    return this.#context(bytes);
  }

  #content(hash: Buffer): number {
    requireThat(hash.length === 32, "a name has no form that is known");
    return this.#need(kindBit.content, hash);
  }

  #need(kind: number, hash: Hash): number {
    const found = this.#met.get(kind, hash);
    if (found === undefined) throw damaged(`object ${hash.toString("hex")} is named and does not come before`);
    return found;
  }

  /** How many items it has. */
  #list(kind: number, bytes: Buffer, check: (item: Buffer) => void): number {
    let count = 0;
    for (const part of chunk(bytes)) {
      if (part.hash === undefined) check(part.item);
      else requireThat(this.#need(kind, part.hash) === part.count, "a list has another length than it says");
      count += part.hash === undefined ? 1 : part.count;
    }
    return count;
  }

  #block(item: Buffer): void {
    // Of a hole, of all pages, of some.
    requireThat([1, 33, 41][item.readUInt8(0)] === item.length, "a block has no form that is known");
    const block = decodeBlock(item);
    if (block.content === null) return;
    const size = this.#content(block.content);
    requireThat(block.pages === everyPage ? size <= blockSize : size <= pagesOf(block), "a block has another length");
  }

  #tree(hash: Hash, bytes: Buffer): number {
    let count = 0;
    let entries = 0;
    let links = false;
    let first: string | undefined;
    let last = "";
    const follow = (names: Names): void => {
      requireThat(first === undefined || names.first > last, "the names of a folder are not in order");
      first ??= names.first;
      last = names.last;
      entries += names.entries;
      links ||= names.links;
      requireThat(entries <= mostEntries, "a folder holds more than any disk");
    };
    for (const part of chunk(bytes)) {
      if (part.hash === undefined) {
        const entry = entryOf(part.item);
        requireThat(isName(entry.name), "a folder holds a name that is none");
        const below = this.#entry(entry);
        follow({
          first: entry.name,
          last: entry.name,
          entries: 1 + (below?.entries ?? 0),
          links: linksOf(entry, below),
        });
        count++;
      } else {
        requireThat(this.#need(kindBit.tree, part.hash) === part.count, "a folder has another length than it says");
        const names = this.#names.get(part.hash.toString("latin1"));
        // Only a list without items has no names, and it is no part of another.
        if (names === undefined) throw damaged("a part of a folder is empty");
        follow(names);
        count += part.count;
      }
    }
    if (first !== undefined) this.#names.set(hash.toString("latin1"), { first, last, entries, links });
    return count;
  }

  #snapshot(bytes: Buffer): number {
    requireThat(bytes.readUInt8(0) === 3, "a snapshot does not begin as one");
    const root = entryOf(bytes.subarray(2));
    requireThat(root.type === entryType.directory && root.name === "", "the root of a snapshot is none");
    return this.#entry(root)?.entries ?? 0;
  }

  /** Of a folder: what lies below it; undefined where nothing does. */
  #entry(entry: Entry): Names | undefined {
    const { type, content, size, tail } = entry;
    requireThat((Object.values(entryType) as number[]).includes(type), "an entry is of no kind that is known");
    requireThat(entry.mode <= 0o7777 && Number.isSafeInteger(size), "an entry has a mode or a size that is none");
    if (type === entryType.directory) {
      requireThat(content !== null, "a folder has no list");
      this.#need(kindBit.tree, content as Hash);
      return this.#names.get((content as Hash).toString("latin1"));
    }
    if (type === entryType.file) {
      requireThat(content !== null, "a file has no content");
      this.#file(content as Hash, entry);
    } else requireThat(content === null, "an entry has a content that it cannot have");
    if (type === entryType.hardLink)
      requireThat(tail !== "" && tail.split("/").every(isName), "a hard link leads out of the tree");
    return undefined;
  }

  #file(content: Hash, { flags, size }: Entry): void {
    if ((flags & entryFlag.blocks) !== 0) {
      const blocks = this.#need(kindBit.blocks, content);
      requireThat(blocks === Math.max(1, Math.ceil(size / blockSize)), "a file has another length than it says");
    } else requireThat(this.#need(kindBit.content, content) === size, "a file has another length than it says");
  }

  #context(bytes: Buffer): number {
    let value: unknown;
    try {
      value = JSON.parse(bytes.toString("utf8"));
    } catch (error) {
      throw damaged("a context cannot be read", error);
    }
    const parsed = contextSchema.safeParse(value);
    if (!parsed.success) throw damaged("a context does not have the form of one", parsed.error);
    const { messages, channels, count } = parsed.data;
    requireThat(this.#need(kindBit.messages, Buffer.from(messages, "hex")) === count, "a context has another length");
    this.#need(kindBit.channels, Buffer.from(channels, "hex"));
    return count;
  }
}

const linksOf = (entry: Entry, below: Names | undefined): boolean =>
  entry.type === entryType.hardLink || (below?.links ?? false);

type Part =
  | { readonly hash: undefined; readonly item: Buffer }
  | { readonly hash: Hash; readonly count: number; readonly item?: undefined };

/** Items of a leaf, or children of a node; all of its bytes belong to them. */
function* chunk(bytes: Buffer): Generator<Part> {
  const mark = bytes.readUInt8(0);
  if (mark === 1) {
    for (let at = 1; at < bytes.length; ) {
      const end = at + 4 + bytes.readUInt32LE(at);
      requireThat(end <= bytes.length, "a list is cut short");
      yield { hash: undefined, item: bytes.subarray(at + 4, end) };
      at = end;
    }
    return;
  }
  requireThat(mark === 2 && bytes.length > 1 && (bytes.length - 1) % 40 === 0, "a list has no form that is known");
  for (let at = 1; at < bytes.length; at += 40) {
    const count = Number(bytes.readBigUInt64LE(at + 32));
    requireThat(Number.isSafeInteger(count) && count > 0, "a part of a list has no length");
    yield { hash: bytes.subarray(at, at + 32), count };
  }
}

/** All of its lengths stay within it: what decodes it relies on that. */
function entryOf(bytes: Buffer): Entry {
  let at = 46 + bytes.readUInt16LE(36) + bytes.readUInt32LE(38);
  for (let left = bytes.readUInt16LE(42); left > 0; left--)
    at += 6 + bytes.readUInt16LE(at) + bytes.readUInt32LE(at + 2);
  const content = bytes.readUInt16LE(44);
  requireThat(content === 0 || content === 32, "an entry has a content that is none");
  requireThat(at + content === bytes.length, "an entry has another length than it says");
  return decodeEntry(bytes);
}

const isName = (name: string): boolean =>
  name !== "" && name !== "." && name !== ".." && name.length <= nameLimit && !/[/\0]/.test(name);

/** Bytes that the pages of a block can hold. */
function pagesOf({ pages }: Block): number {
  let count = 0;
  for (let left = pages; left > 0n; left >>= 1n) count += Number(left & 1n);
  return count * pageSize;
}

function requireThat(holds: boolean, what: string): void {
  if (!holds) throw damaged(what);
}
