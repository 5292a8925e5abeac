// Files with names outside of the workspace that a restore replaces: those names keep the file that was there, and somebody must know.
import type { Breathe } from "../../breathe.ts";
import type { Problem } from "../environment.ts";
import type { Plan } from "./draft.ts";
import { entryType } from "./entry.ts";
import { display, type RawPath } from "./names.ts";
import type { Seen } from "./scanner.ts";

export async function outsideNames(
  plan: Plan,
  seen: (path: RawPath) => Seen | undefined,
  groups: ReadonlyMap<RawPath, readonly RawPath[]>,
  unreadFolders: number,
  breathe: Breathe,
): Promise<Problem[]> {
  const inside = new Map<RawPath, number>();
  for (const members of groups.values()) {
    for (const member of members) inside.set(member, members.length);
    const pause = breathe();
    if (pause !== undefined) await pause;
  }
  const where =
    unreadFolders === 0
      ? "names outside of the workspace"
      : "names outside of the workspace or in folders that cannot be read";
  const reason = `went back; ${where} still lead to the file that was there`;
  const found: Problem[] = [];
  for (const list of [plan.moves, plan.links]) {
    for (const { path } of list) {
      const entry = seen(path);
      if (entry !== undefined && entry.type !== entryType.directory && entry.nlink > (inside.get(path) ?? 1)) {
        found.push({ path: display(path), reason });
      }
      const pause = breathe();
      if (pause !== undefined) await pause;
    }
  }
  return found;
}
