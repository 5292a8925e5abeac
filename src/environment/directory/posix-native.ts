// Posix through the addon: exact, and safe against links that are swapped in while we work.
import { closeSync, constants, openSync } from "node:fs";
import { decodeEntries, entryAttributes, type Native, type NativeEntry } from "../../native.ts";
import { type EntryType, entryType, fidelityBit, sameXattrs } from "./entry.ts";
import { fromBytes, toBytes } from "./names.ts";
import type { Posix, Stat } from "./posix.ts";

const typeOfMode: Record<number, EntryType> = {
  [constants.S_IFREG]: entryType.file,
  [constants.S_IFDIR]: entryType.directory,
  [constants.S_IFLNK]: entryType.symlink,
  [constants.S_IFIFO]: entryType.fifo,
  [constants.S_IFCHR]: entryType.characterDevice,
  [constants.S_IFBLK]: entryType.blockDevice,
  [constants.S_IFSOCK]: entryType.socket,
};

const modeOfType: Partial<Record<EntryType, number>> = {
  [entryType.fifo]: constants.S_IFIFO,
  [entryType.characterDevice]: constants.S_IFCHR,
  [entryType.blockDevice]: constants.S_IFBLK,
};

export const isRoot = (): boolean => process.getuid?.() === 0;

export function openNativePosix(rootPath: string, native: Native): Posix {
  const root = openSync(rootPath, constants.O_RDONLY | constants.O_DIRECTORY);
  const owners = isRoot();
  return {
    native,
    root,
    fidelity:
      fidelityBit.nanoseconds |
      fidelityBit.xattrs |
      fidelityBit.holes |
      (owners ? fidelityBit.devices | fidelityBit.owners : 0),
    lacks: owners ? [] : ["owners and device nodes (needs root)"],
    readDirectory: (path) =>
      decodeEntries(native.readDirectory(root, toBytes(path))).map((entry) => ({
        ...toStat(entry),
        name: fromBytes(entry.name),
      })),
    stat(path) {
      const found = native.stat(root, toBytes(path));
      return found === null ? undefined : toStat(decodeEntries(found)[0] as NativeEntry);
    },
    isMarked(path) {
      const found = native.stat(root, toBytes(path));
      const attributes = found === null ? 0 : (decodeEntries(found)[0] as NativeEntry).attributes;
      return (attributes & (entryAttributes.immutable | entryAttributes.append)) !== 0;
    },
    readLink: (path) => fromBytes(native.readLink(root, toBytes(path))),
    openRead: (path) => native.open(root, toBytes(path), constants.O_RDONLY | constants.O_NONBLOCK, 0),
    openWrite: (path) => native.open(root, toBytes(path), constants.O_WRONLY | constants.O_TRUNC, 0),
    create: (path) =>
      native.open(root, toBytes(path), constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600),
    makeDirectory: (path) => native.makeDirectory(root, toBytes(path), 0o700),
    makeSymlink: (target, path) => native.makeSymlink(root, toBytes(target), toBytes(path)),
    makeLink: (from, to) => native.makeLink(root, toBytes(from), toBytes(to)),
    makeNode: (path, type, major, minor) =>
      native.makeNode(root, toBytes(path), (modeOfType[type] ?? 0) | 0o600, major, minor),
    unlink: (path) => native.unlink(root, toBytes(path)),
    removeDirectory: (path) => native.removeDirectory(root, toBytes(path)),
    rename: (from, to) => native.rename(root, toBytes(from), toBytes(to), 0),
    setMode: (path, mode) => native.setMode(root, toBytes(path), mode),
    setOwner: (path, uid, gid) => native.setOwner(root, toBytes(path), uid, gid),
    setTime: (path, mtimeNs) => native.setTimes(root, toBytes(path), null, mtimeNs),
    getXattrs: (path) => native.getXattrs(root, toBytes(path)).map(([name, value]) => [fromBytes(name), value]),
    setXattrs(path, wanted) {
      const at = toBytes(path);
      const present = this.getXattrs(path);
      if (sameXattrs(present, wanted)) return;
      const names = new Set(wanted.map(([name]) => name));
      for (const [name] of present) if (!names.has(name)) native.removeXattr(root, at, toBytes(name));
      for (const [name, value] of wanted) native.setXattr(root, at, toBytes(name), value);
    },
    close: () => closeSync(root),
  };
}

function toStat(entry: NativeEntry): Stat {
  return {
    type: typeOfMode[entry.mode & constants.S_IFMT] ?? entryType.socket,
    mode: entry.mode & 0o7777,
    uid: entry.uid,
    gid: entry.gid,
    nlink: entry.nlink,
    rdevMajor: entry.rdevMajor,
    rdevMinor: entry.rdevMinor,
    dev: `${entry.devMajor}:${entry.devMinor}`,
    ino: entry.ino,
    size: Number(entry.size),
    blocks: Number(entry.blocks),
    mtimeNs: entry.mtimeNs,
    ctimeNs: entry.ctimeNs,
  };
}
