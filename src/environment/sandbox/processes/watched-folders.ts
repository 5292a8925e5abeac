// Where CRIU is to look for what a tree watches: an overlay gives no handle by which a watched inode is found again.
import { readdirSync, readlinkSync } from "node:fs";
import type { ProcessInfo } from "../../processes/proc.ts";

/** Folders inside, of which CRIU looks at everything; undefined where nothing is watched. */
export function watchedFolders(infos: readonly ProcessInfo[], workspace: string): string[] | undefined {
  const watchers = infos.filter(({ pid }) => isWatching(pid));
  if (watchers.length === 0) return undefined;
  return [...new Set([workspace, ...watchers.flatMap(({ pid }) => links([`/proc/${pid}/cwd`]))])].filter(
    // The whole of a machine is no place to look.
    (folder) => folder !== "/",
  );
}

const isWatching = (pid: number): boolean => {
  const folder = `/proc/${pid}/fd`;
  try {
    return links(readdirSync(folder).map((fd) => `${folder}/${fd}`)).some((one) =>
      /^anon_inode:(inotify|\[fanotify\])$/.test(one),
    );
  } catch {
    return false;
  }
};

const links = (paths: readonly string[]): string[] =>
  paths.flatMap((path) => {
    try {
      return [readlinkSync(path)];
    } catch {
      return [];
    }
  });
