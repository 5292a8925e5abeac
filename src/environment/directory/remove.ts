// Removes a whole directory of ours: deeper than PATH_MAX too, and with folders that nobody may write to.
import { constants } from "node:fs";
import { type Breathe, makeBreather } from "../../breathe.ts";
import { systemCode } from "../../errors.ts";
import { removeFolder as removeEmpty } from "../../store/io.ts";
import { entryType } from "./entry.ts";
import { join, type RawPath } from "./names.ts";
import { openPosix } from "./open-posix.ts";
import type { Posix } from "./posix.ts";

/** Nothing where it is gone already. @throws system errors; what is left can be removed by another call */
export async function removeFolder(folder: string): Promise<void> {
  const breathe = makeBreather();
  let posix: Posix;
  try {
    posix = openPosix(folder);
  } catch (error) {
    if (systemCode(error) === "ENOENT" || systemCode(error) === "ENOTDIR") return;
    throw error;
  }
  try {
    await removeBelow(posix, "", breathe);
  } finally {
    posix.close();
  }
  removeEmpty(folder);
}

/** Everything in a folder; the folder itself stays. */
export async function removeBelow(posix: Posix, folder: RawPath, breathe: Breathe): Promise<void> {
  // Folders still to be emptied; each is visited again, empty, behind those below it.
  const stack: { readonly path: RawPath; readonly emptied: boolean }[] = [{ path: folder, emptied: false }];
  for (let top = stack.pop(); top !== undefined; top = stack.pop()) {
    if (top.emptied) {
      posix.removeDirectory(top.path);
      continue;
    }
    if (top.path !== folder) stack.push({ path: top.path, emptied: true });
    openUp(posix, top.path);
    for (const child of posix.readDirectory(top.path)) {
      const path = join(top.path, child.name);
      if (child.type === entryType.directory) stack.push({ path, emptied: false });
      else posix.unlink(path);
      await breathe();
    }
  }
}

function openUp(posix: Posix, folder: RawPath): void {
  const mode = posix.stat(folder)?.mode ?? constants.S_IRWXU;
  if ((mode & constants.S_IRWXU) !== constants.S_IRWXU) posix.setMode(folder, mode | constants.S_IRWXU);
}
