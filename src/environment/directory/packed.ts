// A list of paths with stored entries, packed outside of the heap: a plan may hold one for each file of a large tree.
import type { RawPath } from "./names.ts";

const chunkSize = 256 << 10;
const fixed = 12;
const none = Buffer.alloc(0);

export interface PackedItem {
  readonly path: RawPath;
  /** Where it is staged; "" where it is not. */
  readonly at: RawPath;
  /** As stored; empty where only the path counts. */
  readonly entry: Buffer;
}

export class Packed {
  readonly #chunks: Buffer[] = [];
  #used = 0;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(path: RawPath, at: RawPath = "", entry: Buffer = none): void {
    const length = fixed + path.length + at.length + entry.length;
    let chunk = this.#chunks.at(-1);
    if (chunk === undefined || this.#used + length > chunk.length) {
      if (chunk !== undefined) this.#chunks[this.#chunks.length - 1] = chunk.subarray(0, this.#used);
      // The first is small: most lists are.
      chunk = Buffer.allocUnsafeSlow(Math.max(length, this.#chunks.length === 0 ? 4096 : chunkSize));
      this.#chunks.push(chunk);
      this.#used = 0;
    }
    let offset = this.#used;
    offset = chunk.writeUInt32LE(path.length, offset);
    offset = chunk.writeUInt32LE(at.length, offset);
    offset = chunk.writeUInt32LE(entry.length, offset);
    offset += chunk.write(path, offset, "latin1");
    offset += chunk.write(at, offset, "latin1");
    offset += entry.copy(chunk, offset);
    this.#used = offset;
    this.#size++;
  }

  *[Symbol.iterator](): Generator<PackedItem> {
    for (const [index, chunk] of this.#chunks.entries()) {
      const end = index === this.#chunks.length - 1 ? this.#used : chunk.length;
      for (let at = 0; at < end; ) {
        const pathEnd = at + fixed + chunk.readUInt32LE(at);
        const atEnd = pathEnd + chunk.readUInt32LE(at + 4);
        const next = atEnd + chunk.readUInt32LE(at + 8);
        yield {
          path: chunk.toString("latin1", at + fixed, pathEnd),
          at: chunk.toString("latin1", pathEnd, atEnd),
          entry: chunk.subarray(atEnd, next),
        };
        at = next;
      }
    }
  }
}

/** One list for each depth, so that children can be done before or after their parents. */
export class Levels {
  readonly #levels: Packed[] = [];

  add(path: RawPath, at?: RawPath, entry?: Buffer): void {
    const depth = depthOf(path);
    while (this.#levels.length <= depth) this.#levels.push(new Packed());
    (this.#levels[depth] as Packed).add(path, at, entry);
  }

  /** Those that hold something. */
  parentsFirst(): Packed[] {
    return this.#levels.filter((level) => level.size > 0);
  }

  childrenFirst(): Packed[] {
    return this.parentsFirst().reverse();
  }
}

function depthOf(path: RawPath): number {
  if (path === "") return 0;
  let depth = 1;
  for (let slash = path.indexOf("/"); slash >= 0; slash = path.indexOf("/", slash + 1)) depth++;
  return depth;
}
