// Who still writes to files that a restore replaces or removes: what such a process writes afterwards is in no file of the workspace, and somebody must know.

import { fstatSync, readdirSync, statSync } from "node:fs";
import { join as joinPath } from "node:path";
import type { Breathe } from "../../breathe.ts";
import type { Problem } from "../environment.ts";
import type { Plan } from "./draft.ts";
import { entryType } from "./entry.ts";
import { display, type RawPath } from "./names.ts";
import type { Posix } from "./posix.ts";
import type { Seen } from "./scanner.ts";

/**
 * Empty without the addon.
 * @param ending numbers of processes that end before anything is touched
 */
export async function writersOfReplaced(
  { native, root }: Posix,
  plan: Plan,
  seen: (path: RawPath) => Seen | undefined,
  breathe: Breathe,
  ending: ReadonlySet<number> = new Set(),
): Promise<Problem[]> {
  if (native === null) return [];
  const { dev } = fstatSync(root, { bigint: true });
  const paths = new Map<bigint, { path: RawPath; file: Seen }>();
  for (const list of [plan.moves, plan.removals]) {
    for (const { path } of list) {
      const entry = seen(path);
      if (entry?.type === entryType.file) paths.set(entry.ino, { path, file: entry });
      const pause = breathe();
      if (pause !== undefined) await pause;
    }
  }
  if (paths.size === 0) return [];
  const found = await native.findWriters(BigUint64Array.from(paths.keys()));
  const problems = new Map<RawPath, Problem>();
  for (const [ino, pid] of found) {
    if (ending.has(pid)) continue;
    const { path, file } = paths.get(ino) as { path: RawPath; file: Seen };
    if (!has(pid, file, dev)) continue;
    const pause = breathe();
    if (pause !== undefined) await pause;
    const reason = `went back, but process ${pid} still writes to the file that was there: what it writes from now on is in no checkpoint; start it again`;
    problems.set(path, { path: display(path), reason });
  }
  return [...problems.values()];
}

/** The same number may be another file's, on another file system. Through an overlay or the like a file has another device, and all else is the same. */
function has(pid: number, { ino, size, mtimeNs }: Seen, dev: bigint): boolean {
  const isIt = (path: string): boolean => {
    try {
      const one = statSync(path, { bigint: true });
      return one.ino === ino && (one.dev === dev || (one.size === BigInt(size) && one.mtimeNs === mtimeNs));
    } catch {
      return false;
    }
  };
  for (const kind of ["fd", "map_files"]) {
    const folder = `/proc/${pid}/${kind}`;
    try {
      if (readdirSync(folder).some((name) => isIt(joinPath(folder, name)))) return true;
    } catch {
      // Gone, or not to be looked at: what was found holds.
      return kind === "map_files";
    }
  }
  return false;
}
