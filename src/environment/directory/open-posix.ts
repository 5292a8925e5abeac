// Chooses the addon where it is there, Node alone where not; tests can fail every change.
import { loadNative } from "../../native.ts";
import { beforeChange, type Change } from "../../write-faults.ts";
import type { Posix } from "./posix.ts";
import { openNativePosix } from "./posix-native.ts";
import { openPortablePosix } from "./posix-portable.ts";

/** Opens the directory at `root`. */
export function openPosix(root: string): Posix {
  const { native } = loadNative();
  const posix = native === null ? openPortablePosix(root) : openNativePosix(root, native);
  const changing =
    <A extends unknown[], R>(change: Change, act: (...values: A) => R) =>
    (...values: A): R => {
      beforeChange(change);
      return act.apply(posix, values);
    };
  return {
    ...posix,
    openWrite: changing("open", posix.openWrite),
    create: changing("open", posix.create),
    makeDirectory: changing("make", posix.makeDirectory),
    makeSymlink: changing("make", posix.makeSymlink),
    makeLink: changing("link", posix.makeLink),
    makeNode: changing("make", posix.makeNode),
    unlink: changing("remove", posix.unlink),
    removeDirectory: changing("remove", posix.removeDirectory),
    rename: changing("rename", posix.rename),
    setMode: changing("metadata", posix.setMode),
    setOwner: changing("metadata", posix.setOwner),
    setTime: changing("metadata", posix.setTime),
    setXattrs: changing("metadata", posix.setXattrs),
  };
}
