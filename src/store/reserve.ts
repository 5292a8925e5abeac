// Room that is kept for gc: on a full disk the catalog could otherwise not be opened, still less changed (F-36).
import { randomBytes } from "node:crypto";
import { closeSync, statfsSync, statSync } from "node:fs";
import { join } from "node:path";
import { openForWriting, remove, writeAll } from "./io.ts";
import type { Layout } from "./layout.ts";

const size = 1 << 20;
/** On a disk that has less left the reserve would be what fills it. */
const roomWanted = 4 * size;

const pathOf = (layout: Layout): string => join(layout.root, "reserve");

/** Makes it where it is not there; does without on a disk that has no room. */
export function keepReserve(layout: Layout): void {
  const path = pathOf(layout);
  if (statSync(path, { throwIfNoEntry: false })?.size === size) return;
  try {
    const { bavail, bsize } = statfsSync(layout.root);
    if (bavail * bsize < roomWanted) return;
    const fd = openForWriting(path, "w");
    try {
      // Bytes that no file system can leave out.
      writeAll(fd, randomBytes(size), 0);
    } finally {
      closeSync(fd);
    }
  } catch {
    remove(path);
  }
}

export function giveReserve(layout: Layout): void {
  try {
    remove(pathOf(layout));
  } catch {
    // There is as much room as there is.
  }
}
