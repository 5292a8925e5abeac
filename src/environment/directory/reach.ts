// How gc and the stat cache walk a stored tree (F-34).
import { makeBreather } from "../../breathe.ts";
import type { Hash, ObjectReader } from "../../store/objects.ts";
import { content, type Kind, kindBit, walk } from "../../store/reach.ts";
import { chunkEdges } from "../../store/sequence.ts";
import { decodeBlock } from "./block.ts";
import { decodeEntry, type Entry, entryFlag, entryType } from "./entry.ts";

export const blocksKind: Kind = {
  bit: kindBit.blocks,
  edges: (bytes, visit) =>
    chunkEdges(
      bytes,
      (hash) => visit(blocksKind, hash),
      (item) => {
        const block = decodeBlock(item);
        if (block.content !== null) visit(content, block.content);
      },
    ),
};

export const treeKind: Kind = {
  bit: kindBit.tree,
  edges: (bytes, visit) =>
    chunkEdges(
      bytes,
      (hash) => visit(treeKind, hash),
      (item) => entryEdge(decodeEntry(item), visit),
    ),
};

export const snapshotKind: Kind = {
  bit: kindBit.snapshot,
  edges: (bytes, visit) => entryEdge(decodeEntry(bytes.subarray(2)), visit),
};

function entryEdge(entry: Entry, visit: (kind: Kind, hash: Hash) => void): void {
  if (entry.content === null) return;
  if (entry.type === entryType.directory) visit(treeKind, entry.content);
  else visit((entry.flags & entryFlag.blocks) === 0 ? content : blocksKind, entry.content);
}

/** True when everything of the snapshot is in the store and stays: a scan may build on it (F-33). Ask inside of a use. */
export async function isHeld(objects: ObjectReader & { holds(hash: Hash): boolean }, snapshot: Hash): Promise<boolean> {
  const known = new Map<string, number>();
  let held = true;
  const seen = {
    add(hash: Hash, kind: Kind): boolean {
      const key = hash.toString("latin1");
      const bits = known.get(key) ?? 0;
      if ((bits & kind.bit) !== 0) return false;
      if (bits === 0) held &&= objects.holds(hash);
      known.set(key, bits | kind.bit);
      return held;
    },
  };
  try {
    await walk(objects, seen, snapshotKind, snapshot, makeBreather());
    return held;
  } catch {
    return false;
  }
}
