// Objects on their way in: looked up, given room in the pack, written, and made visible at the end (F-5, F-6).
import { setImmediate as nextTurn } from "node:timers/promises";
import { makeBreather } from "../breathe.ts";
import { asWriteFailure } from "../errors.ts";
import { fault } from "../faults.ts";
import type { Sql, Statement } from "./database.ts";
import type { RequireHolder } from "./holder.ts";
import { writeParts } from "./io.ts";
import { bootId, type Hash, hashOf, nameLength, type PackWriter } from "./packs.ts";
import { PendingRows, type RowSlice } from "./pending-rows.ts";

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
const rowsPerCommit = 75;

/** Packs that batches write to, each to one of its own. */
export interface PackPool {
  take(): PackWriter;
  giveBack(pack: PackWriter): void;
}

/** What the store has already and does not mean to drop. */
export interface Known {
  one(hash: Hash): boolean;
  /** @param names 32 bytes each @returns which of them, by their number */
  many(names: Buffer): ReadonlySet<number>;
}

export function openBatch(
  sql: Sql,
  packs: PackPool,
  known: Known,
  insert: Statement,
  enter: () => () => void,
  guard: RequireHolder,
): Batch {
  const grow = sql.prepare("UPDATE pack SET length = max(length, ?), boot = ? WHERE id = ?");
  const rows = new PendingRows();
  /** Bytes that have their room, end to end, and are still to be written there. */
  let buffered: Uint8Array[] = [];
  let bufferedFrom = 0;
  let bufferedBytes = 0;
  let written = 0;
  let writer: PackWriter | undefined;
  /** What was found in the store stays until the batch has ended (F-32). */
  let leaveUse: (() => void) | undefined;

  function use(): PackWriter {
    writer ??= packs.take();
    return writer;
  }

  function flush(): void {
    if (buffered.length === 0) return;
    writeParts(use().fd, buffered, bufferedBytes, bufferedFrom);
    written += bufferedBytes;
    buffered = [];
    bufferedBytes = 0;
  }

  function leave(): void {
    rows.clear();
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

  /** As many rows as one transaction takes. */
  function commitSlice({ names, places, end }: RowSlice): void {
    const pack = use();
    sql
      .transaction(() => {
        guard();
        insert.run({ names, places, pack: pack.id });
        grow.run(end, bootId(), pack.id);
      })
      .immediate();
    pack.committed(end);
  }

  return {
    put(bytes) {
      const hash = hashOf(bytes);
      leaveUse ??= enter();
      if (rows.has(hash, 0) || known.one(hash)) return hash;
      try {
        const offset = use().reserve(bytes.length);
        if (buffered.length === 0) bufferedFrom = offset;
        rows.add(hash, 0, offset, bytes.length);
        buffered.push(bytes);
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
      const pack = use();
      flush();
      for (let i = 0; i < lengths.length; i++) {
        const at = i * nameLength;
        const length = lengths[i] as number;
        const isNew = !present.has(i) && !rows.has(names, at);
        offsets[i] = isNew ? pack.reserve(length) : -1;
        if (!isNew) continue;
        rows.add(names, at, offsets[i] as number, length);
        written += length;
      }
      return { fd: pack.fd, offsets };
    },

    async commit() {
      try {
        flush();
        fault("objects.written");
        const breathe = makeBreather();
        let waits = false;
        // Turns of their own for what was before and for what is done with the result: in a first checkpoint all of it runs for the first time.
        if (rows.size > rowsPerCommit) await nextTurn();
        for (const slice of rows.slices(rowsPerCommit)) {
          commitSlice(slice);
          const pause = breathe();
          waits ||= pause !== undefined;
          await pause;
        }
        if (waits) await nextTurn();
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
