// `apply` of a sandbox: which folders of the host it is about, and what is told of it.
import { createHash } from "node:crypto";
import { RewindError } from "../../../errors.ts";
import { display, type RawPath } from "../../directory/names.ts";
import type { Applied, ApplyOptions, Problem } from "../../environment.ts";
import type { HostFiles } from "../host-files.ts";
import { covers, inFolder, outermost, raw } from "../inside.ts";
import { overlayOf } from "../mount-plan.ts";
import type { SandboxPaths } from "../sandbox-paths.ts";
import type { Overlay } from "../view.ts";
import { applyFolder } from "./apply.ts";
import type { Step } from "./plan.ts";

export interface ApplyFolders {
  readonly overlays: readonly Overlay[];
  /** Absolute: those that may be brought back. */
  readonly folders: readonly string[];
  /** Host path of the state's files. */
  readonly state: string;
  readonly host: HostFiles;
  readonly paths: SandboxPaths;
  readonly options: ApplyOptions;
}

/** @throws PATH_OUTSIDE */
export async function applyFolders({ overlays, folders, state, host, paths, options }: ApplyFolders): Promise<Applied> {
  const { overwrite = false, dryRun = false } = options;
  const wanted = (options.paths ?? folders).map((path) => paths.absolute(path));
  const outside = wanted.find((path) => !covers(folders, path));
  if (outside !== undefined) {
    throw new RewindError("PATH_OUTSIDE", `${display(raw(outside))} is not one of the folders that are brought back.`, {
      hint: `Give paths below ${folders.join(", ")}; name more folders with \`sandbox: { mounts }\`.`,
    });
  }
  const told: Record<Step["change"] | "conflicts", string[]> = { added: [], changed: [], removed: [], conflicts: [] };
  const notApplied: Problem[] = [];
  for (const folder of outermost(folders)) {
    const { overlay, below } = overlayOf(overlays, folder);
    const inside = (path: RawPath): RawPath => inFolder(raw(overlay.path), path);
    const { done, conflicts, sockets } = await applyFolder({
      overlay,
      below: raw(below),
      state,
      changedOnHost: await host.changedSinceBegin(folder),
      isWanted: (path) =>
        covers(wanted.map(raw), inside(path)) || wanted.some((one) => covers([inside(path)], raw(one))),
      overwrite,
      dryRun,
    });
    for (const { path, change } of done) told[change].push(display(paths.shown(inside(path))));
    for (const { path } of conflicts) told.conflicts.push(display(paths.shown(inside(path))));
    for (const path of sockets) notApplied.push({ path: display(paths.shown(inside(path))), reason: "a socket" });
    const roots = done.map(({ path }) => path);
    if (!dryRun && done.length > 0) await host.takeOver(folder, (path) => covers(roots, path));
  }
  return { ...told, notApplied };
}

/** "" for nothing. */
export function setName(lists: readonly (readonly string[])[]): string {
  if (lists.every((list) => list.length === 0)) return "";
  return createHash("sha256").update(JSON.stringify(lists)).digest("hex");
}

export const unappliedMessage = (workspace: string): string =>
  `What was made in the sandbox of ${workspace} is not all on the host. It is kept; \`agentrewind apply --dry-run\` there says what it is, \`agentrewind apply\` brings it back.`;
