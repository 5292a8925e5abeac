// Gives what an overlay holds of the workspace an upper folder of its own, so that another folder can lie below it.
import { entryType } from "../environment/directory/entry.ts";
import { join, parentOf, type RawPath } from "../environment/directory/names.ts";
import type { Posix } from "../environment/directory/posix.ts";

const opaque = "trusted.overlay.opaque";
const yes = Buffer.from("y");

export class SplitOff {
  readonly #from: RawPath;
  readonly #path: RawPath;
  readonly #to: RawPath;
  #done: "moved" | "made" | undefined;

  /** @param from the overlay's upper folder; `path` below it; @param to the new one, beside the first */
  constructor(from: RawPath, path: RawPath, to: RawPath) {
    this.#from = from;
    this.#path = path;
    this.#to = to;
  }

  split(posix: Posix): void {
    const { at, hidden, isFolder } = this.#look(posix);
    if (isFolder) {
      this.#keepingTimes(posix, parentOf(at), () => posix.rename(at, this.#to));
      if (hidden) posix.setXattrs(this.#to, [...unmarked(posix, this.#to), [opaque, yes]]);
      this.#done = "moved";
    } else if (hidden) this.#makeEmpty(posix);
  }

  /** Where it lies, and whether what is below is hidden: deleted, alone or with a folder above. */
  #look(posix: Posix): { at: RawPath; hidden: boolean; isFolder: boolean } {
    let hidden = false;
    let at = this.#from;
    for (const name of this.#path.split("/")) {
      hidden ||= isOpaque(posix, at);
      at = join(at, name);
      const type = posix.stat(at)?.type;
      if (type !== entryType.directory) return { at, hidden: hidden || type !== undefined, isFolder: false };
    }
    return { at, hidden, isFolder: true };
  }

  /** As it was before. */
  join(posix: Posix): void {
    const at = join(this.#from, this.#path);
    if (this.#done === "moved") this.#keepingTimes(posix, parentOf(at), () => posix.rename(this.#to, at));
    if (this.#done === "made") this.#keepingTimes(posix, "", () => posix.removeDirectory(this.#to));
    this.#done = undefined;
  }

  #makeEmpty(posix: Posix): void {
    this.#keepingTimes(posix, "", () => posix.makeDirectory(this.#to));
    posix.setXattrs(this.#to, [[opaque, yes]]);
    posix.setMode(this.#to, 0o755);
    this.#done = "made";
  }

  #keepingTimes(posix: Posix, folder: RawPath, work: () => void): void {
    const times = [folder, ""].map((path) => [path, posix.stat(path)?.mtimeNs ?? 0n] as const);
    work();
    for (const [path, time] of times) posix.setTime(path, time);
  }
}

const unmarked = (posix: Posix, path: RawPath) => posix.getXattrs(path).filter(([name]) => name !== opaque);

const isOpaque = (posix: Posix, path: RawPath): boolean =>
  posix.getXattrs(path).some(([name, value]) => name === opaque && value.equals(yes));
