// Who still writes to files that a restore replaces or removes: what such a process writes afterwards is in no file of the workspace, and somebody must know.
import type { Breathe } from "../../breathe.ts";
import type { Native } from "../../native.ts";
import type { Problem } from "../environment.ts";
import type { Plan } from "./draft.ts";
import { entryType } from "./entry.ts";
import { display, type RawPath } from "./names.ts";
import type { Seen } from "./scanner.ts";

/**
 * Empty without the addon.
 * @param ending numbers of processes that end before anything is touched
 */
export async function writersOfReplaced(
  native: Native | null,
  plan: Plan,
  seen: (path: RawPath) => Seen | undefined,
  breathe: Breathe,
  ending: ReadonlySet<number> = new Set(),
): Promise<Problem[]> {
  if (native === null) return [];
  const paths = new Map<bigint, RawPath>();
  for (const list of [plan.moves, plan.removals]) {
    for (const { path } of list) {
      const entry = seen(path);
      if (entry?.type === entryType.file) paths.set(entry.ino, path);
      const pause = breathe();
      if (pause !== undefined) await pause;
    }
  }
  if (paths.size === 0) return [];
  const found = await native.findWriters(BigUint64Array.from(paths.keys()));
  const problems = new Map<RawPath, Problem>();
  for (const [ino, pid] of found) {
    if (ending.has(pid)) continue;
    const path = paths.get(ino) as RawPath;
    const reason = `went back, but process ${pid} still writes to the file that was there: what it writes from now on is in no checkpoint; start it again`;
    problems.set(path, { path: display(path), reason });
  }
  return [...problems.values()];
}
