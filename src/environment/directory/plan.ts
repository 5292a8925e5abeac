// What a restore has to do to get from one tree to another, as data: nothing here touches a file.
import { Draft, type Plan } from "./draft.ts";
import { encodeEntry, entryType, sameContent, sameMetadata } from "./entry.ts";
import { markedReason } from "./immovable.ts";
import type { RawPath } from "./names.ts";
import { Levels } from "./packed.ts";
import type { PlanInput, Scope } from "./plan-input.ts";
import { SharedNames } from "./shared-names.ts";
import { Standing } from "./standing.ts";
import { compareTrees, type Difference } from "./tree.ts";

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
  readonly #draft: Draft;
  readonly #standing: Standing;
  readonly #sharedNames: SharedNames;

  constructor(input: PlanInput) {
    this.#input = input;
    const concerns = (path: RawPath): boolean => !input.kept(path) && this.#isWanted(path);
    this.#draft = new Draft(input.stage);
    this.#standing = new Standing({ ...input, concerns });
    this.#sharedNames = new SharedNames(input, this.#draft, this.#standing, (path) => this.#isWanted(path));
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
        this.#draft.problem(path, reason);
        this.#standing.hold(difference);
        return;
      }
    }
    const possible = to?.type === entryType.hardLink ? this.#sharedNames.withoutMates(difference, to) : difference;
    if (possible === undefined) return;
    this.#input.onDifference(possible);
    this.#change(possible);
  }

  /** Everything, or it is asked for. */
  #isWanted(path: RawPath): boolean {
    const { scope } = this.#input;
    return scope === undefined || scope(path) === "in";
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
    if (was && !this.#input.immovable.isMarkedFolder(path)) this.#draft.setMetadata(path, encodeEntry(from));
    // What lies where a folder has to be gives way to it.
    return will && !was;
  }

  #change({ path, from, to, stored }: Difference): void {
    const wasDirectory = from?.type === entryType.directory;
    if (to === null) {
      this.#draft.remove(path, wasDirectory);
    } else if (to.type === entryType.directory) {
      if (from !== null && !wasDirectory) this.#draft.remove(path, false);
      if (!wasDirectory) this.#draft.makeFolder(path);
      this.#draft.dated.add(path);
      if (!wasDirectory || !this.#input.immovable.isMarkedFolder(path)) this.#draft.setMetadata(path, stored as Buffer);
      else if (!sameMetadata(from, to)) this.#draft.problem(path, markedReason);
    } else {
      if (wasDirectory) this.#draft.remove(path, true);
      if (from !== null && !wasDirectory && sameContent(from, to)) {
        if (!sameMetadata(from, to)) {
          if (to.type === entryType.symlink || this.#sharesWithOthers(path)) this.#draft.place(path, stored as Buffer);
          else this.#draft.setMetadata(path, stored as Buffer);
        }
      } else if (to.type === entryType.hardLink) this.#draft.link(path, to.tail);
      else this.#draft.place(path, stored as Buffer);
    }
  }

  /** What is changed in place is changed for all names of the file. */
  #sharesWithOthers(path: RawPath): boolean {
    const { immovable, kept } = this.#input;
    return immovable.names(path).some((name) => name !== path && (kept(name) || !this.#isWanted(name)));
  }

  async finish(): Promise<Plan> {
    const going = await this.#withoutStanding();
    await this.#sharedNames.leaveOccupied();
    await this.#sharedNames.relink();
    await this.#sharedNames.dateFolders();
    return this.#draft.finish(going);
  }

  /** A directory that holds something that stays cannot go; what the target wants in its place cannot come. */
  async #withoutStanding(): Promise<Levels> {
    const { holdsKept, breathe } = this.#input;
    const going = new Levels();
    for (const level of this.#draft.removedFolders.childrenFirst()) {
      for (const { path } of level) {
        if (holdsKept(path) || this.#standing.holdsStanding(path)) {
          this.#draft.occupied.add(path);
          this.#draft.problem(path, "stays because it holds something that stays");
        } else going.add(path);
        await breathe();
      }
    }
    return going;
  }
}
