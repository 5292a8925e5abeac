// Rows of objects that wait for a commit: found by name, and given back in the order of their names, so that a commit writes few pages of the catalog.
import { nameLength } from "./packs.ts";

/**
 * Rows for one statement, valid until the next slice is taken. Objects and calls of its own for each row would be most of what a first checkpoint costs the
 * event loop, and so would numbers as JavaScript's strings, which V8 caches.
 */
export interface RowSlice {
  /** 32 bytes each. */
  readonly names: Buffer;
  /** JSON: [offset, length] of each. */
  readonly places: Buffer;
  /** Of the last byte of all, plus one. */
  readonly end: number;
}

/**
 * Those whose names begin with the same byte. In flat arrays, since a first checkpoint has hundreds of thousands, and small ones, so that none is
 * ever copied or sorted for long.
 */
class Bucket {
  count = 0;
  #names = Buffer.allocUnsafeSlow(firstRows * nameLength);
  #offsets = new Float64Array(firstRows);
  #lengths = new Uint32Array(firstRows);
  /** Open addressing: number of a row from 1, 0 where free. */
  #table = new Uint32Array(2 * firstRows);

  has(names: Buffer, at: number): boolean {
    for (let slot = this.#slotOf(names, at); ; slot = (slot + 1) & (this.#table.length - 1)) {
      const row = this.#table[slot] as number;
      if (row === 0) return false;
      const start = (row - 1) * nameLength;
      if (this.#names.compare(names, at, at + nameLength, start, start + nameLength) === 0) return true;
    }
  }

  add(names: Buffer, at: number, offset: number, length: number): void {
    if (this.count === this.#offsets.length) this.#grow();
    const row = this.count++;
    names.copy(this.#names, row * nameLength, at, at + nameLength);
    this.#offsets[row] = offset;
    this.#lengths[row] = length;
    this.#enter(row);
  }

  /** Numbers of the rows in the order of their names, as far as four bytes tell. */
  inOrder(): Float64Array {
    // Sorted by V8 itself, without a call for each comparison: both in one number, which holds 53 bits.
    const rows = new Float64Array(this.count);
    for (let row = 0; row < this.count; row++)
      rows[row] = this.#names.readUInt32BE(row * nameLength + 1) * maxRows + row;
    rows.sort();
    for (let at = 0; at < rows.length; at++) rows[at] = (rows[at] as number) % maxRows;
    return rows;
  }

  copyName(row: number, to: Buffer, at: number): void {
    this.#names.copy(to, at, row * nameLength, (row + 1) * nameLength);
  }

  offset(row: number): number {
    return this.#offsets[row] as number;
  }

  length(row: number): number {
    return this.#lengths[row] as number;
  }

  #slotOf(names: Buffer, at: number): number {
    return names.readUInt32LE(at + 8) & (this.#table.length - 1);
  }

  #enter(row: number): void {
    let slot = this.#slotOf(this.#names, row * nameLength);
    while (this.#table[slot] !== 0) slot = (slot + 1) & (this.#table.length - 1);
    this.#table[slot] = row + 1;
  }

  #grow(): void {
    const rows = this.#offsets.length * 2;
    const names = Buffer.allocUnsafeSlow(rows * nameLength);
    this.#names.copy(names);
    this.#names = names;
    const offsets = new Float64Array(rows);
    offsets.set(this.#offsets);
    this.#offsets = offsets;
    const lengths = new Uint32Array(rows);
    lengths.set(this.#lengths);
    this.#lengths = lengths;
    this.#table = new Uint32Array(2 * rows);
    for (let row = 0; row < this.count; row++) this.#enter(row);
  }
}
const firstRows = 8;
const maxRows = 2 ** 21;

export class PendingRows {
  readonly #buckets: (Bucket | undefined)[] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** The name at `at` in `names`. */
  has(names: Buffer, at: number): boolean {
    return this.#buckets[names[at] as number]?.has(names, at) ?? false;
  }

  add(names: Buffer, at: number, offset: number, length: number): void {
    const first = names[at] as number;
    let bucket = this.#buckets[first];
    if (bucket === undefined) {
      bucket = new Bucket();
      this.#buckets[first] = bucket;
    }
    bucket.add(names, at, offset, length);
    this.#size++;
  }

  clear(): void {
    this.#buckets.length = 0;
    this.#size = 0;
  }

  /** All rows in the order of their names, at most `limit` in each slice. */
  *slices(limit: number): Generator<RowSlice> {
    const slice = new Slice(limit);
    for (const bucket of this.#buckets) {
      if (bucket === undefined) continue;
      for (const row of bucket.inOrder()) {
        slice.add(bucket, row);
        if (slice.count === limit) yield slice.take();
      }
    }
    if (slice.count > 0) yield slice.take();
  }
}

class Slice {
  count = 0;
  #end = 0;
  #size = 0;
  readonly #names: Buffer;
  readonly #places: Buffer;

  constructor(limit: number) {
    this.#names = Buffer.allocUnsafeSlow(limit * nameLength);
    this.#places = Buffer.allocUnsafeSlow(limit * placeLength + 1);
  }

  add(bucket: Bucket, row: number): void {
    const [offset, length] = [bucket.offset(row), bucket.length(row)];
    bucket.copyName(row, this.#names, this.count * nameLength);
    this.#put(this.count === 0 ? "[" : ",");
    this.#put("[");
    this.#putNumber(offset);
    this.#put(",");
    this.#putNumber(length);
    this.#put("]");
    this.#end = Math.max(this.#end, offset + length);
    this.count++;
  }

  take(): RowSlice {
    this.#put("]");
    const taken = {
      names: this.#names.subarray(0, this.count * nameLength),
      places: this.#places.subarray(0, this.#size),
      end: this.#end,
    };
    this.count = 0;
    this.#end = 0;
    this.#size = 0;
    return taken;
  }

  #put(character: string): void {
    this.#places[this.#size++] = character.charCodeAt(0);
  }

  #putNumber(value: number): void {
    let digits = 1;
    for (let power = 10; power <= value; power *= 10) digits++;
    for (let at = this.#size + digits - 1, left = value; at >= this.#size; at--, left = Math.floor(left / 10)) {
      this.#places[at] = zero + (left % 10);
    }
    this.#size += digits;
  }
}
/** Two numbers of at most 16 digits, and what stands around them. */
const placeLength = 2 * 16 + 4;
const zero = 48;
