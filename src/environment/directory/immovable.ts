// What of the present tree a restore may not touch, and why: asked before anything is touched, so that a dry run tells the same.
import type { Breathe } from "../../breathe.ts";
import type { Problem } from "../environment.ts";
import { entryType } from "./entry.ts";
import { display, fromDisplay, parentOf, type RawPath } from "./names.ts";
import type { Posix } from "./posix.ts";
import type { Seen } from "./scanner.ts";

const unreadable = "cannot be read";

export const markedReason = "may not be changed: it or its folder is marked immutable or append-only";

export interface Bound {
  readonly reason: string;
  /** Metadata may not be changed either, and no name be added. */
  readonly whole: boolean;
}

export interface Immovable {
  /** Of the file to which the name leads: what it is for one name it is for all. */
  file(path: RawPath): Bound | undefined;
  /** Neither it nor its entries can come, go or be replaced; the entries can be changed in place. */
  isMarkedFolder(path: RawPath): boolean;
  /** All names of the file in the workspace. */
  names(path: RawPath): readonly RawPath[];
  /** Those of them that lie in marked folders, where the file has several names. */
  pinnedNames(path: RawPath): readonly RawPath[];
  /** It is there and cannot be read. */
  isUnread(path: RawPath): boolean;
  /** Folders that cannot be read. */
  readonly unreadFolders: number;
}

export interface ImmovableInput {
  readonly posix: Posix;
  readonly seen: (path: RawPath) => Seen | undefined;
  readonly groups: ReadonlyMap<RawPath, readonly RawPath[]>;
  /** First name of each member of a group. */
  readonly firsts: ReadonlyMap<RawPath, RawPath>;
  /** Of the scan. */
  readonly problems: readonly Problem[];
  readonly breathe: Breathe;
}

export async function findImmovable(input: ImmovableInput): Promise<Immovable> {
  const { posix, seen, groups, firsts } = input;
  const files = new Map<RawPath, Bound | undefined>();
  const folders = new Map<RawPath, boolean>();
  const pinned = new Map<RawPath, readonly RawPath[]>();
  const unread = await unreadFolders(input);

  const isMarked = (path: RawPath): boolean => attempt(() => posix.isMarked(path)) === true;
  const names = (path: RawPath): readonly RawPath[] => groups.get(firsts.get(path) ?? path) ?? [path];

  function boundOf(first: RawPath): Bound | undefined {
    const found = seen(first);
    if (found === undefined || found.type === entryType.directory) return undefined;
    if (found.type === entryType.unread) {
      return { reason: `is one file with ${display(first)}, which cannot be read; left as it is`, whole: true };
    }
    if (isMarked(first)) return { reason: markedReason, whole: true };
    if (unread.length === 0 || found.nlink <= names(first).length) return undefined;
    // A name in a folder of somebody else is nobody's to keep: there it counts as one outside of the workspace.
    const owner = attempt(() => posix.stat(first))?.uid;
    const folder = unread.find(({ uid }) => uid === owner);
    if (folder === undefined) return undefined;
    const where = `perhaps in ${display(folder.path)}, which cannot be read`;
    return { reason: `has names that cannot be seen, ${where}; left as it is`, whole: false };
  }

  const remembered = <T>(known: Map<RawPath, T>, path: RawPath, find: (path: RawPath) => T): T => {
    if (!known.has(path)) known.set(path, find(path));
    return known.get(path) as T;
  };

  const isMarkedFolder = (path: RawPath): boolean =>
    remembered(folders, path, () => (path === "" || seen(path) !== undefined) && isMarked(path));
  const pinnedOf = (first: RawPath): RawPath[] =>
    (groups.get(first) ?? []).filter((name) => isMarkedFolder(parentOf(name)));

  return {
    file: (path) => remembered(files, firsts.get(path) ?? path, boundOf),
    isMarkedFolder,
    names,
    pinnedNames: (path) => remembered(pinned, firsts.get(path) ?? path, pinnedOf),
    isUnread: (path) => seen(path)?.type === entryType.unread,
    unreadFolders: unread.length,
  };
}

async function unreadFolders({
  posix,
  seen,
  problems,
  breathe,
}: ImmovableInput): Promise<{ readonly path: RawPath; readonly uid: number }[]> {
  const found: { readonly path: RawPath; readonly uid: number }[] = [];
  for (const problem of problems) {
    if (!problem.reason.startsWith(unreadable)) continue;
    const path = fromDisplay(problem.path);
    const stat = seen(path)?.type === entryType.unread ? attempt(() => posix.stat(path)) : undefined;
    if (stat?.type === entryType.directory) found.push({ path, uid: stat.uid });
    await breathe();
  }
  return found;
}

/** What changed since the scan is found when it is touched. */
function attempt<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch {
    return undefined;
  }
}
