// Shares the contents of files with another directory that has the same ones, without copying, where the file system can (FICLONE).
import { closeSync } from "node:fs";
import { shareContent } from "../../store/io.ts";
import type { RawPath } from "./names.ts";
import { openPosix } from "./open-posix.ts";

export interface ContentSource {
  /** Gives the empty file `fd` the content that the file at `path` has there. False when that cannot be done: then it has to be written. */
  share(path: RawPath, fd: number): boolean;
  close(): void;
}

/** @param root nothing may write there as long as it is used */
export function openSource(root: string): ContentSource {
  const posix = openPosix(root);
  let works = process.platform === "linux";
  return {
    share(path, fd) {
      if (!works) return false;
      const from = posix.openRead(path);
      try {
        shareContent(from, fd);
        return true;
      } catch {
        // One refusal speaks for the whole file system; what is really wrong shows when the content is written.
        works = false;
        return false;
      } finally {
        closeSync(from);
      }
    },
    close: () => posix.close(),
  };
}
