// The inodes of the working space of overlays: what changes there is no change of the state.
import { lstat, readdir } from "node:fs/promises";
import { join } from "node:path";

/** Where there is more, an overlay is in the middle of something. */
const most = 1000;

/** Of the folders and all below them. */
export async function scratchInodes(folders: readonly string[]): Promise<ReadonlySet<bigint>> {
  const found = new Set<bigint>();
  const waiting = [...folders];
  for (let path = waiting.pop(); path !== undefined && found.size < most; path = waiting.pop()) {
    const stat = await lstat(path, { bigint: true });
    found.add(stat.ino);
    if (!stat.isDirectory()) continue;
    for (const name of await readdir(path)) waiting.push(join(path, name));
  }
  return found;
}
