// Names that share an inode, or did at the target: which are linked anew, follow another one, or become files of their own.
import type { Draft } from "./draft.ts";
import { type Entry, encodeEntry, entryType, sameContent, sameMetadata } from "./entry.ts";
import { markedReason } from "./immovable.ts";
import { parentOf, type RawPath } from "./names.ts";
import type { PlanInput } from "./plan-input.ts";
import { type Standing, uncaptured } from "./standing.ts";
import { type Difference, findEntry } from "./tree.ts";

export class SharedNames {
  readonly #input: PlanInput;
  readonly #draft: Draft;
  readonly #standing: Standing;
  /** The restore is about the path, whether or not somebody keeps it. */
  readonly #isWanted: (path: RawPath) => boolean;
  /** Names that become files of their own. */
  readonly #separated = new Set<RawPath>();
  /** First name at the target of a file that stays, and the name that stands for it among those that go back. */
  readonly #heirs = new Map<RawPath, RawPath>();

  constructor(input: PlanInput, draft: Draft, standing: Standing, isWanted: (path: RawPath) => boolean) {
    this.#input = input;
    this.#draft = draft;
    this.#standing = standing;
    this.#isWanted = isWanted;
  }

  /** A name of a file that itself stays as it is, though it is another one at the target, cannot be linked: it becomes a file of its own. Undefined where nothing is left to do. */
  withoutMates(difference: Difference, { name, tail }: Entry): Difference | undefined {
    const { path, from } = difference;
    const alone = this.#alone(tail);
    if (alone === undefined) return difference;
    this.#draft.noteSeparation(path, tail, this.#isWanted(tail));
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
    if (from?.type === entryType.directory) this.#draft.remove(path, true);
    this.#draft.link(path, heir);
  }

  /** A name that shares the inode of one that stays, or is not among the paths, shows no difference of its own: the content stands at the other. */
  #separate(members: readonly RawPath[], placed: Set<RawPath>): void {
    const { objects, current, target, kept } = this.#input;
    const first = findEntry(objects, current, members[0] as RawPath) as Entry;
    for (const path of members) {
      if (!this.#isWanted(path) || kept(path) || placed.has(path)) continue;
      if (this.#draft.links.has(path) || this.#standing.isHeld(path)) continue;
      const wanted = findEntry(objects, target, path);
      if (wanted?.type !== entryType.hardLink || kept(wanted.tail)) continue;
      if (this.#isWanted(wanted.tail) && !this.#standing.stays(wanted.tail)) continue;
      const alone = findEntry(objects, target, wanted.tail);
      if (alone === null || (sameContent(alone, first) && sameMetadata(alone, first))) continue;
      const from = findEntry(objects, current, path) as Entry;
      const to = { ...alone, name: wanted.name };
      if (sameContent(from, to) && sameMetadata(from, to)) continue;
      const reason = this.#whyNotSeparated(path, wanted.tail);
      if (reason !== undefined) this.#draft.problem(path, reason);
      else if (this.#alone(wanted.tail) !== undefined) {
        const heir = this.#heirs.get(wanted.tail);
        this.#draft.noteSeparation(path, wanted.tail, this.#isWanted(wanted.tail));
        this.#separated.add(path);
        if (heir !== undefined) {
          this.#joinHeir({ path, from, to: wanted, stored: null }, heir);
          continue;
        }
        const stored = encodeEntry(to);
        this.#input.onDifference({ path, from, to, stored });
        this.#heirs.set(wanted.tail, path);
        this.#draft.place(path, stored);
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
    if (wanted?.type === entryType.hardLink && placed.has(wanted.tail))
      this.#draft.noteSeparation(wanted.tail, member, this.#isWanted(member));
  }

  /** Names that stay at an inode that loses its first name: the next one stands for all of them (F-10). */
  #succeed(members: readonly RawPath[]): void {
    const { objects, current, onDifference } = this.#input;
    const [first, heir, ...others] = [members[0], ...members.filter((member) => !this.#draft.leaving.has(member))];
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

  /** Where the first name of a file cannot come, because something that stays lies there, the next one stands for it. */
  async leaveOccupied(): Promise<void> {
    const { objects, target, breathe } = this.#input;
    const { links, occupied } = this.#draft;
    for (const [path, first] of [...links]) {
      await breathe();
      if (!occupied.has(first) || occupied.has(path)) continue;
      this.#draft.noteSeparation(path, first, true);
      const heir = this.#heirs.get(first);
      if (heir !== undefined) links.set(path, heir);
      else {
        const [alone, wanted] = [first, path].map((one) => findEntry(objects, target, one)) as [Entry, Entry];
        links.delete(path);
        this.#heirs.set(first, path);
        this.#draft.place(path, encodeEntry({ ...alone, name: wanted.name }));
      }
    }
  }

  /** A replaced file has a new inode: the names that shared the old one, and still should, are linked anew. */
  async relink(): Promise<void> {
    const { groups, objects, target, kept, scope, breathe } = this.#input;
    if (groups.size === 0) return;
    const placed = new Set<RawPath>();
    for (const { path } of this.#draft.staged) {
      if (!this.#draft.occupied.has(path)) placed.add(path);
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
        if (this.#draft.links.has(member) || kept(member) || !this.#isWanted(member)) continue;
        const wanted = findEntry(objects, target, member);
        if (wanted?.type === entryType.hardLink && members.includes(wanted.tail) && placed.has(wanted.tail))
          this.#draft.link(member, wanted.tail);
      }
    }
    if (scope === undefined) return;
    for (const members of groups.values()) {
      this.#succeed(members);
      await breathe();
    }
  }

  /** Linking or separating a name moves the times of its folder, which may differ in nothing else. */
  async dateFolders(): Promise<void> {
    const { objects, current, target, scope, breathe } = this.#input;
    for (const path of [...this.#draft.links.keys(), ...this.#separated]) {
      await breathe();
      const folder = parentOf(path);
      if (this.#draft.dated.has(folder)) continue;
      this.#draft.dated.add(folder);
      const isRestored = scope === undefined || scope(folder) === "in";
      const entry = findEntry(objects, isRestored ? target : current, folder);
      if (entry?.type === entryType.directory) this.#draft.setMetadata(folder, encodeEntry(entry));
    }
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
}
