// Carries out a restore plan in the order of F-23: everything is staged before anything else is touched.
import { closeSync, constants } from "node:fs";
import { asWriteFailure, RewindError, systemCode } from "../../errors.ts";
import { fault } from "../../faults.ts";
import type { ObjectReader } from "../../store/objects.ts";
import type { Problem } from "../environment.ts";
import type { ContentSource } from "./clone.ts";
import { contentObjects, writeContent } from "./content.ts";
import { type Entry, entryType, fidelityBit, sameXattrs } from "./entry.ts";
import { display, join, parentOf, type RawPath } from "./names.ts";
import type { Plan } from "./plan.ts";
import type { Posix, Stat } from "./posix.ts";

export interface ApplyOptions {
  readonly posix: Posix;
  readonly objects: ObjectReader;
  /** Name of the staging folder in the root. */
  readonly stage: RawPath;
  readonly breathe: () => Promise<void> | undefined;
  readonly source?: ContentSource | undefined;
}

/** Refusals that concern one path: they are reported, the rest goes on. */
const refusals = new Set([
  "EACCES",
  "EPERM",
  "EBUSY",
  "EROFS",
  "ENOSYS",
  "ENOTSUP",
  "EOPNOTSUPP",
  "ENAMETOOLONG",
  "ETXTBSY",
  "EXDEV",
  "ENOTEMPTY",
  "EISDIR",
  "ENOTDIR",
  "EEXIST",
]);

/** What the system refused so far. */
interface Refused {
  readonly problems: Problem[];
  /** Paths that are not there because of it, and so nothing can be below them. */
  readonly missing: Set<RawPath>;
}

/** Returns what could not be brought back. @throws STORE_CORRUPT and DISK_FULL with nothing touched; RESTORE_FAILED midway */
export async function applyPlan(plan: Plan, options: ApplyOptions): Promise<Problem[]> {
  const { posix, stage } = options;
  checkObjects(plan, options.objects);
  fault("restore.checked");
  removeTree(posix, stage);
  const refused: Refused = { problems: [], missing: new Set() };
  const staged = plan.placements.length + plan.links.length > 0;
  if (staged) {
    const root = posix.stat("");
    try {
      makeStage(posix, stage);
      await stageAll(plan, options, refused);
    } catch (error) {
      removeTree(posix, stage);
      if (root !== undefined) putRootBack(posix, root);
      throw asWriteFailure(error, "the workspace");
    }
  }
  fault("restore.staged");
  try {
    await placeAll(plan, options, refused);
    fault("restore.applied");
    if (staged) removeTree(posix, stage);
    fault("restore.cleaned");
    await setAllMetadata(plan, options, refused);
  } catch (error) {
    throw new RewindError("RESTORE_FAILED", `The restore stopped midway: ${(error as Error).message}.`, {
      hint: "Run the same rewind again: it goes on from here.",
      cause: asWriteFailure(error, "the workspace"),
    });
  }
  return refused.problems;
}

function makeStage(posix: Posix, stage: RawPath): void {
  try {
    posix.makeDirectory(stage);
  } catch (error) {
    if (systemCode(error) === "EACCES" && openFolder(posix, "")) posix.makeDirectory(stage);
    else throw error;
  }
}

function putRootBack(posix: Posix, root: Stat): void {
  if (posix.stat("")?.mode !== root.mode) posix.setMode("", root.mode);
  posix.setTime("", root.mtimeNs);
}

function checkObjects(plan: Plan, objects: ObjectReader): void {
  for (const { path, entry } of plan.placements) {
    if (entry.type !== entryType.file) continue;
    for (const hash of contentObjects(objects, entry)) {
      const fault = objects.check(hash);
      if (fault === undefined) continue;
      throw new RewindError(
        "STORE_CORRUPT",
        `The stored content of ${display(path)} cannot be used: ${fault}. Nothing was changed.`,
        {
          hint: "Run `agentrewind verify` to see which checkpoints are affected, and rewind to another one.",
          details: { path: display(path), object: hash.toString("hex") },
        },
      );
    }
  }
}

async function stageAll(plan: Plan, options: ApplyOptions, refused: Refused): Promise<void> {
  const { posix, objects, stage, breathe, source } = options;
  for (const [index, { path, entry }] of plan.placements.entries()) {
    const at = join(stage, `${index}`);
    if (entry.type === entryType.symlink) posix.makeSymlink(entry.tail, at);
    else if (entry.type === entryType.file) {
      const fd = posix.create(at);
      try {
        if (source?.share(path, fd) !== true) await writeContent(fd, entry, objects, breathe);
      } finally {
        closeSync(fd);
      }
    } else {
      try {
        posix.makeNode(at, entry.type, entry.rdevMajor, entry.rdevMinor);
      } catch (error) {
        report(path, error, refused);
        refused.missing.add(path);
        continue;
      }
    }
    fault("restore.staged-one");
    await breathe();
  }
}

async function placeAll(plan: Plan, options: ApplyOptions, refused: Refused): Promise<void> {
  const { posix, stage, breathe } = options;
  const attempt = (path: RawPath, act: () => void): boolean => attemptOn(posix, path, act, refused);

  for (const { path, directory } of plan.removals) {
    attempt(path, () => {
      if (posix.stat(path) === undefined) return;
      if (directory) posix.removeDirectory(path);
      else posix.unlink(path);
    });
    fault("restore.removed-one");
    await breathe();
  }
  for (const path of plan.directories) {
    if (!attempt(path, () => posix.makeDirectory(path))) refused.missing.add(path);
  }
  for (const [index, { path, entry }] of plan.placements.entries()) {
    attempt(path, () => {
      const at = join(stage, `${index}`);
      setMetadata(posix, at, entry);
      posix.rename(at, path);
    });
    fault("restore.placed-one");
    await breathe();
  }
  for (const [index, { path, first }] of plan.links.entries()) {
    attempt(path, () => {
      const at = join(stage, `link-${index}`);
      posix.makeLink(first, at);
      posix.rename(at, path);
    });
    await breathe();
  }
}

/** After everything else: changing an entry changes the times of its folder. */
async function setAllMetadata(plan: Plan, { posix, breathe }: ApplyOptions, refused: Refused): Promise<void> {
  for (const { path, entry } of plan.metadata) {
    attemptOn(posix, path, () => setMetadata(posix, path, entry), refused);
    fault("restore.metadata-one");
    await breathe();
  }
}

function setMetadata(posix: Posix, path: RawPath, entry: Entry): void {
  const now = posix.stat(path);
  if ((posix.fidelity & fidelityBit.owners) !== 0) {
    if (now === undefined || now.uid !== entry.uid || now.gid !== entry.gid) posix.setOwner(path, entry.uid, entry.gid);
  }
  const isLink = entry.type === entryType.symlink;
  if ((posix.fidelity & fidelityBit.xattrs) !== 0 && !sameXattrs(posix.getXattrs(path), entry.xattrs)) {
    // An owner who may not write may not change attributes either.
    if (!isLink && now !== undefined && (now.mode & constants.S_IWUSR) === 0)
      posix.setMode(path, now.mode | constants.S_IWUSR);
    posix.setXattrs(path, entry.xattrs);
  }
  if (!isLink) posix.setMode(path, entry.mode);
  posix.setTime(path, entry.mtimeNs);
}

/**
 * A folder without write permission is opened for its owner while we work in it; its own mode comes back with its metadata.
 * Returns false when the system refused.
 */
function attemptOn(posix: Posix, path: RawPath, act: () => void, refused: Refused): boolean {
  if (refused.missing.has(path)) return false;
  if (refused.missing.has(parentOf(path))) {
    refused.missing.add(path);
    refused.problems.push({ path: display(path), reason: "its folder could not be made" });
    return false;
  }
  try {
    try {
      act();
    } catch (error) {
      if (systemCode(error) !== "EACCES" || !openFolder(posix, parentOf(path))) throw error;
      act();
    }
    return true;
  } catch (error) {
    report(path, error, refused);
    return false;
  }
}

function report(path: RawPath, error: unknown, { problems }: Refused): void {
  const code = systemCode(error) ?? "";
  if (!refusals.has(code)) throw error;
  problems.push({ path: display(path), reason: `was refused by the system (${code})` });
}

function openFolder(posix: Posix, folder: RawPath): boolean {
  try {
    const stat = posix.stat(folder);
    if (stat === undefined || (stat.mode & constants.S_IRWXU) === constants.S_IRWXU) return false;
    posix.setMode(folder, stat.mode | constants.S_IRWXU);
    return true;
  } catch {
    return false;
  }
}

/** Removes our own staging folder, whatever a killed restore left in it. */
export function removeTree(posix: Posix, path: RawPath): void {
  const stat = posix.stat(path);
  if (stat === undefined) return;
  if (stat.type !== entryType.directory) {
    posix.unlink(path);
    return;
  }
  for (const child of posix.readDirectory(path)) removeTree(posix, join(path, child.name));
  posix.removeDirectory(path);
}
