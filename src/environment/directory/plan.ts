// What a restore has to do to get from one tree to another, as data: nothing here touches a file.
import type { ObjectReader } from "../../store/objects.ts";
import type { Problem } from "../environment.ts";
import { type Entry, entryType, sameContent, sameMetadata } from "./entry.ts";
import { display, parentOf, type RawPath } from "./names.ts";
import type { Selection } from "./selection.ts";
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
  /** What goes back when not all of it does. */
  readonly selection?: Selection | undefined;
}

const untouchable = (entry: Entry | null): boolean =>
  entry?.type === entryType.unread || entry?.type === entryType.socket;

function whyUntouched(from: Entry | null, to: Entry | null): string {
  if (to?.type === entryType.unread) return "was not captured; left as it is";
  if (from?.type === entryType.unread) return "cannot be read now; left as it is";
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

  const { selection } = input;
  for (const { path, from, to } of compareTrees(input.objects, input.current, input.target)) {
    if (blocked.has(parentOf(path)) && path !== "") {
      blocked.add(path);
      continue;
    }
    if (selection?.isSelected(path) === false) {
      if (!selection.holdsSelected(path)) continue;
      if (to?.type === entryType.directory && from === null) {
        directories.push(path);
        metadata.push({ path, entry: to });
      } else if (from?.type === entryType.directory) metadata.push({ path, entry: from });
      else if (to?.type === entryType.directory) {
        problem(path, "is no folder now and was not named; what was below it is not restored");
        blocked.add(path);
      }
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
      } else if (to.type === entryType.hardLink) {
        const alone = selection && ofItsOwn(input, selection, to);
        if (alone === undefined) links.set(path, to.tail);
        else {
          placements.push({ path, entry: alone });
          problem(path, `was one file with ${display(to.tail)}, which was not named; now it is a file of its own`);
        }
      } else placements.push({ path, entry: to });
    }
  }

  if (selection !== undefined) separate(input, selection, placements, problem);
  relink(input, placements, links, problem);
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

/**
 * The file that a hard link was a name of, where that cannot be linked again: its other name was not named, and is no longer what it was.
 * Undefined where a link is right.
 */
function ofItsOwn({ objects, current, target }: PlanInput, selection: Selection, link: Entry): Entry | undefined {
  if (selection.isSelected(link.tail)) return undefined;
  const then = findEntry(objects, target, link.tail);
  const now = findEntry(objects, current, link.tail);
  if (then === null || (now !== null && sameContent(now, then) && sameMetadata(now, then))) return undefined;
  return { ...then, name: link.name };
}

/** A name that shares the inode of one that was not named shows no difference of its own: the content stands at the other. */
function separate(
  input: PlanInput,
  selection: Selection,
  placements: Placement[],
  problem: (path: RawPath, reason: string) => void,
): void {
  for (const path of [...input.groups.values()].flat()) {
    if (!selection.isSelected(path) || input.kept(path) || placements.some((one) => one.path === path)) continue;
    const wanted = findEntry(input.objects, input.target, path);
    const entry = wanted?.type === entryType.hardLink ? ofItsOwn(input, selection, wanted) : undefined;
    if (wanted === null || entry === undefined) continue;
    placements.push({ path, entry });
    problem(path, `was one file with ${display(wanted.tail)}, which was not named; now it is a file of its own`);
  }
}

/** A replaced file has a new inode: the names that shared the old one, and still should, are linked anew. */
function relink(
  input: PlanInput,
  placements: readonly Placement[],
  links: Map<RawPath, RawPath>,
  problem: (path: RawPath, reason: string) => void,
): void {
  const groupOf = new Map<RawPath, readonly RawPath[]>();
  for (const members of input.groups.values()) for (const member of members) groupOf.set(member, members);
  for (const { path } of placements) {
    for (const member of groupOf.get(path) ?? []) {
      if (member === path || links.has(member) || input.kept(member)) continue;
      const wanted = findEntry(input.objects, input.target, member);
      if (wanted?.type !== entryType.hardLink || wanted.tail !== path) continue;
      if (input.selection?.isSelected(member) !== false) links.set(member, path);
      else problem(path, `was one file with ${display(member)}, which was not named; now it is a file of its own`);
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
