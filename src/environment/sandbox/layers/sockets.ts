// Restores a state of a sandbox's layers with its Unix sockets: a directory's restore leaves them alone, but processes are bound to theirs by name.
import { constants } from "node:fs";
import { type Breathe, makeBreather } from "../../../breathe.ts";
import type { Hash, ObjectReader } from "../../../store/objects.ts";
import { readSequence } from "../../../store/sequence.ts";
import { decodeEntry, type Entry, entryType } from "../../directory/entry.ts";
import { fromDisplay, join, parentOf, type RawPath, toBytes } from "../../directory/names.ts";
import { openPosix } from "../../directory/open-posix.ts";
import type { Posix } from "../../directory/posix.ts";
import { readSnapshot } from "../../directory/tree.ts";
import type { Environment, Problem } from "../../environment.ts";

/** What a directory says of sockets: here they come back. */
export const isOfSocket = ({ reason }: Problem): boolean => reason.startsWith("is a socket");

/** @param directory of the folder `root`. Gives what is not as the snapshot says. */
export async function restoreLayers(
  directory: Environment,
  root: string,
  objects: ObjectReader,
  files: string,
): Promise<readonly Problem[]> {
  const breathe = makeBreather();
  const posix = openPosix(root);
  try {
    // Those that the state has are made anew; the others would be in the way of folders that go.
    await removeSockets(posix, breathe);
    const { notRestored } = await directory.restore({ files, processes: null });
    const made = await makeSockets(posix, objects, files, breathe);
    return notRestored.filter(({ path }) => !made.has(fromDisplay(path)));
  } finally {
    posix.close();
  }
}

async function removeSockets(posix: Posix, breathe: Breathe): Promise<void> {
  const waiting: RawPath[] = [""];
  for (let folder = waiting.pop(); folder !== undefined; folder = waiting.pop()) {
    for (const { name, type } of posix.readDirectory(folder)) {
      if (type === entryType.directory) waiting.push(join(folder, name));
      else if (type === entryType.socket) posix.unlink(join(folder, name));
    }
    const pause = breathe();
    if (pause !== undefined) await pause;
  }
}

async function makeSockets(
  { native, ...posix }: Posix,
  objects: ObjectReader,
  files: string,
  breathe: Breathe,
): Promise<ReadonlySet<RawPath>> {
  const made = new Set<RawPath>();
  if (native === null) return made;
  const waiting: { path: RawPath; folder: Entry }[] = [{ path: "", folder: readSnapshot(objects, files).root }];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    for (const item of readSequence(objects, next.folder.content as Hash)) {
      const entry = decodeEntry(item);
      const path = join(next.path, entry.name);
      if (entry.type === entryType.directory) waiting.push({ path, folder: entry });
      if (entry.type !== entryType.socket) continue;
      native.makeNode(posix.root, toBytes(path), constants.S_IFSOCK | entry.mode, 0, 0);
      posix.setOwner(path, entry.uid, entry.gid);
      posix.setMode(path, entry.mode);
      posix.setTime(path, entry.mtimeNs);
      posix.setTime(parentOf(path), next.folder.mtimeNs);
      made.add(path);
    }
    const pause = breathe();
    if (pause !== undefined) await pause;
  }
  return made;
}
