// Every object of the store in flat arrays, sorted by name: what gc marks in. 1,000,000 objects take 41 MB.
import type { Sql } from "./database.ts";
import type { Hash } from "./objects.ts";
import type { Kind, Seen } from "./reach.ts";

const rowsPerSlice = 500;
const wasCondemned = 128;

export interface ObjectRow {
  readonly hash: Hash;
  readonly pack: number;
  readonly length: number;
  readonly condemned: number;
}

/** Every row of `object`, in the order of the names, read in slices: what is written meanwhile is seen or not. */
export async function* objectRows(sql: Sql, breathe: () => Promise<void> | undefined): AsyncGenerator<ObjectRow> {
  const next = sql.prepare(
    `SELECT hash, pack, length, condemned FROM object WHERE hash > ? ORDER BY hash LIMIT ${rowsPerSlice}`,
  );
  for (let from: Hash = Buffer.alloc(0); ; ) {
    const rows = next.all(from) as ObjectRow[];
    yield* rows;
    if (rows.length < rowsPerSlice) return;
    from = (rows.at(-1) as ObjectRow).hash;
    await breathe();
  }
}

export class Census implements Seen {
  #names = Buffer.alloc(32 * 1024);
  #packs = new Uint32Array(1024);
  #lengths = new Uint32Array(1024);
  #flags = new Uint8Array(1024);
  #count = 0;
  /** Where the names with each first two bytes begin. */
  readonly #starts = new Uint32Array(65_537);
  /** Objects that were written after the census. */
  readonly #later = new Map<string, number>();

  static async take(sql: Sql, breathe: () => Promise<void> | undefined): Promise<Census> {
    const census = new Census();
    for await (const row of objectRows(sql, breathe)) census.#push(row);
    census.#index();
    return census;
  }

  get count(): number {
    return this.#count;
  }

  hash(index: number): Hash {
    return this.#names.subarray(index * 32, index * 32 + 32);
  }

  pack(index: number): number {
    return this.#packs[index] as number;
  }

  length(index: number): number {
    return this.#lengths[index] as number;
  }

  isCondemned(index: number): boolean {
    return ((this.#flags[index] as number) & wasCondemned) !== 0;
  }

  setCondemned(index: number, condemned: boolean): void {
    const flags = this.#flags[index] as number;
    this.#flags[index] = condemned ? flags | wasCondemned : flags & ~wasCondemned;
  }

  countCondemned(): number {
    let count = 0;
    for (let i = 0; i < this.#count; i++) if (this.isCondemned(i)) count++;
    return count;
  }

  isReached(index: number): boolean {
    return ((this.#flags[index] as number) & ~wasCondemned) !== 0;
  }

  has(hash: Hash, kind: Kind): boolean {
    const index = this.#find(hash);
    const bits = index < 0 ? (this.#later.get(hash.toString("latin1")) ?? 0) : (this.#flags[index] as number);
    return (bits & kind.bit) !== 0;
  }

  add(hash: Hash, kind: Kind): boolean {
    if (this.has(hash, kind)) return false;
    const index = this.#find(hash);
    if (index >= 0) this.#flags[index] = (this.#flags[index] as number) | kind.bit;
    else {
      const key = hash.toString("latin1");
      this.#later.set(key, (this.#later.get(key) ?? 0) | kind.bit);
    }
    return true;
  }

  #push({ hash, pack, length, condemned }: ObjectRow): void {
    if (this.#count === this.#packs.length) this.#grow();
    hash.copy(this.#names, this.#count * 32);
    this.#packs[this.#count] = pack;
    this.#lengths[this.#count] = length;
    this.#flags[this.#count] = condemned === 0 ? 0 : wasCondemned;
    this.#count++;
  }

  #grow(): void {
    const size = Math.ceil(this.#packs.length * 1.5);
    const grown = <T extends Uint32Array | Uint8Array>(into: T, from: T): T => {
      into.set(from);
      return into;
    };
    this.#names = grown(Buffer.alloc(size * 32), this.#names) as Buffer<ArrayBuffer>;
    this.#packs = grown(new Uint32Array(size), this.#packs);
    this.#lengths = grown(new Uint32Array(size), this.#lengths);
    this.#flags = grown(new Uint8Array(size), this.#flags);
  }

  #index(): void {
    for (let i = 0; i < this.#count; i++) {
      const at = this.#names.readUInt16BE(i * 32) + 1;
      this.#starts[at] = (this.#starts[at] as number) + 1;
    }
    for (let i = 1; i < this.#starts.length; i++) {
      this.#starts[i] = (this.#starts[i] as number) + (this.#starts[i - 1] as number);
    }
  }

  #find(hash: Hash): number {
    const first = hash.readUInt16BE(0);
    let low = this.#starts[first] as number;
    let high = this.#starts[first + 1] as number;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const order = this.#names.compare(hash, 0, 32, middle * 32, middle * 32 + 32);
      if (order === 0) return middle;
      if (order < 0) low = middle + 1;
      else high = middle;
    }
    return -1;
  }
}
