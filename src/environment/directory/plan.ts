// What a restore has to do to get from one tree to another, as data: nothing here touches a file.
import type { Breathe } from "../../breathe.ts";
import type { ObjectReader } from "../../store/objects.ts";
import type { Problem } from "../environment.ts";
import { type Entry, encodeEntry, entryType, sameContent, sameMetadata } from "./entry.ts";
import { type Immovable, markedReason } from "./immovable.ts";
import { display, join, parentOf, type RawPath } from "./names.ts";
import { Levels, Packed } from "./packed.ts";
import { Standing, uncaptured } from "./standing.ts";
import { compareTrees, type Difference, findEntry } from "./tree.ts";

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

/** Whether a restore of some paths concerns a path: it or what is above is asked for (in), something below it is (above), or neither. */
export type Scope = (path: RawPath) => "in" | "above" | "out";

export interface PlanInput {
  readonly objects: ObjectReader;
  readonly current: Entry;
  readonly target: Entry;
  /** Of the current tree (scan.ts). */
  readonly groups: ReadonlyMap<RawPath, readonly RawPath[]>;
  readonly immovable: Immovable;
  /** Paths that stay as they are. */
  readonly kept: (path: RawPath) => boolean;
  /** Directories that hold a kept path. */
  readonly holdsKept: (path: RawPath) => boolean;
  /** Undefined: everything. */
  readonly scope: Scope | undefined;
  /** The staging folder. */
  readonly stage: RawPath;
  readonly breathe: Breathe;
  /** Is told each difference that is to go, and each path that would be changed if it were not kept. */
  readonly onDifference: (difference: Difference) => void;
  readonly onKept: (path: RawPath) => void;
}

/** Staged entries that are renamed one by one are spread over so many folders: a folder is changed by one thread at a time. */
export const stageFolders = 8;

export async function planRestore(input: PlanInput): Promise<Plan> {
  const planner = new Planner(input);
  for (const difference of compareTrees(input.objects, input.current, input.target)) {
    planner.add(difference);
    const pause = input.breathe();
    if (pause !== undefined) await pause;
  }
  return planner.finish();
}

class Planner {
  readonly #input: PlanInput;
  readonly #removals = new Packed();
  readonly #removedFolders = new Levels();
  readonly #folders = new Levels();
  readonly #staged = new Packed();
  readonly #moves = new Packed();
  readonly #links = new Map<RawPath, RawPath>();
  readonly #metadata = new Levels();
  readonly #problems: Problem[] = [];
  readonly #notes: Problem[] = [];
  /** Names that leave the inode that they have now. */
  readonly #leaving = new Set<RawPath>();
  readonly #separated = new Set<RawPath>();
  readonly #standing: Standing;
  /** First name at the target of a file that stays, and the name that stands for it among those that go back. */
  readonly #heirs = new Map<RawPath, RawPath>();
  readonly #occupied = new Set<RawPath>();
  /** New folders and where they are staged. */
  readonly #newFolders = new Map<RawPath, RawPath>();
  /** Folders whose metadata is restored. */
  readonly #dated = new Set<RawPath>();

  constructor(input: PlanInput) {
    this.#input = input;
    const concerns = (path: RawPath): boolean => !input.kept(path) && this.#isWanted(path);
    this.#standing = new Standing({ ...input, concerns });
  }

  add(difference: Difference): void {
    const { path, from, to } = difference;
    if (!this.#standing.meets(difference)) return;
    if (this.#input.scope !== undefined && !this.#inScope(this.#input.scope(path), difference)) return;
    if (this.#input.kept(path)) {
      this.#input.onKept(path);
      if (from?.type !== entryType.directory || to?.type !== entryType.directory) {
        if (to?.type === entryType.directory && from?.type !== entryType.directory) this.#standing.block(path);
        return;
      }
    } else {
      const reason = this.#standing.why(difference);
      if (reason !== undefined) {
        this.#problem(path, reason);
        this.#standing.hold(difference);
        return;
      }
    }
    const possible = to?.type === entryType.hardLink ? this.#withoutMates(difference, to) : difference;
    if (possible === undefined) return;
    this.#input.onDifference(possible);
    this.#change(possible);
  }

  /** Everything, or it is asked for. */
  #isWanted(path: RawPath): boolean {
    const { scope } = this.#input;
    return scope === undefined || scope(path) === "in";
  }

  /** A name of a file that itself stays as it is, though it is another one at the target, cannot be linked: it becomes a file of its own. Undefined where nothing is left to do. */
  #withoutMates(difference: Difference, { name, tail }: Entry): Difference | undefined {
    const { path, from } = difference;
    const alone = this.#alone(tail);
    if (alone === undefined) return difference;
    this.#noteSeparation(path, tail);
    const heir = this.#heirs.get(tail);
    if (heir !== undefined) {
      this.#joinHeir(difference, heir);
      return undefined;
    }
    const to = { ...alone, name };
    if (from === null || !sameContent(from, to)) this.#heirs.set(tail, path);
    else if (sameMetadata(from, to)) return undefined;
    return { path, from, to, stored: encodeEntry(to) };
  }

  #joinHeir({ path, from, to }: Difference, heir: RawPath): void {
    const linked = { ...(to as Entry), tail: heir };
    this.#input.onDifference({ path, from, to: linked, stored: encodeEntry(linked) });
    if (from?.type === entryType.directory) this.#remove(path, true);
    this.#link(path, heir);
  }

  /** Of folders above what is asked for, only those that are missing are made; the others keep their times. */
  #inScope(scope: ReturnType<Scope>, { path, from, to }: Difference): boolean {
    if (scope === "in") return true;
    const was = from?.type === entryType.directory;
    const will = to?.type === entryType.directory;
    if (scope === "out") {
      if (was || will) this.#standing.block(path);
      return false;
    }
    if (was && !this.#input.immovable.isMarkedFolder(path)) this.#metadata.add(path, "", encodeEntry(from));
    // What lies where a folder has to be gives way to it.
    return will && !was;
  }

  #change({ path, from, to, stored }: Difference): void {
    const wasDirectory = from?.type === entryType.directory;
    if (to === null) {
      this.#remove(path, wasDirectory);
    } else if (to.type === entryType.directory) {
      if (from !== null && !wasDirectory) this.#remove(path, false);
      if (!wasDirectory) this.#makeFolder(path);
      this.#dated.add(path);
      if (!wasDirectory || !this.#input.immovable.isMarkedFolder(path)) this.#metadata.add(path, "", stored as Buffer);
      else if (!sameMetadata(from, to)) this.#problem(path, markedReason);
    } else {
      if (wasDirectory) this.#remove(path, true);
      if (from !== null && !wasDirectory && sameContent(from, to)) {
        if (!sameMetadata(from, to)) {
          if (to.type === entryType.symlink) this.#place(path, stored as Buffer);
          else this.#metadata.add(path, "", stored as Buffer);
        }
      } else if (to.type === entryType.hardLink) this.#link(path, to.tail);
      else this.#place(path, stored as Buffer);
    }
  }

  #remove(path: RawPath, directory: boolean): void {
    if (directory) this.#removedFolders.add(path);
    else {
      this.#removals.add(path);
      this.#leaving.add(path);
    }
  }

  #makeFolder(path: RawPath): void {
    const at = this.#stageFor(path);
    this.#newFolders.set(path, at);
    this.#folders.add(path, at);
  }

  #link(path: RawPath, first: RawPath): void {
    this.#leaving.add(path);
    this.#links.set(path, first);
  }

  #place(path: RawPath, entry: Buffer): void {
    this.#leaving.add(path);
    this.#staged.add(path, this.#stageFor(path), entry);
  }

  /** Below a new folder its own place in that; else a name of its own, which is renamed. */
  #stageFor(path: RawPath): RawPath {
    const folder = this.#newFolders.get(parentOf(path));
    if (folder !== undefined) return join(folder, path.slice(path.lastIndexOf("/") + 1));
    const at = `${this.#input.stage}/${this.#moves.size % stageFolders}/${this.#moves.size}`;
    this.#moves.add(path, at);
    return at;
  }

  /** The target's entry of `first`, where that is neither restored nor the same now: no name can be linked to it. */
  #alone(first: RawPath): Entry | undefined {
    const { objects, current, target, kept, immovable } = this.#input;
    // A new name of it might not go again.
    const isBound = immovable.file(first) !== undefined;
    if (!isBound && this.#isWanted(first) && !kept(first) && !this.#standing.stays(first)) return undefined;
    const wanted = findEntry(objects, target, first);
    if (wanted === null || wanted.type === entryType.unread) return undefined;
    const found = findEntry(objects, current, first);
    const same = found !== null && sameContent(wanted, found) && sameMetadata(wanted, found);
    return same && !isBound ? undefined : wanted;
  }

  #noteSeparation(path: RawPath, other: RawPath): void {
    const why = this.#isWanted(other) ? "stays as it is" : "is not among the paths";
    const reason = `was one file with ${display(other)}, which ${why}; now it is a file of its own`;
    this.#notes.push({ path: display(path), reason });
  }

  #problem(path: RawPath, reason: string): void {
    this.#problems.push({ path: display(path), reason });
  }

  async finish(): Promise<Plan> {
    await this.#relink();
    await this.#dateFolders();
    const removedFolders = await this.#withoutStanding();
    return {
      removals: this.#removals,
      removedFolders,
      folders: this.#folders,
      staged: this.#staged,
      moves: this.#moves,
      links: [...this.#links].map(([path, first]) => ({ path, first })).filter(({ path }) => !this.#occupied.has(path)),
      metadata: this.#metadata,
      occupied: this.#occupied,
      problems: this.#problems,
      notes: this.#notes,
    };
  }

  /** A name that shares the inode of one that stays, or is not among the paths, shows no difference of its own: the content stands at the other. */
  #separate(members: readonly RawPath[], placed: Set<RawPath>): void {
    const { objects, current, target, kept } = this.#input;
    const first = findEntry(objects, current, members[0] as RawPath) as Entry;
    for (const path of members) {
      if (!this.#isWanted(path) || kept(path) || placed.has(path)) continue;
      if (this.#links.has(path) || this.#standing.isHeld(path)) continue;
      const wanted = findEntry(objects, target, path);
      if (wanted?.type !== entryType.hardLink || kept(wanted.tail)) continue;
      if (this.#isWanted(wanted.tail) && !this.#standing.stays(wanted.tail)) continue;
      const alone = findEntry(objects, target, wanted.tail);
      if (alone === null || (sameContent(alone, first) && sameMetadata(alone, first))) continue;
      const from = findEntry(objects, current, path) as Entry;
      const to = { ...alone, name: wanted.name };
      if (sameContent(from, to) && sameMetadata(from, to)) continue;
      const reason = this.#whyNotSeparated(path, wanted.tail);
      if (reason !== undefined) this.#problem(path, reason);
      else if (this.#alone(wanted.tail) !== undefined) {
        const heir = this.#heirs.get(wanted.tail);
        this.#noteSeparation(path, wanted.tail);
        this.#separated.add(path);
        if (heir !== undefined) {
          this.#joinHeir({ path, from, to: wanted, stored: null }, heir);
          continue;
        }
        const stored = encodeEntry(to);
        this.#input.onDifference({ path, from, to, stored });
        this.#heirs.set(wanted.tail, path);
        this.#place(path, stored);
        placed.add(path);
      }
    }
  }

  #whyNotSeparated(path: RawPath, first: RawPath): string | undefined {
    const { immovable } = this.#input;
    if (this.#standing.isUncaptured(first)) return uncaptured(first);
    return immovable.file(path)?.reason ?? (immovable.isMarkedFolder(parentOf(path)) ? markedReason : undefined);
  }

  #nameSeparated(member: RawPath, placed: ReadonlySet<RawPath>): void {
    const wanted = findEntry(this.#input.objects, this.#input.target, member);
    if (wanted?.type === entryType.hardLink && placed.has(wanted.tail)) this.#noteSeparation(wanted.tail, member);
  }

  /** Names that stay at an inode that loses its first name: the next one stands for all of them (F-10). */
  #succeed(members: readonly RawPath[]): void {
    const { objects, current, onDifference } = this.#input;
    const [first, heir, ...others] = [members[0], ...members.filter((member) => !this.#leaving.has(member))];
    if (first === undefined || heir === undefined || heir === first) return;
    const was = findEntry(objects, current, first) as Entry;
    const tell = (path: RawPath, change: (from: Entry) => Entry): void => {
      const from = findEntry(objects, current, path) as Entry;
      const to = change(from);
      onDifference({ path, from, to, stored: encodeEntry(to) });
    };
    tell(heir, ({ name }) => ({ ...was, name }));
    for (const other of others) tell(other, (from) => ({ ...from, tail: heir }));
  }

  /** A replaced file has a new inode: the names that shared the old one, and still should, are linked anew. */
  async #relink(): Promise<void> {
    const { groups, objects, target, kept, scope, breathe } = this.#input;
    if (groups.size === 0) return;
    const placed = new Set<RawPath>();
    for (const { path } of this.#staged) {
      placed.add(path);
      const pause = breathe();
      if (pause !== undefined) await pause;
    }
    for (const members of groups.values()) {
      const pause = breathe();
      if (pause !== undefined) await pause;
      if (scope !== undefined || this.#standing.isHeld(members[0] as RawPath)) this.#separate(members, placed);
      if (!members.some((member) => placed.has(member))) continue;
      for (const member of members) {
        if (scope !== undefined && scope(member) !== "in") this.#nameSeparated(member, placed);
        if (this.#links.has(member) || kept(member) || !this.#isWanted(member)) continue;
        const wanted = findEntry(objects, target, member);
        if (wanted?.type === entryType.hardLink && members.includes(wanted.tail) && placed.has(wanted.tail))
          this.#link(member, wanted.tail);
      }
    }
    if (scope === undefined) return;
    for (const members of groups.values()) {
      this.#succeed(members);
      await breathe();
    }
  }

  /** Linking or separating a name moves the times of its folder, which may differ in nothing else. */
  async #dateFolders(): Promise<void> {
    const { objects, current, target, scope, breathe } = this.#input;
    for (const path of [...this.#links.keys(), ...this.#separated]) {
      await breathe();
      const folder = parentOf(path);
      if (this.#dated.has(folder)) continue;
      this.#dated.add(folder);
      const isRestored = scope === undefined || scope(folder) === "in";
      const entry = findEntry(objects, isRestored ? target : current, folder);
      if (entry?.type === entryType.directory) this.#metadata.add(folder, "", encodeEntry(entry));
    }
  }

  /** A directory that holds something that stays cannot go; what the target wants in its place cannot come. */
  async #withoutStanding(): Promise<Levels> {
    const { holdsKept, breathe } = this.#input;
    const going = new Levels();
    for (const level of this.#removedFolders.childrenFirst()) {
      for (const { path } of level) {
        if (holdsKept(path) || this.#standing.holdsStanding(path)) {
          this.#occupied.add(path);
          this.#problem(path, "stays because it holds something that stays");
        } else going.add(path);
        await breathe();
      }
    }
    return going;
  }
}
