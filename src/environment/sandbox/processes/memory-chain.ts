// Images that hold only the pages that changed since another one (F-64): how many may hang together, and what a dump needs to be made from one.
import { closeSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { openForWriting, writeAll } from "../../../store/io.ts";

/** Images that a restore reads one behind the other. Behind that a dump holds everything again, so that old ones can be given up. */
export const mostInChain = 8;

/** What `dumpTree` is told of an image in the same folder. */
export const parentPath = (name: string): string => join("..", name);

/** One magic number, where the other images have two. */
const head = 4;
const uptimeField = 8;

/**
 * CRIU takes a process that began behind its image for another one with the same number, and dumps all of it: one that was restored always has. It need not be told apart: another
 * process's memory was never protected (criu-memory.c). So every image says that it was made after all processes will have begun.
 */
export function outlastProcesses(folder: string): void {
  const path = join(folder, "inventory.img");
  const bytes = readFileSync(path);
  // Of a field that comes twice the last one counts.
  const field = Buffer.from([uptimeField << 3, ...Array<number>(8).fill(0xff), 0x3f]);
  const length = bytes.readUInt32LE(head);
  const end = head + 4 + length;
  const patched = Buffer.concat([bytes.subarray(0, end), field, bytes.subarray(end)]);
  patched.writeUInt32LE(length + field.length, head);
  const fd = openForWriting(path, "r+");
  try {
    writeAll(fd, patched, 0);
  } finally {
    closeSync(fd);
  }
}
