// What lies below an overlay, which nobody may change while it is: what it holds, without following a link.
import { closeSync, constants, openSync } from "node:fs";
import { systemCode } from "../../errors.ts";
import { decodeEntries, type Native, type NativeEntry } from "../../native.ts";
import { fromBytes, parentOf, type RawPath, toBytes } from "../directory/names.ts";
import type { LayerEntry } from "./layers/layers.ts";

export interface Lower {
  look(path: RawPath): LayerEntry | null;
  /** Names in a folder. */
  list(path: RawPath): { readonly name: RawPath; readonly directory: boolean }[];
  /** A descriptor for reading. */
  open(path: RawPath): number;
  close(): void;
}

/** Overlay's mark of a folder that hides the one below it. */
export const opaqueMark = Buffer.from("trusted.overlay.opaque");

/** @param folders the topmost first: what an upper one holds hides what a lower one has there, but for folders, which are merged */
export function openLower(native: Native, folders: readonly string[]): Lower {
  return new StackedLower(folders.map((folder) => new Folder(native, folder)));
}

class StackedLower implements Lower {
  readonly #folders: readonly Folder[];

  constructor(folders: readonly Folder[]) {
    this.#folders = folders;
  }

  look(path: RawPath): LayerEntry | null {
    const entry = this.#seenIn(path)[0]?.look(path);
    return entry === undefined || entry === null ? null : layerEntry(entry);
  }

  list(path: RawPath): { readonly name: RawPath; readonly directory: boolean }[] {
    const found = new Map<RawPath, NativeEntry>();
    for (const folder of this.#seenIn(path))
      for (const entry of folder.list(path)) {
        const name = fromBytes(entry.name);
        if (!found.has(name)) found.set(name, entry);
      }
    return [...found]
      .filter(([, entry]) => !isWhiteout(entry))
      .map(([name, entry]) => ({ name, directory: isDirectory(entry) }));
  }

  open(path: RawPath): number {
    return (this.#seenIn(path)[0] ?? (this.#folders[0] as Folder)).open(path);
  }

  close(): void {
    for (const folder of this.#folders) folder.close();
  }

  /** The folders that have a part in what is seen at `path`, the topmost first. */
  #seenIn(path: RawPath): readonly Folder[] {
    if (this.#folders.length === 1) return this.#folders;
    const above = path === "" ? this.#folders : this.#seenIn(parentOf(path));
    const seen: Folder[] = [];
    for (const folder of above) {
      const entry = folder.look(path);
      if (entry === null) continue;
      if (!isDirectory(entry)) {
        if (seen.length === 0 && !isWhiteout(entry)) seen.push(folder);
        break;
      }
      seen.push(folder);
      if (folder.isOpaque(path)) break;
    }
    return seen;
  }
}

class Folder {
  readonly #native: Native;
  readonly #root: number;

  constructor(native: Native, folder: string) {
    this.#native = native;
    this.#root = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY);
  }

  look(path: RawPath): NativeEntry | null {
    const records = absentAsNull(() => this.#native.stat(this.#root, toBytes(path)));
    return (records === null ? undefined : decodeEntries(records)[0]) ?? null;
  }

  list(path: RawPath): NativeEntry[] {
    const records = absentAsNull(() => this.#native.readDirectory(this.#root, toBytes(path)));
    return records === null ? [] : decodeEntries(records);
  }

  open(path: RawPath): number {
    return this.#native.open(this.#root, toBytes(path), constants.O_RDONLY | constants.O_NONBLOCK, 0);
  }

  isOpaque(path: RawPath): boolean {
    return (
      absentAsNull(() => this.#native.getXattrs(this.#root, toBytes(path)))?.some(([name]) =>
        opaqueMark.equals(name),
      ) ?? false
    );
  }

  close(): void {
    closeSync(this.#root);
  }
}

export function absentAsNull<T>(look: () => T): T | null {
  try {
    return look();
  } catch (error) {
    if (["ENOENT", "ENOTDIR", "ELOOP"].includes(systemCode(error) ?? "")) return null;
    throw error;
  }
}

const typeOf = ({ mode }: NativeEntry): number => mode & constants.S_IFMT;
export const isDirectory = (entry: NativeEntry): boolean => typeOf(entry) === constants.S_IFDIR;
/** Overlay's mark of what was removed. */
export const isWhiteout = (entry: NativeEntry): boolean =>
  typeOf(entry) === constants.S_IFCHR && entry.rdevMajor === 0 && entry.rdevMinor === 0;

const types: Readonly<Record<number, LayerEntry["type"]>> = {
  [constants.S_IFREG]: "file",
  [constants.S_IFDIR]: "directory",
  [constants.S_IFLNK]: "symlink",
};

function layerEntry(entry: NativeEntry): LayerEntry {
  const { mode, uid, gid, size, mtimeNs, ino } = entry;
  const type = types[typeOf(entry)] ?? "other";
  return { type, opaque: false, mode: mode & 0o7777, uid, gid, size: Number(size), mtimeNs, inode: ino };
}
