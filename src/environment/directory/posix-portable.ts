// Posix with Node alone: times to the microsecond, no extended attributes, no device nodes, paths up to PATH_MAX.
import {
  accessSync,
  type BigIntStats,
  chmodSync,
  constants,
  lchownSync,
  linkSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  openSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmdirSync,
  symlinkSync,
  unlinkSync,
} from "node:fs";
import { systemCode } from "../../errors.ts";
import { type EntryType, entryType, fidelityBit } from "./entry.ts";
import { fromBytes, join, type RawPath, toBytes } from "./names.ts";
import type { NamedStat, Posix, Stat } from "./posix.ts";
import { isRoot } from "./posix-native.ts";

export function openPortablePosix(rootPath: string): Posix {
  const root = Buffer.from(rootPath);
  const real = lstatSync(root).isSymbolicLink() ? Buffer.from(readlinkSync(root, "buffer")) : root;
  const owners = isRoot();

  const absolute = (path: RawPath): Buffer =>
    path === "" ? real : Buffer.concat([real, Buffer.from("/"), toBytes(path)]);

  /** Refuses a path with a link among its parents. */
  function inside(path: RawPath): Buffer {
    for (let slash = path.indexOf("/"); slash >= 0; slash = path.indexOf("/", slash + 1)) {
      if (!lstatSync(absolute(path.slice(0, slash))).isDirectory()) {
        throw Object.assign(new Error(`ELOOP: a parent of '${path}' is not a directory`), {
          code: "ELOOP",
          syscall: "lstat",
        });
      }
    }
    return absolute(path);
  }

  function stat(path: RawPath): Stat | undefined {
    try {
      return toStat(lstatSync(absolute(path), { bigint: true }));
    } catch (error) {
      if (systemCode(error) === "ENOENT" || systemCode(error) === "ENOTDIR") return undefined;
      throw error;
    }
  }

  return {
    native: null,
    root: -1,
    fidelity: owners ? fidelityBit.owners : 0,
    lacks: [
      "times finer than a microsecond",
      "extended attributes and ACLs",
      "device nodes and FIFOs",
      "a dry run's word of what is append-only",
      "where holes lie in a file (pages of zeros beside them become holes)",
      "paths longer than PATH_MAX",
      "protection against links swapped in while a restore writes",
      "stores through shared mappings",
      "word of processes that still write to what a restore replaced",
      "a database and its log as of one moment",
      ...(owners ? [] : ["owners (needs root)"]),
    ],
    readDirectory(path) {
      const names = readdirSync(inside(path), { encoding: "buffer" }).map(fromBytes).sort();
      const found: NamedStat[] = [];
      for (const name of names) {
        const one = stat(join(path, name));
        if (one !== undefined) found.push({ ...one, name });
      }
      return found;
    },
    stat,
    isMarked(path) {
      const type = stat(path)?.type;
      if (type !== entryType.file && type !== entryType.directory) return false;
      try {
        accessSync(inside(path), constants.W_OK);
        return false;
      } catch (error) {
        // Of one's own and as root: EACCES is for modes.
        return systemCode(error) === "EPERM";
      }
    },
    readLink: (path) => fromBytes(readlinkSync(inside(path), "buffer")),
    openRead: (path) => openSync(inside(path), constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW),
    openWrite: (path) => openSync(inside(path), constants.O_WRONLY | constants.O_TRUNC | constants.O_NOFOLLOW),
    create: (path) =>
      openSync(inside(path), constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, 0o600),
    makeDirectory: (path) => mkdirSync(inside(path), 0o700),
    makeSymlink: (target, path) => symlinkSync(toBytes(target), inside(path)),
    makeLink: (from, to) => linkSync(inside(from), inside(to)),
    makeNode(path) {
      throw Object.assign(new Error(`ENOSYS: '${path}' needs the native addon`), { code: "ENOSYS", syscall: "mknod" });
    },
    unlink: (path) => unlinkSync(inside(path)),
    removeDirectory: (path) => rmdirSync(inside(path)),
    rename: (from, to) => renameSync(inside(from), inside(to)),
    setMode: (path, mode) => chmodSync(inside(path), mode),
    setOwner: (path, uid, gid) => lchownSync(inside(path), uid, gid),
    setTime(path, mtimeNs) {
      // Half a microsecond away from zero: libuv cuts the seconds' fraction off at microseconds.
      // As text, because Node takes a negative number for "now".
      const seconds = `${Number(mtimeNs / 1000n) / 1e6 + (mtimeNs < 0n ? -5e-7 : 5e-7)}`;
      lutimesSync(inside(path), seconds, seconds);
    },
    getXattrs: () => [],
    setXattrs: () => {},
    close() {},
  };
}

function toStat(stat: BigIntStats): Stat {
  const rdev = Number(stat.rdev);
  return {
    type: typeOf(stat),
    mode: Number(stat.mode) & 0o7777,
    uid: Number(stat.uid),
    gid: Number(stat.gid),
    nlink: Number(stat.nlink),
    rdevMajor: (rdev >> 8) & 0xfff,
    rdevMinor: (rdev & 0xff) | ((rdev >> 12) & 0xfff00),
    dev: `${stat.dev}`,
    ino: stat.ino,
    size: Number(stat.size),
    blocks: Number(stat.blocks),
    mtimeNs: (stat.mtimeNs / 1000n) * 1000n,
    ctimeNs: stat.ctimeNs,
  };
}

function typeOf(stat: BigIntStats): EntryType {
  if (stat.isFile()) return entryType.file;
  if (stat.isDirectory()) return entryType.directory;
  if (stat.isSymbolicLink()) return entryType.symlink;
  if (stat.isFIFO()) return entryType.fifo;
  if (stat.isCharacterDevice()) return entryType.characterDevice;
  if (stat.isBlockDevice()) return entryType.blockDevice;
  return entryType.socket;
}
