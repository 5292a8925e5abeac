// Reads every file of a tree, so that the file system checks each against its checksum.
import { constants } from "node:fs";
import { open, readdir } from "node:fs/promises";
import { fromBytes, join, type RawPath, toBytes } from "../../directory/names.ts";
import type { Problem } from "../../environment.ts";

const piece = 1 << 20;

/** What could not be read, and why. */
export async function readAll(root: string): Promise<Problem[]> {
  const problems: Problem[] = [];
  const buffer = Buffer.allocUnsafe(piece);
  const pathOf = (path: RawPath): Buffer => Buffer.concat([Buffer.from(`${root}/`), toBytes(path)]);
  const waiting: RawPath[] = [""];
  for (let folder = waiting.pop(); folder !== undefined; folder = waiting.pop()) {
    try {
      for (const entry of await readdir(pathOf(folder), { withFileTypes: true, encoding: "buffer" })) {
        const path = join(folder, fromBytes(entry.name));
        if (entry.isDirectory()) waiting.push(path);
        else if (entry.isFile()) await readFile(pathOf(path), buffer).catch((error) => add(path, error));
      }
    } catch (error) {
      add(folder, error);
    }
  }
  function add(path: RawPath, error: unknown): void {
    problems.push({ path, reason: (error as Error).message });
  }
  return problems;
}

async function readFile(path: Buffer, buffer: Buffer): Promise<void> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    while ((await file.read(buffer)).bytesRead > 0);
  } finally {
    await file.close();
  }
}
