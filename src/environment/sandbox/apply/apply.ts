// Brings what a sandbox made back to the host: three-way, with what both changed named and left alone.
import { mkdirSync } from "node:fs";
import { join as joinPath } from "node:path";
import { type Breathe, makeBreather } from "../../../breathe.ts";
import { fault } from "../../../faults.ts";
import { entryType } from "../../directory/entry.ts";
import { join, type RawPath } from "../../directory/names.ts";
import { openPosix } from "../../directory/open-posix.ts";
import type { Posix } from "../../directory/posix.ts";
import { removeBelow } from "../../directory/remove.ts";
import { foldersOf, type Overlay } from "../view.ts";
import { copyAttributes, copyEntry } from "./copy-entry.ts";
import { Keeper } from "./keep.ts";
import { planSteps, type Step } from "./plan.ts";

export interface ApplyRequest {
  readonly overlay: Overlay;
  /** The folder, below the overlay's root. */
  readonly below: RawPath;
  /** Host path of the state's files, as a live folder would have them. */
  readonly state: string;
  /** Below the overlay's root: what somebody changed on the host since the sandbox began. */
  readonly changedOnHost: ReadonlySet<RawPath>;
  /** Which paths are wanted, with what is below them. */
  readonly isWanted: (path: RawPath) => boolean;
  readonly overwrite: boolean;
  readonly dryRun: boolean;
}

export interface AppliedSteps {
  readonly done: readonly Step[];
  readonly conflicts: readonly Step[];
  readonly sockets: readonly RawPath[];
}

/** Where files are written before they have their place. Killed, it is left, and the next call removes it. */
const stage = ".agentrewind-apply";

export async function applyFolder(request: ApplyRequest): Promise<AppliedSteps> {
  const { overlay, below, state, dryRun } = request;
  const breathe = makeBreather();
  const upper = openPosix(foldersOf(state, overlay.name).upper);
  const host = openPosix(overlay.lower);
  try {
    const staged = join(below, stage);
    const own = (path: RawPath): boolean => path === staged;
    const sockets: RawPath[] = [];
    const onSocket = (path: RawPath): void => void (request.isWanted(path) && sockets.push(path));
    const all = await planSteps({ upper, host, breathe, own, onSocket }, below);
    const { done, conflicts } = sort(all, request, host);
    if (!dryRun && done.length > 0) {
      // What lies there while results are brought back, or was left by a kill, is no part of the sandbox either.
      const ours: Step = { path: staged, kind: "put", change: "added" };
      await keepOld(overlay, host, [...done, ours], breathe);
      fault("apply.kept");
      if (host.stat(staged) !== undefined) await removeFolder(host, staged, breathe);
      host.makeDirectory(staged);
      const placing = { upper, host, unfinished: join(staged, "new"), links: new Map<bigint, RawPath>(), breathe };
      for (const step of done) {
        await perform(step, placing);
        fault("apply.placed");
      }
      await removeFolder(host, staged, breathe);
      host.native?.syncFileSystem(host.root);
    }
    return { done, conflicts, sockets };
  } finally {
    upper.close();
    host.close();
  }
}

async function removeFolder(host: Posix, path: RawPath, breathe: Breathe): Promise<void> {
  await removeBelow(host, path, breathe);
  host.removeDirectory(path);
}

/** Below a conflict that leaves no folder there, nothing can be done: only the conflict itself is named. */
function sort(steps: readonly Step[], request: ApplyRequest, host: Posix): { done: Step[]; conflicts: Step[] } {
  const { changedOnHost, isWanted, overwrite } = request;
  const [done, conflicts]: [Step[], Step[]] = [[], []];
  const blocked: RawPath[] = [];
  for (const step of steps) {
    const { path, kind } = step;
    if (!isWanted(path) || blocked.some((one) => path.startsWith(`${one}/`))) continue;
    if (overwrite || !isChanged(changedOnHost, path, kind)) done.push(step);
    else {
      conflicts.push(step);
      if (host.stat(path)?.type !== entryType.directory) blocked.push(path);
    }
  }
  return { done, conflicts };
}

/** What takes a folder's place, or removes it, is also about what is in the folder. */
function isChanged(changed: ReadonlySet<RawPath>, path: RawPath, kind: Step["kind"]): boolean {
  if (changed.has(path)) return true;
  if (kind === "folder") return false;
  for (const one of changed) if (one.startsWith(`${path}/`)) return true;
  return false;
}

async function keepOld(overlay: Overlay, host: Posix, steps: readonly Step[], breathe: Breathe): Promise<void> {
  mkdirSync(overlay.kept, { recursive: true, mode: 0o700 });
  const kept = openPosix(joinPath(overlay.kept, ".."));
  try {
    const keeper = new Keeper(host, kept, overlay.name);
    for (const step of steps) {
      keeper.keep(step);
      const pause = breathe();
      if (pause !== undefined) await pause;
    }
    keeper.finish();
  } finally {
    kept.close();
  }
}

interface Placing {
  readonly upper: Posix;
  readonly host: Posix;
  readonly unfinished: RawPath;
  /** Where the first name of an inode with several was placed. */
  readonly links: Map<bigint, RawPath>;
  readonly breathe: Breathe;
}

async function perform({ path, kind }: Step, placing: Placing): Promise<void> {
  const { upper, host, unfinished, breathe } = placing;
  const now = host.stat(path);
  const isFolder = now?.type === entryType.directory;
  if (kind === "put") makeUnfinished(path, placing);
  if (isFolder && kind !== "folder") await removeFolder(host, path, breathe);
  if (kind === "put") host.rename(unfinished, path);
  else if (now !== undefined && !isFolder) host.unlink(path);
  if (kind !== "folder") return;
  if (!isFolder) host.makeDirectory(path);
  const stat = upper.stat(path);
  if (stat !== undefined) copyAttributes(upper, path, host, path, stat);
}

function makeUnfinished(path: RawPath, { upper, host, unfinished, links }: Placing): void {
  const stat = upper.stat(path);
  const first = stat === undefined || stat.nlink < 2 ? undefined : links.get(stat.ino);
  if (first === undefined) copyEntry(upper, path, host, unfinished);
  else host.makeLink(first, unfinished);
  if (first === undefined && stat !== undefined && stat.nlink > 1) links.set(stat.ino, path);
}
