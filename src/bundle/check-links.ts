// Whether the hard links of a stored tree name a file of it: a path from its root, which no part of the tree can tell alone.
import type { Breathe } from "../breathe.ts";
import { decodeEntry, type Entry, type EntryType, entryType } from "../environment/directory/entry.ts";
import { join, parentOf, type RawPath } from "../environment/directory/names.ts";
import { readSnapshot } from "../environment/directory/tree.ts";
import type { Hash, ObjectReader } from "../store/objects.ts";
import { readSequence } from "../store/sequence.ts";
import { damaged } from "./format.ts";

/** What has a name of its own that another can lead to. */
const named: readonly EntryType[] = [
  ...[entryType.file, entryType.symlink, entryType.fifo, entryType.characterDevice, entryType.blockDevice],
  entryType.unread,
];

/** @param hasLinks of a folder's list: something below it is a hard link. @throws BUNDLE_DAMAGED */
export async function checkLinks(
  objects: ObjectReader,
  snapshot: string,
  hasLinks: (list: Hash) => boolean,
  breathe: Breathe,
): Promise<void> {
  const { root } = readSnapshot(objects, snapshot);
  const wanted = new Set<RawPath>();
  await walk(
    objects,
    root,
    (_, folder) => hasLinks(folder.content as Hash),
    breathe,
    (_, entry) => {
      if (entry.type === entryType.hardLink) wanted.add(entry.tail);
    },
  );
  const folders = new Set<RawPath>([""]);
  for (const path of wanted)
    for (let folder = parentOf(path); !folders.has(folder); folder = parentOf(folder)) folders.add(folder);
  if (wanted.size === 0) return;
  await walk(
    objects,
    root,
    (path) => folders.has(path),
    breathe,
    (path, entry) => {
      if (named.includes(entry.type)) wanted.delete(path);
    },
  );
  if (wanted.size > 0) throw damaged("a hard link names no file");
}

async function walk(
  objects: ObjectReader,
  root: Entry,
  enters: (path: RawPath, folder: Entry) => boolean,
  breathe: Breathe,
  visit: (path: RawPath, entry: Entry) => void,
): Promise<void> {
  const waiting: { path: RawPath; folder: Entry }[] = [{ path: "", folder: root }];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (!enters(next.path, next.folder)) continue;
    for (const item of readSequence(objects, next.folder.content as Hash)) {
      const entry = decodeEntry(item);
      const path = join(next.path, entry.name);
      visit(path, entry);
      if (entry.type === entryType.directory) waiting.push({ path, folder: entry });
      const pause = breathe();
      if (pause !== undefined) await pause;
    }
  }
}
