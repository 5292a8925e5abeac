// What must be done on the host so that a folder of it is as the sandbox has it: out of the overlay's upper folder, which holds only what differs.
import { closeSync, readSync } from "node:fs";
import type { Breathe } from "../../../breathe.ts";
import { entryType } from "../../directory/entry.ts";
import { join, type RawPath } from "../../directory/names.ts";
import type { NamedStat, Posix, Stat } from "../../directory/posix.ts";
import { opaqueMark } from "../lower.ts";

/** "folder": made, or given its mode and owner; "put": anything else that takes the place of what is there. */
export interface Step {
  /** Below the overlay's root. Parents come before what they hold. */
  readonly path: RawPath;
  readonly kind: "remove" | "folder" | "put";
  readonly change: "added" | "changed" | "removed";
}

export interface PlanOptions {
  /** The upper folder of the state. */
  readonly upper: Posix;
  /** What lies below the overlay on the host. */
  readonly host: Posix;
  readonly breathe: Breathe;
  /** Names of ours, left alone. */
  readonly own: (path: RawPath) => boolean;
  /** Is told of sockets: nobody would listen on them. */
  readonly onSocket: (path: RawPath) => void;
}

/** @param below the folder, below the overlay's root */
export async function planSteps(options: PlanOptions, below: RawPath): Promise<Step[]> {
  const { upper, host } = options;
  const top = topOf(upper, below);
  if (top === "unchanged") return [];
  const steps: Step[] = [];
  if (top === "gone") {
    for (const { name } of host.readDirectory(below)) remove(options, steps, join(below, name));
    return steps;
  }
  await compareFolder(options, steps, { path: below, alone: top === "alone", isOnHost: true });
  return steps;
}

/** "merged" with the host's, or "alone": it hides the host's. */
function topOf(upper: Posix, below: RawPath): "unchanged" | "gone" | "merged" | "alone" {
  let alone = false;
  let at: RawPath = "";
  for (const part of below === "" ? [] : below.split("/")) {
    at = join(at, part);
    const stat = upper.stat(at);
    if (stat === undefined) return alone ? "gone" : "unchanged";
    if (stat.type !== entryType.directory) return "gone";
    alone ||= isOpaque(upper, at);
  }
  return alone ? "alone" : "merged";
}

interface Compared {
  readonly path: RawPath;
  /** It hides the host's. */
  readonly alone: boolean;
  /** The host has a folder there. */
  readonly isOnHost: boolean;
}

async function compareFolder(options: PlanOptions, steps: Step[], compared: Compared): Promise<void> {
  const { upper, host, breathe, own } = options;
  const { path: folder, alone, isOnHost } = compared;
  const there = new Map(isOnHost ? host.readDirectory(folder).map((entry) => [entry.name, entry]) : []);
  const entries = upper.readDirectory(folder);
  for (const { name } of entries.filter(isSocket)) options.onSocket(join(folder, name));
  const wanted = entries.filter((entry) => !isSocket(entry));
  const names = new Set(wanted.filter((entry) => !isWhiteout(entry)).map(({ name }) => name));
  const gone = wanted.filter(isWhiteout).map(({ name }) => name);
  for (const name of alone ? there.keys() : gone)
    if (there.has(name) && !names.has(name)) remove(options, steps, join(folder, name));
  for (const entry of wanted) {
    const path = join(folder, entry.name);
    const pause = breathe();
    if (pause !== undefined) await pause;
    if (isWhiteout(entry) || own(path)) continue;
    const now = there.get(entry.name);
    const change = now === undefined ? "added" : "changed";
    if (entry.type !== entryType.directory) {
      if (now === undefined || !isSame(options, path, entry, now)) steps.push({ path, kind: "put", change });
      continue;
    }
    const isFolder = now?.type === entryType.directory;
    if (!isFolder || !isSameOwner(entry, now)) steps.push({ path, kind: "folder", change });
    await compareFolder(options, steps, { path, alone: isOpaque(upper, path), isOnHost: isFolder });
  }
}

function remove({ own }: PlanOptions, steps: Step[], path: RawPath): void {
  if (!own(path)) steps.push({ path, kind: "remove", change: "removed" });
}

const isSocket = ({ type }: Stat): boolean => type === entryType.socket;

export const isWhiteout = ({ type, rdevMajor, rdevMinor }: Stat): boolean =>
  type === entryType.characterDevice && rdevMajor === 0 && rdevMinor === 0;

const isOpaque = (upper: Posix, path: RawPath): boolean =>
  upper.getXattrs(path).some(([name]) => name === opaqueMark.toString());

const isSameOwner = (one: Stat, other: Stat): boolean =>
  one.mode === other.mode && one.uid === other.uid && one.gid === other.gid;

function isSame({ upper, host }: PlanOptions, path: RawPath, one: NamedStat, other: NamedStat): boolean {
  if (one.type !== other.type || !isSameOwner(one, other)) return false;
  if (one.type === entryType.symlink) return upper.readLink(path) === host.readLink(path);
  if (one.type !== entryType.file) return one.rdevMajor === other.rdevMajor && one.rdevMinor === other.rdevMinor;
  return one.size === other.size && haveSameBytes(upper.openRead(path), host.openRead(path));
}

/** Closes both. */
function haveSameBytes(one: number, other: number): boolean {
  const pieces = [Buffer.allocUnsafe(1 << 16), Buffer.allocUnsafe(1 << 16)] as const;
  try {
    for (;;) {
      const [left, right] = [readFull(one, pieces[0]), readFull(other, pieces[1])];
      if (!left.equals(right)) return false;
      if (left.length < pieces[0].length) return true;
    }
  } finally {
    closeSync(one);
    closeSync(other);
  }
}

function readFull(fd: number, into: Buffer): Buffer {
  let done = 0;
  while (done < into.length) {
    const read = readSync(fd, into, done, into.length - done, null);
    if (read === 0) break;
    done += read;
  }
  return into.subarray(0, done);
}
