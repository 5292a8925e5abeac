// A plan in the making: the steps that differences and links ask for, and the words about what stays.
import type { Problem } from "../environment.ts";
import { display, join, parentOf, type RawPath } from "./names.ts";
import { Levels, Packed } from "./packed.ts";

export interface Plan {
  readonly removals: Packed;
  readonly removedFolders: Levels;
  /** New folders, in the staging folder: their content is staged in them, so that the topmost comes into place whole. */
  readonly folders: Levels;
  /** Files, links and nodes with their metadata. */
  readonly staged: Packed;
  /** What of the staged is renamed into place. */
  readonly moves: Packed;
  readonly links: readonly { readonly path: RawPath; readonly first: RawPath }[];
  /** Directories whose content the plan changes are among them, for their times. */
  readonly metadata: Levels;
  /** Something that stays is in the way; nothing is placed here. */
  readonly occupied: ReadonlySet<RawPath>;
  /** What stays as it is, and why. */
  readonly problems: readonly Problem[];
  /** What goes back, but not as it was. */
  readonly notes: readonly Problem[];
}

/** Staged entries that are renamed one by one are spread over so many folders: a folder is changed by one thread at a time. */
export const stageFolders = 8;

export class Draft {
  readonly removedFolders = new Levels();
  readonly staged = new Packed();
  readonly metadata = new Levels();
  readonly links = new Map<RawPath, RawPath>();
  readonly occupied = new Set<RawPath>();
  /** Names that leave the inode that they have now. */
  readonly leaving = new Set<RawPath>();
  /** Folders whose metadata is restored. */
  readonly dated = new Set<RawPath>();
  readonly #removals = new Packed();
  readonly #folders = new Levels();
  readonly #moves = new Packed();
  readonly #problems: Problem[] = [];
  readonly #notes: Problem[] = [];
  /** New folders and where they are staged. */
  readonly #newFolders = new Map<RawPath, RawPath>();
  readonly #stage: RawPath;

  /** @param stage the staging folder */
  constructor(stage: RawPath) {
    this.#stage = stage;
  }

  remove(path: RawPath, directory: boolean): void {
    if (directory) this.removedFolders.add(path);
    else {
      this.#removals.add(path);
      this.leaving.add(path);
    }
  }

  makeFolder(path: RawPath): void {
    const at = this.#stageFor(path);
    this.#newFolders.set(path, at);
    this.#folders.add(path, at);
  }

  link(path: RawPath, first: RawPath): void {
    this.leaving.add(path);
    this.links.set(path, first);
  }

  place(path: RawPath, entry: Buffer): void {
    this.leaving.add(path);
    this.staged.add(path, this.#stageFor(path), entry);
  }

  setMetadata(path: RawPath, entry: Buffer): void {
    this.metadata.add(path, "", entry);
  }

  problem(path: RawPath, reason: string): void {
    this.#problems.push({ path: display(path), reason });
  }

  /** @param isWanted the restore is about `other` as well */
  noteSeparation(path: RawPath, other: RawPath, isWanted: boolean): void {
    const why = isWanted ? "stays as it is" : "is not among the paths";
    const reason = `was one file with ${display(other)}, which ${why}; now it is a file of its own`;
    this.#notes.push({ path: display(path), reason });
  }

  /** @param removedFolders those that can go */
  finish(removedFolders: Levels): Plan {
    return {
      removals: this.#removals,
      removedFolders,
      folders: this.#folders,
      staged: this.staged,
      moves: this.#moves,
      links: [...this.links].map(([path, first]) => ({ path, first })).filter(({ path }) => !this.occupied.has(path)),
      metadata: this.metadata,
      occupied: this.occupied,
      problems: this.#problems,
      notes: this.#notes,
    };
  }

  /** Below a new folder its own place in that; else a name of its own, which is renamed. */
  #stageFor(path: RawPath): RawPath {
    const folder = this.#newFolders.get(parentOf(path));
    if (folder !== undefined) return join(folder, path.slice(path.lastIndexOf("/") + 1));
    const at = `${this.#stage}/${this.#moves.size % stageFolders}/${this.#moves.size}`;
    this.#moves.add(path, at);
    return at;
  }
}
