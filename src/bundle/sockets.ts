// Unix sockets of a state: a restore leaves them alone, but a sandbox's processes are bound to theirs by name.
import { constants } from "node:fs";
import { decodeEntry, type Entry, entryType } from "../environment/directory/entry.ts";
import { join, parentOf, type RawPath, toBytes } from "../environment/directory/names.ts";
import type { Posix } from "../environment/directory/posix.ts";
import { readSnapshot } from "../environment/directory/tree.ts";
import type { Native } from "../native.ts";
import type { Hash, ObjectReader } from "../store/objects.ts";
import { readSequence } from "../store/sequence.ts";

interface SocketEntry {
  readonly path: RawPath;
  readonly entry: Entry;
  /** Of the folder that holds it. */
  readonly folderTimeNs: bigint;
}

export function socketsOf(objects: ObjectReader, snapshot: string): SocketEntry[] {
  const found: SocketEntry[] = [];
  const waiting: { path: RawPath; folder: Entry }[] = [{ path: "", folder: readSnapshot(objects, snapshot).root }];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    for (const item of readSequence(objects, next.folder.content as Hash)) {
      const entry = decodeEntry(item);
      const path = join(next.path, entry.name);
      if (entry.type === entryType.directory) waiting.push({ path, folder: entry });
      else if (entry.type === entryType.socket) found.push({ path, entry, folderTimeNs: next.folder.mtimeNs });
    }
  }
  return found;
}

export function makeSockets(native: Native, posix: Posix, sockets: readonly SocketEntry[]): void {
  for (const { path, entry, folderTimeNs } of sockets) {
    if (posix.stat(path) === undefined)
      native.makeNode(posix.root, toBytes(path), constants.S_IFSOCK | entry.mode, 0, 0);
    posix.setOwner(path, entry.uid, entry.gid);
    posix.setTime(path, entry.mtimeNs);
    posix.setTime(parentOf(path), folderTimeNs);
  }
}

export function removeSockets(posix: Posix, sockets: readonly SocketEntry[]): void {
  for (const { path } of sockets) if (posix.stat(path)?.type === entryType.socket) posix.unlink(path);
}
