// Which paths a restore is about: what was asked for, and what somebody changed after the state that the caller captured.
import type { Breathe } from "../../breathe.ts";
import type { ObjectReader } from "../../store/objects.ts";
import { entryType } from "./entry.ts";
import { parentOf, type RawPath } from "./names.ts";
import type { Scope } from "./plan-input.ts";
import { compareTrees, readSnapshot } from "./tree.ts";

export const uncapturedReason = "was changed by somebody after it was captured; left as it is";

/** Paths that differ between two states; a directory that is in both is not among them, whatever changed in it. */
export async function changedBetween(
  objects: ObjectReader,
  from: string,
  to: string,
  breathe: Breathe,
): Promise<Set<RawPath>> {
  const changed = new Set<RawPath>();
  const roots = [readSnapshot(objects, from).root, readSnapshot(objects, to).root] as const;
  for (const { path, from: before, to: after } of compareTrees(objects, ...roots)) {
    if (before?.type !== entryType.directory || after?.type !== entryType.directory) changed.add(path);
    const pause = breathe();
    if (pause !== undefined) await pause;
  }
  return changed;
}

/** The scope of a restore of some paths. */
export function pathScope(paths: readonly RawPath[]): Scope {
  const wanted = new Set(paths);
  const above = new Set<RawPath>();
  for (const path of paths) {
    for (let folder = path; folder !== ""; ) {
      folder = parentOf(folder);
      above.add(folder);
    }
  }
  return (path) => {
    for (let at = path; ; at = parentOf(at)) {
      if (wanted.has(at)) return "in";
      if (at === "") return above.has(path) ? "above" : "out";
    }
  };
}
