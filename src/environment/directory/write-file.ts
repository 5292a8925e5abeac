// Writes a file of the workspace as a tool would: through the one that is there, or a new one with the folders above it.
import { closeSync } from "node:fs";
import { writeAll } from "../../store/io.ts";
import { parentOf, type RawPath } from "./names.ts";
import type { Posix } from "./posix.ts";

export function makeFolders(posix: Posix, folder: RawPath): void {
  if (folder === "" || posix.stat(folder) !== undefined) return;
  makeFolders(posix, parentOf(folder));
  posix.makeDirectory(folder);
  posix.setMode(folder, 0o777 & ~process.umask());
}

/** Writes through an existing file, so that its mode and its other names stay; makes a new one otherwise. */
export function replaceFile(posix: Posix, path: RawPath, data: string | Uint8Array): void {
  const present = posix.stat(path);
  if (present === undefined) {
    const fd = posix.create(path);
    try {
      writeAll(fd, Buffer.from(data), 0);
    } finally {
      closeSync(fd);
    }
    posix.setMode(path, 0o666 & ~process.umask());
    return;
  }
  const fd = posix.openWrite(path);
  try {
    writeAll(fd, Buffer.from(data), 0);
  } finally {
    closeSync(fd);
  }
}
