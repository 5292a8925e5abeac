// Keeps what the host has at a path before results take its place: earlier states of the sandbox show it.
import { entryType } from "../../directory/entry.ts";
import { join, parentOf, type RawPath } from "../../directory/names.ts";
import type { Posix } from "../../directory/posix.ts";
import { opaqueMark } from "../lower.ts";
import { copyAttributes, copyEntry } from "./copy-entry.ts";
import { isWhiteout, type Step } from "./plan.ts";

/** A file is whole when it has its name: it is written under this one, outside of what any sandbox sees. */
const mark = opaqueMark.toString();
const unfinished = "unfinished";

export class Keeper {
  readonly #host: Posix;
  readonly #kept: Posix;
  readonly #name: RawPath;
  /** Their times, which move with what is put into them. */
  readonly #folders = new Map<RawPath, bigint>();

  /** @param kept the folder of all overlays' kept ones; `name` is this overlay's in it */
  constructor(host: Posix, kept: Posix, name: RawPath) {
    this.#host = host;
    this.#kept = kept;
    this.#name = name;
  }

  /** What was kept once stays: no state needs a later version. */
  keep({ path, kind }: Step): void {
    if (!this.#makeParents(path)) return;
    const stat = this.#host.stat(path);
    if (stat === undefined) this.#keepAbsence(path);
    else if (kind === "folder" && stat.type === entryType.directory) this.#keepFolder(path);
    else this.#keepWhole(path);
  }

  /** On disk when it returns. */
  finish(): void {
    for (const [path, mtimeNs] of this.#folders) this.#kept.setTime(this.#at(path), mtimeNs);
    this.#kept.native?.syncFileSystem(this.#kept.root);
  }

  #at(path: RawPath): RawPath {
    return path === "" ? this.#name : join(this.#name, path);
  }

  /** False where all that the host had above the path is kept already. */
  #makeParents(path: RawPath): boolean {
    if (path === "") return true;
    const parent = parentOf(path);
    return this.#makeParents(parent) && this.#keepFolder(parent) && !this.#isWhole(parent);
  }

  #isWhole(path: RawPath): boolean {
    return this.#kept.getXattrs(this.#at(path)).some(([name]) => name === mark);
  }

  #keepFolder(path: RawPath): boolean {
    const there = this.#kept.stat(this.#at(path));
    if (there !== undefined && there.type !== entryType.directory) return false;
    if (there !== undefined) {
      this.#rememberTime(path, there.mtimeNs);
      return true;
    }
    const stat = this.#host.stat(path);
    if (stat?.type !== entryType.directory) return false;
    this.#kept.makeDirectory(this.#at(path));
    copyAttributes(this.#host, path, this.#kept, this.#at(path), stat);
    this.#rememberTime(path, stat.mtimeNs);
    return true;
  }

  #rememberTime(folder: RawPath, mtimeNs: bigint): void {
    if (!this.#folders.has(folder)) this.#folders.set(folder, mtimeNs);
  }

  #keepAbsence(path: RawPath): void {
    if (this.#kept.stat(this.#at(path)) !== undefined) return;
    this.#kept.makeNode(this.#at(path), entryType.characterDevice, 0, 0);
  }

  #keepWhole(path: RawPath): void {
    const stat = this.#host.stat(path);
    const there = this.#kept.stat(this.#at(path));
    if (stat === undefined || (there !== undefined && there.type !== entryType.directory)) return;
    if (stat.type !== entryType.directory) {
      if (there !== undefined || stat.type === entryType.socket) return;
      if (this.#kept.stat(unfinished) !== undefined) this.#kept.unlink(unfinished);
      copyEntry(this.#host, path, this.#kept, unfinished);
      this.#kept.rename(unfinished, this.#at(path));
      return;
    }
    this.#keepFolder(path);
    for (const { name } of this.#host.readDirectory(path)) this.#keepWhole(join(path, name));
    // The host's folder at this path is another one from now on. Last: until then the two are one.
    if (this.#isWhole(path)) return;
    this.#kept.setXattrs(this.#at(path), [...this.#kept.getXattrs(this.#at(path)), [mark, Buffer.from("y")]]);
    this.#dropAbsences(path);
  }

  /** An overlay shows a mark of absence by its name in a folder that it does not merge with another one (seen on Linux 6.18). */
  #dropAbsences(folder: RawPath): void {
    for (const entry of this.#kept.readDirectory(this.#at(folder))) {
      const path = join(folder, entry.name);
      if (isWhiteout(entry)) this.#kept.unlink(this.#at(path));
      if (entry.type !== entryType.directory) continue;
      this.#rememberTime(path, entry.mtimeNs);
      this.#dropAbsences(path);
    }
  }
}
