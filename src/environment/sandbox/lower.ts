// The folder below an overlay, which nobody may change while it is: what it holds, without following a link.
import { closeSync, constants, openSync } from "node:fs";
import { systemCode } from "../../errors.ts";
import { decodeEntries, type Native, type NativeEntry } from "../../native.ts";
import { fromBytes, type RawPath, toBytes } from "../directory/names.ts";
import type { LayerEntry } from "./layers/layers.ts";

export interface Lower {
  look(path: RawPath): LayerEntry | null;
  /** Names in a folder. */
  list(path: RawPath): { readonly name: RawPath; readonly directory: boolean }[];
  /** A descriptor for reading. */
  open(path: RawPath): number;
  close(): void;
}

export function openLower(native: Native, folder: string): Lower {
  const root = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY);
  return {
    look(path) {
      const records = absentAsNull(() => native.stat(root, toBytes(path)));
      const [entry] = records === null ? [] : decodeEntries(records);
      return entry === undefined ? null : layerEntry(entry);
    },
    list(path) {
      const records = absentAsNull(() => native.readDirectory(root, toBytes(path)));
      if (records === null) return [];
      return decodeEntries(records).map((entry) => ({ name: fromBytes(entry.name), directory: isDirectory(entry) }));
    },
    open: (path) => native.open(root, toBytes(path), constants.O_RDONLY | constants.O_NONBLOCK, 0),
    close: () => closeSync(root),
  };
}

export function absentAsNull<T>(look: () => T): T | null {
  try {
    return look();
  } catch (error) {
    if (["ENOENT", "ENOTDIR", "ELOOP"].includes(systemCode(error) ?? "")) return null;
    throw error;
  }
}

const isDirectory = ({ mode }: NativeEntry): boolean => (mode & constants.S_IFMT) === constants.S_IFDIR;

const types: Readonly<Record<number, LayerEntry["type"]>> = {
  [constants.S_IFREG]: "file",
  [constants.S_IFDIR]: "directory",
  [constants.S_IFLNK]: "symlink",
};

function layerEntry({ mode, uid, gid, size, mtimeNs, ino }: NativeEntry): LayerEntry {
  const type = types[mode & constants.S_IFMT] ?? "other";
  return { type, opaque: false, mode: mode & 0o7777, uid, gid, size: Number(size), mtimeNs, inode: ino };
}
