// Room that is kept for gc: on a full disk the catalog could otherwise not be opened, still less changed (F-36).

import { randomBytes } from "node:crypto";
import { closeSync, openSync, rmSync, statfsSync, statSync, writeSync } from "node:fs";
import { join } from "node:path";
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
    const fd = openSync(path, "w", 0o600);
    try {
      // Bytes that no file system can leave out.
      const bytes = randomBytes(size);
      for (let done = 0; done < size; ) done += writeSync(fd, bytes, done);
    } finally {
      closeSync(fd);
    }
  } catch {
    rmSync(path, { force: true });
  }
}

export function giveReserve(layout: Layout): void {
  rmSync(pathOf(layout), { force: true });
}
