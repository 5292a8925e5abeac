// Runs the steps of a restore with Node alone, one after the other.

import { closeSync, constants } from "node:fs";
import type { Breathe } from "../../breathe.ts";
import { isRewindError, systemCode } from "../../errors.ts";
import { type FaultPoint, fault } from "../../faults.ts";
import type { ObjectReader } from "../../store/objects.ts";
import { writeContent } from "./content.ts";
import { decodeEntry, type Entry, entryType, fidelityBit, sameXattrs } from "./entry.ts";
import { type Job, type JobFailure, type JobRunner, operation } from "./job.ts";
import { join, parentOf, type RawPath } from "./names.ts";
import type { Posix, Stat } from "./posix.ts";

const points: Partial<Record<Job["operation"], FaultPoint>> = {
  [operation.stage]: "restore.staged-one",
  [operation.remove]: "restore.removed-one",
  [operation.removeDirectory]: "restore.removed-one",
  [operation.place]: "restore.placed-one",
  [operation.link]: "restore.placed-one",
  [operation.setMetadata]: "restore.metadata-one",
};

class Failed extends Error {
  readonly failure: JobFailure;
  constructor(kind: JobFailure["kind"], cause?: unknown) {
    super(kind);
    this.failure = { kind, code: systemCode(cause) ?? "", syscall: "", cause };
  }
}

export function portableJobs(posix: Posix, objects: ObjectReader, breathe: Breathe): JobRunner {
  async function run(job: Job): Promise<void> {
    const { at, from = "", temporary = "" } = job;
    switch (job.operation) {
      case operation.stage:
        return stage(at, decodeEntry(job.entry as Buffer));
      case operation.makeDirectory:
        return unstaged(() => posix.makeDirectory(at));
      case operation.remove:
        if (isThere(job)) posix.unlink(at);
        return;
      case operation.removeDirectory:
        if (posix.stat(at) !== undefined) posix.removeDirectory(at);
        return;
      case operation.place:
        isThere(job);
        return posix.rename(from, at);
      case operation.link:
        if (!isThere(job)) return posix.makeLink(from, at);
        posix.makeLink(from, temporary);
        return posix.rename(temporary, at);
      case operation.setMetadata: {
        const entry = decodeEntry(job.entry as Buffer);
        if (entry.type !== entryType.directory ? !isThere(job) : posix.stat(at)?.type !== entryType.directory)
          throw new Failed("moved");
        return setMetadata(posix, at, entry);
      }
      case operation.removeTree:
        return removeTree(posix, at);
    }
  }

  /** False where nothing is there. @throws moved when something else is there than was known */
  function isThere({ at, known, shared = false }: Job): boolean {
    const now = posix.stat(at);
    if (now === undefined) return false;
    const same =
      known !== undefined &&
      now.type === known.type &&
      now.ino === known.ino &&
      now.mtimeNs === known.mtimeNs &&
      (known.type !== entryType.file || now.size === known.size) &&
      (shared || now.ctimeNs === known.ctimeNs);
    if (!same) throw new Failed("moved");
    return true;
  }

  async function stage(at: RawPath, entry: Entry): Promise<void> {
    if (entry.type === entryType.file) {
      const fd = unstaged(() => posix.create(at));
      try {
        await writeContent(fd, entry, objects, breathe);
      } catch (error) {
        throw new Failed(isRewindError(error, "STORE_CORRUPT") ? "damaged" : "unstaged", error);
      } finally {
        closeSync(fd);
      }
    } else if (entry.type === entryType.symlink) unstaged(() => posix.makeSymlink(entry.tail, at));
    else posix.makeNode(at, entry.type, entry.rdevMajor, entry.rdevMinor);
    try {
      setMetadata(posix, at, entry);
    } catch (error) {
      if (!(error instanceof Failed) || error.failure.kind !== "owner") posix.unlink(at);
      throw error;
    }
  }

  /** A folder without permissions is opened for its owner while we work in it; its own mode comes back with its metadata. */
  async function runOpened(job: Job): Promise<void> {
    try {
      await run(job);
    } catch (error) {
      if (systemCode(error) !== "EACCES" || !openFolder(posix, parentOf(job.at))) throw error;
      await run(job);
    }
  }

  return {
    async run(jobs, failed) {
      for (const job of jobs) {
        try {
          await runOpened(job);
        } catch (error) {
          failed(job, failureOf(error));
        }
        const point = points[job.operation];
        if (point !== undefined) fault(point);
        const pause = breathe();
        if (pause !== undefined) await pause;
      }
    },
  };
}

function unstaged<T>(act: () => T): T {
  try {
    return act();
  } catch (error) {
    throw new Failed("unstaged", error);
  }
}

function failureOf(error: unknown): JobFailure {
  if (error instanceof Failed) return error.failure;
  const code = systemCode(error);
  if (code === undefined) throw error;
  const kind = code === "ENOENT" || code === "ENOTDIR" || code === "ELOOP" ? "moved" : "refused";
  return { kind, code, syscall: "", cause: error };
}

function setMetadata(posix: Posix, path: RawPath, entry: Entry): void {
  const now = posix.stat(path);
  const refused = now === undefined ? undefined : setOwner(posix, path, now, entry);
  const isLink = entry.type === entryType.symlink;
  if ((posix.fidelity & fidelityBit.xattrs) !== 0 && !sameXattrs(posix.getXattrs(path), entry.xattrs)) {
    // An owner who may not write may not change attributes either.
    if (!isLink && now !== undefined && (now.mode & constants.S_IWUSR) === 0)
      posix.setMode(path, now.mode | constants.S_IWUSR);
    posix.setXattrs(path, entry.xattrs);
  }
  if (!isLink) posix.setMode(path, entry.mode);
  posix.setTime(path, entry.mtimeNs);
  if (refused !== undefined) throw new Failed("owner", refused);
}

/** Returns the refusal. Who may not give a file away may still give it to a group of their own. */
function setOwner(posix: Posix, path: RawPath, now: Stat, { uid, gid }: Entry): unknown {
  if (now.uid === uid && now.gid === gid) return undefined;
  try {
    posix.setOwner(path, uid, gid);
    return undefined;
  } catch (error) {
    // EINVAL: the id has no meaning in this user namespace.
    if (!["EPERM", "EINVAL"].includes(systemCode(error) ?? "")) throw error;
    try {
      if (now.uid !== uid && now.gid !== gid) posix.setOwner(path, now.uid, gid);
    } catch {
      // Refused as well: the first refusal tells.
    }
    return error;
  }
}

/** Gives the owner all permissions in a folder; false where the owner has them or the system refuses. */
export function openFolder(posix: Posix, folder: RawPath): boolean {
  try {
    const stat = posix.stat(folder);
    if (stat === undefined || (stat.mode & constants.S_IRWXU) === constants.S_IRWXU) return false;
    posix.setMode(folder, stat.mode | constants.S_IRWXU);
    return true;
  } catch {
    return false;
  }
}

function removeTree(posix: Posix, path: RawPath): void {
  const stat = posix.stat(path);
  if (stat === undefined) return;
  if (stat.type !== entryType.directory) {
    posix.unlink(path);
    return;
  }
  for (const child of posix.readDirectory(path)) removeTree(posix, join(path, child.name));
  posix.removeDirectory(path);
}
