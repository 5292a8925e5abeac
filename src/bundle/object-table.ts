// The objects that were met so far, each with a number, in flat arrays: a bundle may hold millions. 1,000,000 take about 60 MB.
import type { Hash } from "../store/objects.ts";

const keyLength = 33;

/** Those whose names begin with the same byte. */
class Bucket {
  #count = 0;
  #keys = Buffer.allocUnsafeSlow(firstRows * keyLength);
  #values = new Float64Array(firstRows);
  /** Open addressing: number of a row from 1, 0 where free. */
  #table = new Uint32Array(2 * firstRows);

  get(kind: number, hash: Hash): number | undefined {
    for (let slot = this.#slotOf(hash); ; slot = (slot + 1) & (this.#table.length - 1)) {
      const row = this.#table[slot] as number;
      if (row === 0) return undefined;
      const at = (row - 1) * keyLength;
      if (this.#keys[at] === kind && this.#keys.compare(hash, 0, 32, at + 1, at + keyLength) === 0)
        return this.#values[row - 1];
    }
  }

  add(kind: number, hash: Hash, value: number): void {
    if (this.#count === this.#values.length) this.#grow();
    const row = this.#count++;
    this.#keys[row * keyLength] = kind;
    hash.copy(this.#keys, row * keyLength + 1, 0, 32);
    this.#values[row] = value;
    this.#enter(row);
  }

  #slotOf(hash: Hash): number {
    return hash.readUInt32LE(8) & (this.#table.length - 1);
  }

  #enter(row: number): void {
    const at = row * keyLength + 1;
    let slot = this.#slotOf(this.#keys.subarray(at, at + 32));
    while (this.#table[slot] !== 0) slot = (slot + 1) & (this.#table.length - 1);
    this.#table[slot] = row + 1;
  }

  #grow(): void {
    const rows = this.#values.length * 2;
    const keys = Buffer.allocUnsafeSlow(rows * keyLength);
    this.#keys.copy(keys);
    this.#keys = keys;
    const values = new Float64Array(rows);
    values.set(this.#values);
    this.#values = values;
    this.#table = new Uint32Array(2 * rows);
    for (let row = 0; row < this.#count; row++) this.#enter(row);
  }
}
const firstRows = 8;

export class ObjectTable {
  readonly #buckets: (Bucket | undefined)[] = [];

  /** Undefined for an object that was not met as this kind. */
  get(kind: number, hash: Hash): number | undefined {
    return this.#buckets[hash[0] as number]?.get(kind, hash);
  }

  /** Of what is not there yet. */
  add(kind: number, hash: Hash, value: number): void {
    const first = hash[0] as number;
    let bucket = this.#buckets[first];
    if (bucket === undefined) {
      bucket = new Bucket();
      this.#buckets[first] = bucket;
    }
    bucket.add(kind, hash, value);
  }
}
