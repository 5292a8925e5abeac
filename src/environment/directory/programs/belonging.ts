// Which processes belong to which run. A process is a run's only where that is certain: what is in doubt is nobody's and is never touched.
import { markVariable, runsIn } from "./mark.ts";
import { keyOf, type Run } from "./run.ts";
import type { SeenProcess } from "./seeing.ts";

/**
 * By its mark; because it is known; because it is in a process group that was made for the run and still has one of it; because its parent is one. The group's number alone says
 * nothing: it may have been given out again.
 * @param runs `sure`: groups of which nothing else is needed, because a process of theirs was seen to end a moment ago
 * @param self this process: it, and what it descends from, are nobody's
 */
export function belonging(
  seen: readonly SeenProcess[],
  runs: readonly (Pick<Run, "id" | "groups" | "known"> & { readonly sure?: readonly number[] })[],
  environment: string,
  self: number = process.pid,
): Map<string, SeenProcess[]> {
  const byPid = new Map(seen.map((one) => [one.pid, one]));
  const around = new Set(runsAround(environment));
  const known = new Map(runs.flatMap(({ id, known }) => known.map((one) => [keyOf(one), id] as const)));
  const owners = new Map<number, string | null>();
  for (let at = byPid.get(self); at !== undefined && !owners.has(at.pid); at = byPid.get(at.parent))
    owners.set(at.pid, null);
  const groups = new Map(runs.flatMap(({ id, sure = [] }) => sure.map((group) => [group, id] as const)));
  for (const one of seen) {
    const marked = runsIn(one.marks, environment).findLast((id) => !around.has(id));
    const owner = marked ?? known.get(keyOf(one));
    if (owner === undefined || owners.has(one.pid)) continue;
    owners.set(one.pid, owner);
    if (runs.some(({ id, groups }) => id === owner && groups.includes(one.group))) groups.set(one.group, owner);
  }
  const ownerOf = (one: SeenProcess): string | null => {
    const found = owners.get(one.pid);
    if (found !== undefined) return found;
    // Numbers that came and went while they were read can lead round in a circle.
    owners.set(one.pid, null);
    const parent = byPid.get(one.parent);
    const owner = groups.get(one.group) ?? (parent === undefined ? null : ownerOf(parent));
    owners.set(one.pid, owner);
    return owner;
  };
  const found = new Map<string, SeenProcess[]>();
  for (const one of seen) {
    const owner = ownerOf(one);
    if (owner !== null) found.set(owner, [...(found.get(owner) ?? []), one]);
  }
  return found;
}

/** The runs inside of which this process itself was started: they are not its own to touch. */
export const runsAround = (environment: string): string[] => runsIn(process.env[markVariable] ?? "", environment);

/** Those that none of the others has started. */
export function rootsOf(processes: readonly SeenProcess[]): SeenProcess[] {
  const pids = new Set(processes.map(({ pid }) => pid));
  return processes.filter(({ parent }) => !pids.has(parent));
}
