// What stays as it is while a restore is planned, and what stays because of it.
import type { ObjectReader } from "../../store/objects.ts";
import { type Entry, entryType, sameContent } from "./entry.ts";
import { type Immovable, markedReason } from "./immovable.ts";
import { display, parentOf, type RawPath } from "./names.ts";
import { type Difference, findEntry } from "./tree.ts";

export interface StandingInput {
  readonly objects: ObjectReader;
  readonly target: Entry;
  readonly immovable: Immovable;
  /** The restore is about the path, and nobody keeps it. */
  readonly concerns: (path: RawPath) => boolean;
}

/** Differences are met parents before children, in the order of the walk. */
export class Standing {
  readonly #input: StandingInput;
  readonly #held = new Set<RawPath>();
  /** Nothing below them is looked at. */
  readonly #blocked = new Set<RawPath>();
  /** Folders that hold something that stays. */
  readonly #folders = new Set<RawPath>();
  /** Whether what is unread on one side is so at the target. */
  readonly #unread = new Map<RawPath, boolean>();
  readonly #uncapturedFolders = new Set<RawPath>();

  constructor(input: StandingInput) {
    this.#input = input;
  }

  /** Every difference, before anything else is asked about it. False where nothing is to be done, because of what is above. */
  meets({ path, from, to }: Difference): boolean {
    if (from?.type === entryType.unread || to?.type === entryType.unread)
      this.#unread.set(path, to?.type === entryType.unread);
    if (from?.type === entryType.directory && to?.type === entryType.unread) this.#uncapturedFolders.add(path);
    if (path === "" || !this.#blocked.has(parentOf(path))) return true;
    this.#blocked.add(path);
    return false;
  }

  block(path: RawPath): void {
    this.#blocked.add(path);
  }

  /** `path`, with what is below it. */
  hold({ path, from, to }: Difference): void {
    this.#held.add(path);
    if (to?.type === entryType.directory || from?.type === entryType.directory) this.#blocked.add(path);
    if (from !== null) for (let at = parentOf(path); at !== ""; at = parentOf(at)) this.#folders.add(at);
  }

  isHeld(path: RawPath): boolean {
    return this.#held.has(path);
  }

  /** It was held, or lies below what was. */
  stays(path: RawPath): boolean {
    if (this.#held.has(path)) return true;
    if (this.#blocked.size === 0) return false;
    for (let at = parentOf(path); at !== ""; at = parentOf(at)) if (this.#blocked.has(at)) return true;
    return false;
  }

  /** It cannot go. */
  holdsStanding(folder: RawPath): boolean {
    return this.#folders.has(folder);
  }

  /** Why the difference has to stay; undefined where it can go. */
  why(difference: Difference): string | undefined {
    const { path, from, to } = difference;
    if (untouchable(from) || untouchable(to)) return whyUntouched(from, to);
    if (to?.type === entryType.hardLink && this.isUncaptured(to.tail)) return uncaptured(to.tail);
    const { immovable } = this.#input;
    const wasDirectory = from?.type === entryType.directory;
    const inPlace =
      from !== null &&
      to !== null &&
      from.type === to.type &&
      (wasDirectory || (sameContent(from, to) && to.type !== entryType.symlink));
    if (!inPlace && immovable.isMarkedFolder(parentOf(path))) return markedReason;
    if (from === null) return undefined;
    if (wasDirectory) return !inPlace && immovable.isMarkedFolder(path) ? markedReason : undefined;
    const bound = immovable.file(path);
    if (bound !== undefined && (bound.whole || !inPlace)) return bound.reason;
    return inPlace ? undefined : this.#whyNotReplaced(path, to);
  }

  isUncaptured(first: RawPath): boolean {
    return this.#unread.get(first) ?? this.#input.immovable.isUnread(first);
  }

  /** Another name of the file could not follow it. */
  #whyNotReplaced(path: RawPath, to: Entry | null): string | undefined {
    const { immovable, objects, target, concerns } = this.#input;
    if (this.#uncapturedFolders.size > 0) {
      const mate = immovable.names(path).find((name) => name !== path && this.#isBelowUncaptured(name));
      if (mate !== undefined) return uncaptured(mate);
    }
    if (to === null || to.type === entryType.hardLink) return undefined;
    for (const name of immovable.pinnedNames(path)) {
      if (name === path || !concerns(name)) continue;
      const wanted = findEntry(objects, target, name);
      if (wanted?.type === entryType.hardLink && wanted.tail === path)
        return `is one file with ${display(name)}, which ${markedReason}`;
    }
    return undefined;
  }

  #isBelowUncaptured(path: RawPath): boolean {
    for (let at = parentOf(path); at !== ""; at = parentOf(at)) if (this.#uncapturedFolders.has(at)) return true;
    return false;
  }
}

export const uncaptured = (mate: RawPath): string =>
  `is one file with ${display(mate)}, which was not captured; left as it is`;

const untouchable = (entry: Entry | null): boolean =>
  entry?.type === entryType.unread || entry?.type === entryType.socket;

function whyUntouched(from: Entry | null, to: Entry | null): string {
  if (to?.type === entryType.unread) return "was not captured; left as it is";
  if (from?.type === entryType.unread) return `${from.tail}; left as it is`;
  if (from?.type === entryType.socket) return "is a socket; sockets are left alone";
  return "was a socket; sockets are not restored";
}
