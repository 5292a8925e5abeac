// Rows of objects that wait for a commit: found by name, and given back in the order of their names, so that a commit writes few pages of the catalog.
import { nameLength } from "./packs.ts";

/** Rows for one statement: a row's objects and calls of its own would be most of what a first checkpoint costs the event loop. */
export interface RowSlice {
  /** 32 bytes each; valid until the next slice is taken. */
  readonly names: Buffer;
  /** JSON: [offset, length] of each. */
  readonly places: string;
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
  inOrder(): Uint32Array {
    const rows = Uint32Array.from({ length: this.count }, (_, row) => row);
    const next = (row: number): number => this.#names.readUInt32BE(row * nameLength + 1);
    return rows.sort((a, b) => next(a) - next(b));
  }

  /** Copies the row's name; returns its place as JSON. */
  take(row: number, names: Buffer, at: number): string {
    this.#names.copy(names, at, row * nameLength, (row + 1) * nameLength);
    return `[${this.#offsets[row]},${this.#lengths[row]}]`;
  }

  end(row: number): number {
    return (this.#offsets[row] as number) + (this.#lengths[row] as number);
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

export class PendingRows {
  readonly #buckets: (Bucket | undefined)[] = [];

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
  }

  clear(): void {
    this.#buckets.length = 0;
  }

  /** All rows in the order of their names, at most `limit` in each slice. */
  *slices(limit: number): Generator<RowSlice> {
    const names = Buffer.allocUnsafeSlow(limit * nameLength);
    let places: string[] = [];
    let end = 0;
    const slice = (): RowSlice => ({
      names: names.subarray(0, places.length * nameLength),
      places: `[${places.join()}]`,
      end,
    });
    for (const bucket of this.#buckets) {
      if (bucket === undefined) continue;
      for (const row of bucket.inOrder()) {
        places.push(bucket.take(row, names, places.length * nameLength));
        end = Math.max(end, bucket.end(row));
        if (places.length < limit) continue;
        yield slice();
        places = [];
      }
    }
    if (places.length > 0) yield slice();
  }
}
