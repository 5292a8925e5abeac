// The disk below a folder: kind of file system, free space, bytes used.
import { lstatSync, readdirSync, statfsSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

const magics: Record<number, string> = {
  61267: "ext4",
  2435016766: "btrfs",
  1481003842: "xfs",
  16914836: "tmpfs",
  2035054128: "overlay",
  26985: "nfs",
  16914839: "9p",
  1702057286: "fuse",
  801189825: "zfs",
  4076150800: "f2fs",
  4283649346: "cifs",
  4266872130: "smb2",
  19780: "vfat",
};

/** Its name; the number of its kind where that is not known; null where it cannot be asked. */
export function fileSystemOf(path: string): string | null {
  try {
    const type = statfsSync(path).type >>> 0;
    if (process.platform !== "linux") return null;
    return magics[type] ?? `0x${type.toString(16)}`;
  } catch {
    return null;
  }
}

/** Free for this user at `path`, or where its nearest existing parent lies. */
export function freeBytes(path: string): number | null {
  try {
    let folder = resolve(path);
    while (statSync(folder, { throwIfNoEntry: false }) === undefined) folder = dirname(folder);
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize;
  } catch {
    return null;
  }
}

/** Bytes on disk of everything below `folder`; what vanishes meanwhile counts nothing. */
export function folderBytes(folder: string): number {
  let sum = 0;
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) sum += folderBytes(path);
    else sum += (lstatSync(path, { throwIfNoEntry: false })?.blocks ?? 0) * 512;
  }
  return sum;
}
