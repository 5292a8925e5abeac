// What a restore has to do to get from one tree to another, as data: nothing here touches a file.
import type { ObjectReader } from "../../store/objects.ts";
import type { Problem } from "../environment.ts";
import { type Entry, entryType, sameContent, sameMetadata } from "./entry.ts";
import { display, parentOf, type RawPath } from "./names.ts";
import { compareTrees, findEntry } from "./tree.ts";

export interface Placement {
  readonly path: RawPath;
  readonly entry: Entry;
}

export interface Plan {
  /** Children before parents. */
  readonly removals: readonly { readonly path: RawPath; readonly directory: boolean }[];
  /** Parents before children. */
  readonly directories: readonly RawPath[];
  /** Files, symlinks and nodes: staged whole, then renamed into place. */
  readonly placements: readonly Placement[];
  readonly links: readonly { readonly path: RawPath; readonly first: RawPath }[];
  /** Children before parents; directories whose content the plan changes are among them, for their times. */
  readonly metadata: readonly Placement[];
  readonly problems: readonly Problem[];
}

export interface PlanInput {
  readonly objects: ObjectReader;
  readonly current: Entry;
  readonly target: Entry;
  /** Of the current tree (scan.ts). */
  readonly groups: ReadonlyMap<RawPath, readonly RawPath[]>;
  /** Paths that stay as they are. */
  readonly kept: (path: RawPath) => boolean;
  /** Directories that hold a kept path. */
  readonly holdsKept: (path: RawPath) => boolean;
}

const untouchable = (entry: Entry | null): boolean =>
  entry?.type === entryType.unread || entry?.type === entryType.socket;

function whyUntouched(from: Entry | null, to: Entry | null): string {
  if (to?.type === entryType.unread) return "was not captured; left as it is";
  if (from?.type === entryType.unread) return `${from.tail}; left as it is`;
  if (from?.type === entryType.socket) return "is a socket; sockets are left alone";
  return "was a socket; sockets are not restored";
}

export function planRestore(input: PlanInput): Plan {
  const removals: { path: RawPath; directory: boolean }[] = [];
  const directories: RawPath[] = [];
  const placements: Placement[] = [];
  const links = new Map<RawPath, RawPath>();
  const metadata: Placement[] = [];
  const problems: Problem[] = [];
  const blocked = new Set<RawPath>();
  const standing = new Set<RawPath>();
  const problem = (path: RawPath, reason: string): void => {
    problems.push({ path: display(path), reason });
  };

  for (const { path, from, to } of compareTrees(input.objects, input.current, input.target)) {
    if (blocked.has(parentOf(path)) && path !== "") {
      blocked.add(path);
      continue;
    }
    if (input.kept(path)) {
      if (from?.type !== entryType.directory || to?.type !== entryType.directory) {
        if (to?.type === entryType.directory && from?.type !== entryType.directory) blocked.add(path);
        continue;
      }
    } else if (untouchable(from) || untouchable(to)) {
      problem(path, whyUntouched(from, to));
      if (to?.type === entryType.directory || from?.type === entryType.directory) blocked.add(path);
      if (from !== null) for (let at = parentOf(path); at !== ""; at = parentOf(at)) standing.add(at);
      continue;
    }
    const wasDirectory = from?.type === entryType.directory;
    if (to === null) {
      removals.push({ path, directory: wasDirectory });
    } else if (to.type === entryType.directory) {
      if (from !== null && !wasDirectory) removals.push({ path, directory: false });
      if (!wasDirectory) directories.push(path);
      metadata.push({ path, entry: to });
    } else {
      if (wasDirectory) removals.push({ path, directory: true });
      if (from !== null && !wasDirectory && sameContent(from, to)) {
        if (!sameMetadata(from, to)) {
          if (to.type === entryType.symlink) placements.push({ path, entry: to });
          else metadata.push({ path, entry: to });
        }
      } else if (to.type === entryType.hardLink) links.set(path, to.tail);
      else placements.push({ path, entry: to });
    }
  }

  relink(input, placements, links);
  removals.reverse();
  metadata.reverse();
  const plan = {
    removals,
    directories,
    placements,
    links: [...links].map(([path, first]) => ({ path, first })),
    metadata: [...foldersOfLinks(input, links, metadata), ...metadata],
    problems,
  };
  return withoutStandingFolders((path) => input.holdsKept(path) || standing.has(path), plan);
}

/** A replaced file has a new inode: the names that shared the old one, and still should, are linked anew. */
function relink(input: PlanInput, placements: readonly Placement[], links: Map<RawPath, RawPath>): void {
  const groupOf = new Map<RawPath, readonly RawPath[]>();
  for (const members of input.groups.values()) for (const member of members) groupOf.set(member, members);
  for (const { path } of placements) {
    for (const member of groupOf.get(path) ?? []) {
      if (member === path || links.has(member) || input.kept(member)) continue;
      const wanted = findEntry(input.objects, input.target, member);
      if (wanted?.type === entryType.hardLink && wanted.tail === path) links.set(member, path);
    }
  }
}

/** Linking a name anew moves the times of its folder, which may differ in nothing else. */
function foldersOfLinks(
  input: PlanInput,
  links: ReadonlyMap<RawPath, RawPath>,
  metadata: readonly Placement[],
): Placement[] {
  const known = new Set(metadata.map(({ path }) => path));
  const folders = new Set([...links.keys()].map(parentOf).filter((path) => !known.has(path)));
  return [...folders]
    .sort()
    .reverse()
    .flatMap((path) => {
      const entry = findEntry(input.objects, input.target, path);
      return entry?.type === entryType.directory ? [{ path, entry }] : [];
    });
}

/** A directory that holds something that stays cannot go; what the target wants in its place cannot come. */
function withoutStandingFolders(stands: (path: RawPath) => boolean, plan: Plan): Plan {
  const problems = [...plan.problems];
  const staying = new Set<RawPath>();
  const removals = plan.removals.filter(({ path, directory }) => {
    if (!directory || !stands(path)) return true;
    staying.add(path);
    problems.push({ path: display(path), reason: "stays because it holds something that stays" });
    return false;
  });
  const placements = plan.placements.filter(({ path }) => !staying.has(path));
  const links = plan.links.filter(({ path }) => !staying.has(path));
  return { ...plan, removals, placements, links, problems };
}
