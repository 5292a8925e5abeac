// Objects on their way in: looked up, given room in the pack, written, and made visible at the end (F-5, F-6).
import { makeBreather } from "../breathe.ts";
import { asWriteFailure } from "../errors.ts";
import { fault } from "../faults.ts";
import type { Sql, Statement } from "./database.ts";
import { bootId, type Hash, hashOf, type PackWriter } from "./packs.ts";

/** Nothing of a batch is visible before its `commit`; one that is dropped leaves only unused bytes. */
export interface Batch {
  /** Stores the bytes unless the store has them; they must not change before `commit`. @throws DISK_FULL */
  put(bytes: Uint8Array): Hash;
  /**
   * For a caller that writes the bytes itself (the addon's threads): room for the objects of these names and lengths.
   * The caller writes each at its offset before it calls `commit`, and calls `discard` when it cannot.
   * @param names 32 bytes each
   */
  reserve(names: Buffer, lengths: Uint32Array): Room;
  /** Makes everything that was put or reserved visible (F-6). Resolves to the bytes written. @throws DISK_FULL */
  commit(): Promise<number>;
  /** Gives up what was put and not committed. A batch that failed has done so. */
  discard(): void;
}

export interface Room {
  /** Descriptor of the pack; the batch's own until it ends. */
  readonly fd: number;
  /** Where each object belongs; -1 where the store has it already. Those that are not -1 lie end to end. */
  readonly offsets: Float64Array;
}

const bufferLimit = 1 << 20;
const rowsPerCommit = 200;
/** Below this comparing is cheaper than counting. */
const fewRows = 4096;

/** Rows that wait for the commit, in flat arrays: a first checkpoint has hundreds of thousands. */
interface Rows {
  readonly names: Buffer;
  readonly offsets: ArrayLike<number>;
  readonly lengths: ArrayLike<number>;
}

/** Packs that batches write to, each to one of its own. */
export interface PackPool {
  take(): PackWriter;
  giveBack(pack: PackWriter): void;
}

/** What the store has already and does not mean to drop. */
export interface Known {
  one(hash: Hash, key: string): boolean;
  /** @param names 32 bytes each @returns which of them, by their number */
  many(names: Buffer): ReadonlySet<number>;
}

export function openBatch(sql: Sql, packs: PackPool, known: Known, insert: Statement, enter: () => () => void): Batch {
  const grow = sql.prepare("UPDATE pack SET length = max(length, ?), boot = ? WHERE id = ?");
  const seen = new Set<string>();
  let rows: Rows[] = [];
  let buffered: { hash: Hash; bytes: Uint8Array }[] = [];
  let bufferedBytes = 0;
  let written = 0;
  let writer: PackWriter | undefined;
  /** What was found in the store stays until the batch has ended (F-32). */
  let leaveUse: (() => void) | undefined;

  function use(): PackWriter {
    writer ??= packs.take();
    return writer;
  }

  function isNew(hash: Hash, isKnown: (hash: Hash, key: string) => boolean): boolean {
    const key = hash.toString("latin1");
    if (seen.has(key) || isKnown(hash, key)) return false;
    seen.add(key);
    return true;
  }

  function flush(): void {
    if (buffered.length === 0) return;
    let offset = use().append(
      buffered.map((one) => one.bytes),
      bufferedBytes,
    );
    const offsets = buffered.map(({ bytes }) => {
      offset += bytes.length;
      return offset - bytes.length;
    });
    const names = Buffer.concat(buffered.map((one) => one.hash));
    rows.push({ names, offsets, lengths: buffered.map((one) => one.bytes.length) });
    written += bufferedBytes;
    buffered = [];
    bufferedBytes = 0;
  }

  function leave(): void {
    seen.clear();
    rows = [];
    buffered = [];
    bufferedBytes = 0;
    written = 0;
    const pack = writer;
    writer = undefined;
    leaveUse?.();
    leaveUse = undefined;
    if (pack === undefined) return;
    pack.leave();
    packs.giveBack(pack);
  }

  function failed(error: unknown): unknown {
    leave();
    return asWriteFailure(error, "the store");
  }

  /** The rows of `order` from `from` on, as many as one transaction takes. Returns where the next begins. */
  function commitSlice({ names, offsets, lengths }: Rows, order: Uint32Array, from: number): number {
    const to = Math.min(from + rowsPerCommit, order.length);
    const pack = use();
    let end = 0;
    sql
      .transaction(() => {
        for (let at = from; at < to; at++) {
          const i = order[at] as number;
          const offset = offsets[i] as number;
          insert.run(names.subarray(i * 32, i * 32 + 32), pack.id, offset, lengths[i]);
          end = Math.max(end, offset + (lengths[i] as number));
        }
        grow.run(end, bootId(), pack.id);
      })
      .immediate();
    pack.committed(end);
    return to;
  }

  return {
    put(bytes) {
      const hash = hashOf(bytes);
      leaveUse ??= enter();
      if (!isNew(hash, known.one)) return hash;
      try {
        buffered.push({ hash, bytes });
        bufferedBytes += bytes.length;
        if (bufferedBytes >= bufferLimit) flush();
      } catch (error) {
        throw failed(error);
      }
      return hash;
    },

    reserve(names, lengths) {
      const offsets = new Float64Array(lengths.length);
      leaveUse ??= enter();
      const present = known.many(names);
      let size = 0;
      for (let i = 0; i < lengths.length; i++) {
        const fresh = isNew(names.subarray(i * 32, i * 32 + 32), () => present.has(i));
        offsets[i] = fresh ? size : -1;
        if (fresh) size += lengths[i] as number;
      }
      const pack = use();
      const start = pack.reserve(size);
      for (let i = 0; i < offsets.length; i++)
        if ((offsets[i] as number) >= 0) offsets[i] = start + (offsets[i] as number);
      // An empty object takes no room and has a row all the same.
      if (offsets.some((offset) => offset >= 0)) rows.push({ names, offsets, lengths });
      written += size;
      return { fd: pack.fd, offsets };
    },

    async commit() {
      try {
        flush();
        fault("objects.written");
        const breathe = makeBreather();
        const all = joined(rows);
        const order = inOrder(all);
        for (let from = 0; from < order.length; ) {
          from = commitSlice(all, order, from);
          await breathe();
        }
      } catch (error) {
        throw failed(error);
      }
      fault("objects.committed");
      const bytes = written;
      leave();
      return bytes;
    },

    discard: leave,
  };
}

function joined(rows: readonly Rows[]): Rows {
  const count = rows.reduce((sum, { offsets }) => sum + offsets.length, 0);
  const offsets = new Float64Array(count);
  const lengths = new Uint32Array(count);
  let at = 0;
  for (const chunk of rows) {
    offsets.set(chunk.offsets, at);
    lengths.set(chunk.lengths, at);
    at += chunk.offsets.length;
  }
  return { names: Buffer.concat(rows.map(({ names }) => names)), offsets, lengths };
}

/** Those that have room in the pack, by their names' first bytes: neighbours lie on the same pages of the catalog, and a commit writes few of them. */
function inOrder({ names, offsets }: Rows): Uint32Array {
  const prefix = (i: number): number => names.readUInt16BE(i * 32);
  if (offsets.length < fewRows) {
    const few = Uint32Array.from(offsets, (_, i) => i).filter((i) => (offsets[i] as number) >= 0);
    return few.sort((a, b) => prefix(a) - prefix(b));
  }
  const starts = new Uint32Array(65_537);
  let count = 0;
  for (let i = 0; i < offsets.length; i++) {
    if ((offsets[i] as number) < 0) continue;
    count++;
    starts[prefix(i) + 1] = (starts[prefix(i) + 1] as number) + 1;
  }
  for (let bucket = 1; bucket < starts.length; bucket++)
    starts[bucket] = (starts[bucket] as number) + (starts[bucket - 1] as number);
  const order = new Uint32Array(count);
  for (let i = 0; i < offsets.length; i++) {
    if ((offsets[i] as number) < 0) continue;
    const bucket = prefix(i);
    order[starts[bucket] as number] = i;
    starts[bucket] = (starts[bucket] as number) + 1;
  }
  return order;
}
