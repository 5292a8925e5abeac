// Runs the steps of a restore through the addon: from several threads, off the main thread, in batches of which the next is packed meanwhile.

import { closeSync, constants, openSync } from "node:fs";
import type { Breathe } from "../../breathe.ts";
import { failureKind, type Native } from "../../native.ts";
import type { ObjectReader } from "../../store/objects.ts";
import { readSequence } from "../../store/sequence.ts";
import { blockSize, decodeBlock, everyPage } from "./block.ts";
import { entryFlag, entryType } from "./entry.ts";
import { type Job, type JobFailure, type JobRunner, type Known, operation } from "./job.ts";

const batchBytes = 512 << 10;
const firstBytes = 4 << 10;
const header = 24;
const knownSize = 32;
const recordSize = 64;
const knownFlag = 1;
const sharedFlag = 2;
const none = Buffer.alloc(0);

const kinds = Object.fromEntries(Object.entries(failureKind).map(([name, number]) => [number, name])) as Record<
  number,
  JobFailure["kind"]
>;

export function nativeJobs(rootPath: string, native: Native, objects: ObjectReader, breathe: Breathe): JobRunner {
  async function submit(root: number, batch: Batch, failed: (job: Job, failure: JobFailure) => void): Promise<void> {
    for (const { index, kind, code, syscall } of await native.runJobs(root, batch.bytes())) {
      failed(batch.jobs[index] as Job, { kind: kinds[kind] as JobFailure["kind"], code, syscall });
    }
  }

  return {
    async run(jobs, failed) {
      const root = openSync(rootPath, constants.O_RDONLY | constants.O_DIRECTORY);
      let flying: Promise<void> = Promise.resolve();
      const send = async (batch: Batch): Promise<void> => {
        await flying;
        flying = submit(root, batch, failed);
        // It is awaited before the next; until then a rejection is not unhandled.
        flying.catch(() => {});
      };
      try {
        let batch = new Batch();
        for (const job of jobs) {
          try {
            batch.add(job, objects);
          } catch (cause) {
            failed(job, { kind: "damaged", code: "", syscall: "", cause });
          }
          if (batch.size >= batchBytes) {
            await send(batch);
            batch = new Batch();
          }
          const pause = breathe();
          if (pause !== undefined) await pause;
        }
        if (batch.size > 0) await send(batch);
        await flying;
      } finally {
        await flying.catch(() => {});
        closeSync(root);
      }
    },
  };
}

/** Jobs as native/core/restore-job.cpp reads them. */
class Batch {
  readonly jobs: Job[] = [];
  #buffer = Buffer.allocUnsafe(firstBytes);
  size = 0;

  bytes(): Buffer {
    return this.#buffer.subarray(0, this.size);
  }

  /** @throws STORE_CORRUPT and errors of reading, with nothing added */
  add(job: Job, objects: ObjectReader): void {
    const { at, from = "", temporary = "", entry = none, known } = job;
    const blocks = job.operation === operation.stage ? blocksOf(entry, objects) : none;
    const length = header + knownSize + at.length + from.length + temporary.length + entry.length + blocks.length;
    this.#reserve(length);
    const out = this.#buffer;
    let to = this.size;
    to = out.writeUInt8(job.operation, to);
    to = out.writeUInt8((known === undefined ? 0 : knownFlag) | (job.shared === true ? sharedFlag : 0), to);
    to = out.writeUInt8(known?.type ?? 0, to);
    to = out.writeUInt8(0, to);
    for (const size of [at.length, from.length, temporary.length, entry.length, blocks.length / recordSize]) {
      to = out.writeUInt32LE(size, to);
    }
    if (known !== undefined) to = writeKnown(out, known, to);
    for (const path of [at, from, temporary]) to += out.write(path, to, "latin1");
    to += entry.copy(out, to);
    to += blocks.copy(out, to);
    this.size = to;
    this.jobs.push(job);
  }

  #reserve(length: number): void {
    if (this.size + length <= this.#buffer.length) return;
    const larger = Buffer.allocUnsafe(2 * (this.size + length));
    this.#buffer.copy(larger, 0, 0, this.size);
    this.#buffer = larger;
  }
}

function writeKnown(out: Buffer, known: Known, at: number): number {
  let to = out.writeBigUInt64LE(known.ino, at);
  to = out.writeBigInt64LE(known.ctimeNs, to);
  to = out.writeBigInt64LE(known.mtimeNs, to);
  return out.writeBigUInt64LE(BigInt(known.size), to);
}

/** Where the content of a stored entry lies. */
function blocksOf(entry: Buffer, objects: ObjectReader): Buffer {
  if (entry[0] !== entryType.file) return none;
  const content = entry.subarray(entry.length - 32);
  if (((entry[1] as number) & entryFlag.blocks) === 0) {
    const record = Buffer.allocUnsafe(recordSize);
    writeRecord(record, 0, content, 0, everyPage, objects);
    return record;
  }
  let out = Buffer.allocUnsafe(64 * recordSize);
  let used = 0;
  let position = 0;
  for (const item of readSequence(objects, content)) {
    const block = decodeBlock(item);
    if (block.content !== null) {
      if (used === out.length) out = Buffer.concat([out, Buffer.allocUnsafe(out.length)]);
      writeRecord(out, used, block.content, position, block.pages, objects);
      used += recordSize;
    }
    position += blockSize;
  }
  return out.subarray(0, used);
}

function writeRecord(
  out: Buffer,
  at: number,
  name: Buffer,
  position: number,
  pages: bigint,
  objects: ObjectReader,
): void {
  const found = objects.locate(name);
  if (found === undefined) throw new Error(`object ${name.toString("hex")} is missing`);
  out.writeInt32LE(found.fd, at);
  out.writeUInt32LE(found.length, at + 4);
  out.writeBigUInt64LE(BigInt(found.offset), at + 8);
  out.writeBigUInt64LE(BigInt(position), at + 16);
  out.writeBigUInt64LE(pages, at + 24);
  name.copy(out, at + 32);
}
