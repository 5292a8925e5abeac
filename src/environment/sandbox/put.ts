// Puts single paths of a stored state into a running sandbox, with all below them: owners, modes, times, attributes and links as they were.
import { spawn } from "node:child_process";
import { closeSync, constants, lstatSync, mkdirSync, openSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { systemCode } from "../../errors.ts";
import type { Native } from "../../native.ts";
import { isBelow } from "./inside.ts";
import { withMerged } from "./merged-view.ts";
import { overlayOf } from "./mount-plan.ts";
import type { Overlay } from "./view.ts";
import { foldersOf, lowersOf } from "./view.ts";

export interface PutOptions {
  readonly native: Native;
  /** Host folder for mount points of ours. */
  readonly scratch: string;
  readonly overlays: readonly Overlay[];
  /** Host path of the state's files, as a live folder would have them. */
  readonly state: string;
  /** Host path of the running sandbox's root. */
  readonly root: string;
  /** Absolute, inside. */
  readonly paths: readonly string[];
}

/** Where the sandbox has folders of its own: below these the state's own folder is looked at. */
const plain = [
  ["/tmp", "tmp"],
  ["/dev/shm", "shm"],
] as const;

export async function putPaths(options: PutOptions): Promise<void> {
  const { overlays, state } = options;
  for (const path of options.paths) {
    const own = plain.find(([at]) => isBelow(path, at));
    const { overlay, below } = overlayOf(overlays, path);
    if (own !== undefined && overlay.path === "/")
      await putPath(options, path, join(state, own[1]), path.slice(own[0].length + 1));
    else
      await withMerged(
        options.native,
        options.scratch,
        [foldersOf(state, overlay.name).upper, ...lowersOf(overlay)],
        (view) => putPath(options, path, view, below),
      );
  }
}

async function putPath({ native, root }: PutOptions, path: string, view: string, below: string): Promise<void> {
  const from = openFolder(native, view, dirname(`/${below}`));
  try {
    makeParents(native, root, view, dirname(path), dirname(`/${below}`));
    const to = openFolder(native, root, dirname(path));
    try {
      const name = basename(path);
      if (to === undefined) return;
      await run(["rm", "-rf", "--", `/proc/self/fd/4/${name}`], from ?? to, to);
      const there =
        from !== undefined && lstatSync(`/proc/self/fd/${from}/${name}`, { throwIfNoEntry: false }) !== undefined;
      if (there)
        await run(
          ["cp", "-a", "--reflink=auto", "-T", "--", `/proc/self/fd/3/${name}`, `/proc/self/fd/4/${name}`],
          from,
          to,
        );
    } finally {
      if (to !== undefined) closeSync(to);
    }
  } finally {
    if (from !== undefined) closeSync(from);
  }
}

/** Those that the state has and the sandbox lacks; nothing where the state lacks them too. */
function makeParents(native: Native, root: string, view: string, folder: string, below: string): void {
  const there = openFolder(native, root, folder);
  if (there !== undefined) {
    closeSync(there);
    return;
  }
  const model = openFolder(native, view, below);
  if (model === undefined) return;
  closeSync(model);
  makeParents(native, root, view, dirname(folder), dirname(below));
  const parent = openFolder(native, root, dirname(folder));
  if (parent === undefined) return;
  try {
    mkdirSync(`/proc/self/fd/${parent}/${basename(folder)}`, { mode: 0o755 });
  } finally {
    closeSync(parent);
  }
}

/** undefined where there is no such folder. */
function openFolder(native: Native, root: string, path: string): number | undefined {
  const top = openSync(root, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    return native.openInside(top, Buffer.from(path), constants.O_RDONLY | constants.O_DIRECTORY, 0);
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes(systemCode(error) ?? "")) return undefined;
    throw error;
  } finally {
    closeSync(top);
  }
}

function run([program, ...args]: readonly string[], from: number, to: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(program as string, args, { stdio: ["ignore", "ignore", "pipe", from, to] });
    let said = "";
    child.stderr?.on("data", (bytes: Buffer) => {
      said += bytes.toString("utf8").slice(0, 1000);
    });
    child.once("error", reject);
    child.once("close", (code) => {
      if (code === 0) resolve();
      else reject(new Error(said.trim() || `${program} ended with ${code}`));
    });
  });
}
