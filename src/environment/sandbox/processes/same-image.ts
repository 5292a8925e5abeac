// Whether two dumps hold the same processes in the same state: every page, register, descriptor and offset.
import { readdirSync, statSync } from "node:fs";
import { type FileHandle, open, readFile } from "node:fs/promises";
import { join } from "node:path";
import { readImage } from "./images.ts";
import { pagemap, threadArea } from "./messages.ts";

/** Differs from dump to dump of the same state: what tells of the dump itself, and the clocks. */
const ofTheDump = /^(stats-.*|inventory\.img|timens-\d+\.img|.*\.log|about\.json)$/;
const ofCore = /^core-\d+\.img$/;
const ofPages = /^pages-(\d+)\.img$/;
/** Two magic numbers. */
const imageHead = 8;
const taskField = 3;
const flagsField = 4;
const pageSize = 4096;
const inParent = 1;
const present = 4;
const chunkSize = 256 << 10;
/** Fields of struct rseq that tell on which processor a thread ran last (linux/rseq.h): the kernel writes them, and nothing depends on them behind a restart. */
const processorFields = [
  [0, 8],
  [16, 24],
] as const;

export async function isSameImage(folder: string, other: string): Promise<boolean> {
  const [one, two] = [listed(folder), listed(other)];
  if (one.length !== two.length) return false;
  for (const [index, file] of one.entries()) {
    if (file !== two[index] || sizeOf(folder, file) !== sizeOf(other, file)) return false;
  }
  const pages = one.filter((file) => ofPages.test(file));
  for (const file of one.filter((name) => !ofPages.test(name))) {
    const ignored = ofCore.test(file) ? await forkMark(join(folder, file)) : [];
    if ((await firstDifference(join(folder, file), join(other, file), ignored)) !== null) return false;
  }
  if (pages.length === 0) return true;
  const ignored = await processorRanges(folder, one);
  for (const file of pages) {
    const ranges = ignored.get(Number(ofPages.exec(file)?.[1])) ?? [];
    if ((await firstDifference(join(folder, file), join(other, file), ranges)) !== null) return false;
  }
  return true;
}

type Range = readonly [from: number, to: number];

/** By the number of the pages file, where in it the ignored fields lie. */
async function processorRanges(folder: string, files: readonly string[]): Promise<Map<number, Range[]>> {
  const areas: number[] = [];
  for (const file of files.filter((name) => ofCore.test(name))) {
    const at = (await readImage(threadArea, join(folder, file)))?.[0]?.thread_core?.rseq_entry?.rseq_abi_pointer;
    if (at !== undefined && at !== 0) areas.push(at);
  }
  const found = new Map<number, Range[]>();
  for (const file of files.filter((name) => /^pagemap-\d+\.img$/.test(name))) {
    const [head, ...maps] = (await readImage(pagemap, join(folder, file))) ?? [];
    const ranges: Range[] = [];
    let offset = 0;
    for (const {
      vaddr_or_pages_id: start = 0,
      compat_nr_pages,
      nr_pages = compat_nr_pages ?? 0,
      flags = present,
      in_parent,
    } of maps) {
      if ((flags & present) === 0 || (flags & inParent) !== 0 || in_parent === true) continue;
      const length = nr_pages * pageSize;
      for (const area of areas) {
        if (area < start || area >= start + length) continue;
        for (const [from, to] of processorFields)
          ranges.push([offset + area - start + from, offset + area - start + to]);
      }
      offset += length;
    }
    const number = head?.vaddr_or_pages_id ?? 0;
    found.set(number, [...(found.get(number) ?? []), ...ranges]);
  }
  return found;
}

/**
 * The lowest byte of the kernel's flags of a task (core_entry.tc.flags): there is PF_FORKNOEXEC, which a restored process has, since CRIU forked it, and which nothing depends on.
 */
async function forkMark(path: string): Promise<Range[]> {
  const bytes = await readFile(path);
  if (bytes.length < imageHead + 4) return [];
  const message = { from: imageHead + 4, to: Math.min(bytes.length, imageHead + 4 + bytes.readUInt32LE(imageHead)) };
  const task = fieldIn(bytes, message, taskField);
  const flags = task === undefined ? undefined : fieldIn(bytes, task, flagsField);
  return flags === undefined ? [] : [[flags.from, flags.from + 1]];
}

interface Stretch {
  readonly from: number;
  readonly to: number;
}

/** Where the value of a message's field lies: of a protobuf with fields of lengths and varints, as CRIU's are. */
function fieldIn(bytes: Buffer, { from, to }: Stretch, wanted: number): Stretch | undefined {
  const fixed: Readonly<Record<number, number>> = { 1: 8, 5: 4 };
  const varint = (at: number): { value: number; end: number } => {
    let value = 0;
    let end = at;
    for (let scale = 1; ; scale *= 128) {
      const byte = bytes[end++] ?? 0;
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return { value, end };
    }
  };
  for (let at = from; at < to; ) {
    const tag = varint(at);
    const kind = tag.value % 8;
    const first = varint(tag.end);
    const start = kind === 2 ? first.end : tag.end;
    const end = kind === 2 ? first.end + first.value : kind === 0 ? first.end : tag.end + (fixed[kind] ?? to);
    if (Math.floor(tag.value / 8) === wanted) return { from: start, to: end };
    at = end;
  }
  return undefined;
}

/** The first byte outside of `ignored` in which two files of the same size differ. */
async function firstDifference(one: string, two: string, ignored: readonly Range[]): Promise<number | null> {
  const files: FileHandle[] = [];
  try {
    files.push(await open(one), await open(two));
    const [left, right] = [Buffer.allocUnsafe(chunkSize), Buffer.allocUnsafe(chunkSize)];
    for (let at = 0; ; at += chunkSize) {
      const [a, b] = await Promise.all(
        files.map((file, index) => file.read(index === 0 ? left : right, 0, chunkSize, at)),
      );
      const length = a?.bytesRead ?? 0;
      if (length !== b?.bytesRead) return at + Math.min(length, b?.bytesRead ?? 0);
      for (const [from, to] of ignored) {
        const [start, end] = [Math.max(from - at, 0), Math.min(to - at, length)];
        if (start < end) for (const side of [left, right]) side.fill(0, start, end);
      }
      if (!left.subarray(0, length).equals(right.subarray(0, length))) return at;
      if (length < chunkSize) return null;
    }
  } finally {
    await Promise.all(files.map((file) => file.close()));
  }
}

const listed = (folder: string): string[] =>
  readdirSync(folder)
    .filter((name) => !ofTheDump.test(name))
    .sort();

const sizeOf = (folder: string, file: string): number => statSync(join(folder, file)).size;
