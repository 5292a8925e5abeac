// Which directories may be a workspace, and where its store may lie.
import { existsSync, realpathSync, statSync } from "node:fs";
import { homedir, userInfo } from "node:os";
import { dirname, join, resolve, sep } from "node:path";
import { RewindError } from "./errors.ts";

const isInside = (path: string, folder: string): boolean =>
  path === folder || path.startsWith(folder === sep ? sep : folder + sep);

/** The real path of `path`, or of its nearest existing ancestor with the rest behind it. */
function realPath(path: string): string {
  const absolute = resolve(path);
  if (existsSync(absolute)) return realpathSync(absolute);
  const parent = dirname(absolute);
  return parent === absolute ? absolute : join(realPath(parent), absolute.slice(parent.length).replace(/^\//, ""));
}

/** What HOME says and what the system knows: either may be missing, or wrong. */
function homes(): string[] {
  const known = [homedir()];
  try {
    known.push(userInfo().homedir);
  } catch {
    // A user without an entry has no home but HOME.
  }
  return known.filter((path) => path !== "").map(realPath);
}

/**
 * The workspace's real path.
 * @throws WORKSPACE_GONE, WORKSPACE_TOO_BROAD, STORE_INSIDE_WORKSPACE
 */
export function resolveWorkspace(workspace: string, store: string, allowBroad: boolean, mayBeGone = false): string {
  const path = realPath(workspace);
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat === undefined ? !mayBeGone : !stat.isDirectory()) {
    throw new RewindError("WORKSPACE_GONE", `The workspace ${path} is not a directory.`, {
      hint: "Create it, or name another directory.",
    });
  }
  const storePath = realPath(store);
  if (isInside(storePath, path)) {
    throw new RewindError("STORE_INSIDE_WORKSPACE", `The store ${storePath} lies inside the workspace ${path}.`, {
      hint: "An agent deletes things in its workspace: keep the store elsewhere (the default is in your home's state folder).",
    });
  }
  if (isInside(path, storePath)) {
    throw new RewindError("STORE_INSIDE_WORKSPACE", `The workspace ${path} lies inside the store ${storePath}.`, {
      hint: "Choose a workspace outside of the store.",
    });
  }
  const home = homes().find((one) => isInside(one, path));
  if (!allowBroad && home !== undefined) {
    const what =
      path === sep ? "the whole file system" : path === home ? "your home folder" : "a folder that holds your home";
    throw new RewindError("WORKSPACE_TOO_BROAD", `${path} is ${what}; every rewind would take back everything in it.`, {
      hint: "Choose the project's folder, or pass allowBroadWorkspace: true (--allow-broad) if you mean it.",
    });
  }
  return path;
}

/** @throws BRANCH_INSIDE_WORKSPACE */
export function requireApart(folder: string, workspace: string): void {
  const inside = isInside(folder, workspace);
  if (!inside && !isInside(workspace, folder)) return;
  throw new RewindError(
    "BRANCH_INSIDE_WORKSPACE",
    inside ? `${folder} lies inside the workspace ${workspace}.` : `The workspace ${workspace} lies inside ${folder}.`,
    { hint: "Name a folder outside of it, or leave it to us: the default is beside the store." },
  );
}

/** @param file the file's path, which need not be there. @throws BAD_ARGUMENT */
export function requireOutside(file: string, workspace: string): void {
  const path = realPath(file);
  if (!isInside(path, workspace)) return;
  throw new RewindError("BAD_ARGUMENT", `${path} lies inside the workspace ${workspace}, which would record it.`, {
    hint: "Name a file elsewhere.",
  });
}
