// Reads files piece by piece off the event loop; of a tree all of them, so that the file system checks each against its checksum.
import { closeSync, constants, openSync, read } from "node:fs";
import { readdir } from "node:fs/promises";
import { promisify } from "node:util";
import { fromBytes, join, type RawPath, toBytes } from "../../directory/names.ts";
import type { Problem } from "../../environment.ts";

const piece = 256 << 10;
const readAside = promisify(read);

/** From its beginning to its end; each piece is valid until the next is asked for. */
export async function* readFile(fd: number): AsyncGenerator<Buffer> {
  const buffer = Buffer.allocUnsafe(piece);
  for (let at = 0; ; ) {
    const { bytesRead } = await readAside(fd, buffer, 0, piece, at);
    if (bytesRead === 0) return;
    at += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

/** What could not be read, and why. */
export async function readAll(root: string): Promise<Problem[]> {
  const problems: Problem[] = [];
  const pathOf = (path: RawPath): Buffer => Buffer.concat([Buffer.from(`${root}/`), toBytes(path)]);
  const add = (path: RawPath, error: unknown): void => {
    problems.push({ path, reason: (error as Error).message });
  };
  const waiting: RawPath[] = [""];
  for (let folder = waiting.pop(); folder !== undefined; folder = waiting.pop()) {
    try {
      for (const entry of await readdir(pathOf(folder), { withFileTypes: true, encoding: "buffer" })) {
        const path = join(folder, fromBytes(entry.name));
        if (entry.isDirectory()) waiting.push(path);
        else if (entry.isFile()) await readWhole(pathOf(path)).catch((error) => add(path, error));
      }
    } catch (error) {
      add(folder, error);
    }
  }
  return problems;
}

async function readWhole(path: Buffer): Promise<void> {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    for await (const _ of readFile(fd));
  } finally {
    closeSync(fd);
  }
}
