// Every object of the store in flat arrays, sorted by name: what gc marks in. 1,000,000 objects take 41 MB.
import type { Breathe } from "../breathe.ts";
import type { Sql } from "./database.ts";
import type { Hash } from "./objects.ts";
import type { Kind, Seen } from "./reach.ts";

const rowsPerSlice = 500;
const wasCondemned = 128;
/** Of a walk through the census. */
export const stepsPerBreath = 2000;

export interface ObjectRow {
  readonly hash: Hash;
  readonly pack: number;
  readonly offset: number;
  readonly length: number;
  readonly condemned: number;
}

/** Every row of `object`, in the order of the names, read in slices: what is written meanwhile is seen or not. */
export async function* objectRows(sql: Sql, breathe: Breathe): AsyncGenerator<ObjectRow> {
  const next = sql.prepare(
    `SELECT hash, pack, offset, length, condemned FROM object WHERE hash > ? ORDER BY hash LIMIT ${rowsPerSlice}`,
  );
  for (let from: Hash = Buffer.alloc(0); ; ) {
    const rows = next.all(from) as ObjectRow[];
    yield* rows;
    if (rows.length < rowsPerSlice) return;
    from = (rows.at(-1) as ObjectRow).hash;
    await breathe();
  }
}

/** Objects of one part of the census: grown by parts, it never copies what it has. */
const partSize = 1 << 15;

interface Part {
  readonly names: Buffer;
  readonly packs: Uint32Array;
  readonly lengths: Uint32Array;
  readonly flags: Uint8Array;
}

const newPart = (): Part => ({
  names: Buffer.alloc(partSize * 32),
  packs: new Uint32Array(partSize),
  lengths: new Uint32Array(partSize),
  flags: new Uint8Array(partSize),
});

export class Census implements Seen {
  readonly #parts: Part[] = [];
  #count = 0;
  #condemned = 0;
  /** Where the names with each first two bytes begin. */
  readonly #starts = new Uint32Array(65_537);
  /** Objects that were written after the census. */
  readonly #later = new Map<string, number>();

  static async take(sql: Sql, breathe: Breathe): Promise<Census> {
    const census = new Census();
    for await (const row of objectRows(sql, breathe)) census.#push(row);
    const starts = census.#starts;
    for (let i = 1; i < starts.length; i++) starts[i] = (starts[i] as number) + (starts[i - 1] as number);
    return census;
  }

  get count(): number {
    return this.#count;
  }

  get condemned(): number {
    return this.#condemned;
  }

  hash(index: number): Hash {
    const at = (index % partSize) * 32;
    return this.#part(index).names.subarray(at, at + 32);
  }

  pack(index: number): number {
    return this.#part(index).packs[index % partSize] as number;
  }

  length(index: number): number {
    return this.#part(index).lengths[index % partSize] as number;
  }

  isCondemned(index: number): boolean {
    return (this.#flags(index) & wasCondemned) !== 0;
  }

  setCondemned(index: number, condemned: boolean): void {
    if (this.isCondemned(index) === condemned) return;
    this.#part(index).flags[index % partSize] = this.#flags(index) ^ wasCondemned;
    this.#condemned += condemned ? 1 : -1;
  }

  isReached(index: number): boolean {
    return (this.#flags(index) & ~wasCondemned) !== 0;
  }

  /** Bytes of each pack that are reached. */
  async reachedBytes(breathe: Breathe): Promise<Map<number, number>> {
    const bytes = new Map<number, number>();
    for (let index = 0; index < this.#count; index++) {
      if (index % stepsPerBreath === 0) await breathe();
      if (!this.isReached(index)) continue;
      const pack = this.pack(index);
      bytes.set(pack, (bytes.get(pack) ?? 0) + this.length(index));
    }
    return bytes;
  }

  has(hash: Hash, kind: Kind): boolean {
    const index = this.indexOf(hash);
    const bits = index < 0 ? (this.#later.get(hash.toString("latin1")) ?? 0) : this.#flags(index);
    return (bits & kind.bit) !== 0;
  }

  add(hash: Hash, kind: Kind): boolean {
    const index = this.indexOf(hash);
    const key = index < 0 ? hash.toString("latin1") : "";
    const bits = index < 0 ? (this.#later.get(key) ?? 0) : this.#flags(index);
    if ((bits & kind.bit) !== 0) return false;
    if (index >= 0) this.#part(index).flags[index % partSize] = bits | kind.bit;
    else this.#later.set(key, bits | kind.bit);
    return true;
  }

  /** -1 for an object that the census does not have. */
  indexOf(hash: Hash): number {
    const first = hash.readUInt16BE(0);
    let low = this.#starts[first] as number;
    let high = this.#starts[first + 1] as number;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const at = (middle % partSize) * 32;
      const order = this.#part(middle).names.compare(hash, 0, 32, at, at + 32);
      if (order === 0) return middle;
      if (order < 0) low = middle + 1;
      else high = middle;
    }
    return -1;
  }

  #part(index: number): Part {
    return this.#parts[Math.floor(index / partSize)] as Part;
  }

  #flags(index: number): number {
    return this.#part(index).flags[index % partSize] as number;
  }

  #push({ hash, pack, length, condemned }: ObjectRow): void {
    const at = this.#count % partSize;
    if (at === 0) this.#parts.push(newPart());
    const part = this.#part(this.#count);
    hash.copy(part.names, at * 32);
    part.packs[at] = pack;
    part.lengths[at] = length;
    this.#count++;
    this.setCondemned(this.#count - 1, condemned !== 0);
    const bucket = hash.readUInt16BE(0) + 1;
    this.#starts[bucket] = (this.#starts[bucket] as number) + 1;
  }
}
