// Whether two dumps hold the same processes in the same state: every page, register, descriptor and offset.
import { readdirSync, statSync } from "node:fs";
import { type FileHandle, open, readFile } from "node:fs/promises";
import { join } from "node:path";
import { apart, isPagemap, isPagesFile, pagemapsOf, pagesOf, parentLink } from "./image-pages.ts";
import { readImage } from "./images.ts";
import { threadArea } from "./messages.ts";

/** Differs from dump to dump of the same state: what tells of the dump itself, and the clocks. */
const ofTheDump = /^(stats-.*|inventory\.img|timens-\d+\.img|.*\.log|about\.json)$/;
const ofCore = /^core-\d+\.img$/;
/** Two magic numbers. */
const imageHead = 8;
const taskField = 3;
const flagsField = 4;
const chunkSize = 256 << 10;
/** Fields of struct rseq that tell on which processor a thread ran last (linux/rseq.h): the kernel writes them, and nothing depends on them behind a restart. */
const processorFields = [
  [0, 8],
  [16, 24],
] as const;

export async function isSameImage(folder: string, other: string): Promise<boolean> {
  const [one, two] = [listed(folder), listed(other)];
  if (one.length !== two.length) return false;
  for (const [index, file] of one.entries()) if (file !== two[index]) return false;
  const files = one.filter((name) => !isPagemap(name));
  for (const file of files) if (sizeOf(folder, file) !== sizeOf(other, file)) return false;
  for (const file of files) {
    const ignored = ofCore.test(file) ? await forkMark(join(folder, file)) : [];
    const [left, right] = [folder, other].map((at) => ({ file: join(at, file), offset: 0 })) as [Place, Place];
    if (!(await areEqual(left, right, Number.POSITIVE_INFINITY, ignored))) return false;
  }
  return haveSamePages(folder, other);
}

async function haveSamePages(folder: string, other: string): Promise<boolean> {
  const ignored = await processorFieldsOf(folder);
  for (const name of pagemapsOf(folder)) {
    const differing = apart(await pagesOf(folder, name), await pagesOf(other, name));
    if (differing === null) return false;
    for (const [left, right] of differing) {
      const inside = ignored.map(([from, to]): Range => [from - left.start, to - left.start]);
      if (!(await areEqual(left, right, left.length, inside))) return false;
    }
  }
  return true;
}

type Range = readonly [from: number, to: number];

/** Addresses of the ignored fields, of all processes. */
async function processorFieldsOf(folder: string): Promise<Range[]> {
  const found: Range[] = [];
  for (const file of readdirSync(folder).filter((name) => ofCore.test(name))) {
    const at = (await readImage(threadArea, join(folder, file)))?.[0]?.thread_core?.rseq_entry?.rseq_abi_pointer ?? 0;
    if (at !== 0) for (const [from, to] of processorFields) found.push([at + from, at + to]);
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

interface Place {
  readonly file: string;
  readonly offset: number;
}

/** Less the bytes of `ignored`, which are counted from where the two begin. @param length of what is compared; infinite: to the end of both, which have the same size */
async function areEqual(one: Place, two: Place, length: number, ignored: readonly Range[]): Promise<boolean> {
  const files: FileHandle[] = [];
  try {
    files.push(await open(one.file), await open(two.file));
    const [left, right] = [Buffer.allocUnsafe(chunkSize), Buffer.allocUnsafe(chunkSize)];
    for (let at = 0; at < length; at += chunkSize) {
      const wanted = Math.min(chunkSize, length - at);
      const [a, b] = await Promise.all(
        files.map((file, index) =>
          file.read(index === 0 ? left : right, 0, wanted, at + (index === 0 ? one : two).offset),
        ),
      );
      const got = a?.bytesRead ?? 0;
      if (got !== b?.bytesRead) return false;
      for (const [from, to] of ignored) {
        const [start, end] = [Math.max(from - at, 0), Math.min(to - at, got)];
        if (start < end) for (const side of [left, right]) side.fill(0, start, end);
      }
      if (!left.subarray(0, got).equals(right.subarray(0, got))) return false;
      if (got < wanted) break;
    }
    return true;
  } finally {
    await Promise.all(files.map((file) => file.close()));
  }
}

const listed = (folder: string): string[] =>
  readdirSync(folder)
    .filter((name) => !ofTheDump.test(name) && !isPagesFile(name) && name !== parentLink)
    .sort();

const sizeOf = (folder: string, file: string): number => statSync(join(folder, file)).size;
