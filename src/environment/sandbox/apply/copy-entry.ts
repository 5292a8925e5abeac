// Copies single entries between two folders with all that belongs to them, but for overlay's own marks.
import { closeSync, constants, copyFileSync, fstatSync, fsyncSync, ftruncateSync, readSync, writeSync } from "node:fs";
import { entryType } from "../../directory/entry.ts";
import type { RawPath } from "../../directory/names.ts";
import type { Posix, Stat } from "../../directory/posix.ts";

const isMark = (name: string): boolean => /^(trusted|user)\.overlay\./.test(name);

/** Anything but a folder; nothing may be at `as`. A file's content is shared where the file systems can. */
export function copyEntry(from: Posix, path: RawPath, to: Posix, as: RawPath): void {
  const stat = from.stat(path);
  if (stat === undefined) return;
  if (stat.type === entryType.file) copyContent(from, path, to, as);
  else if (stat.type === entryType.symlink) to.makeSymlink(from.readLink(path), as);
  else to.makeNode(as, stat.type, stat.rdevMajor, stat.rdevMinor);
  copyAttributes(from, path, to, as, stat);
  to.setTime(as, stat.mtimeNs);
}

/** Mode, owner and extended attributes. */
export function copyAttributes(from: Posix, path: RawPath, to: Posix, as: RawPath, stat: Stat): void {
  to.setOwner(as, stat.uid, stat.gid);
  const marks = to.getXattrs(as).filter(([name]) => isMark(name));
  to.setXattrs(as, [...from.getXattrs(path).filter(([name]) => !isMark(name)), ...marks]);
  // Behind the owner: a change of owner takes setuid away.
  if (stat.type !== entryType.symlink) to.setMode(as, stat.mode);
}

/** On disk when it returns. Holes stay holes. */
function copyContent(from: Posix, path: RawPath, to: Posix, as: RawPath): void {
  const source = from.openRead(path);
  try {
    const target = to.create(as);
    try {
      if (!share(source, target)) copyData(source, target, from);
      fsyncSync(target);
    } finally {
      closeSync(target);
    }
  } finally {
    closeSync(source);
  }
}

function share(source: number, target: number): boolean {
  try {
    copyFileSync(`/proc/self/fd/${source}`, `/proc/self/fd/${target}`, constants.COPYFILE_FICLONE_FORCE);
    return true;
  } catch {
    return false;
  }
}

function copyData(source: number, target: number, { native }: Posix): void {
  const { size } = fstatSync(source);
  const buffer = Buffer.allocUnsafe(1 << 20);
  for (let at = 0; at < size; ) {
    const [start, end] = native?.nextData(source, at) ?? [size, size];
    for (at = start; at < end; ) {
      const read = readSync(source, buffer, 0, Math.min(buffer.length, end - at), at);
      if (read === 0) break;
      for (let done = 0; done < read; ) done += writeSync(target, buffer, done, read - done, at + done);
      at += read;
    }
    at = end;
  }
  ftruncateSync(target, size);
}
