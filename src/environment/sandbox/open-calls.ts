// Which commands' files are still in use inside of a sandbox.
import { descriptors, targetOf } from "../processes/proc.ts";

/** Ids of the commands whose files a process has open. */
export function openCalls(pids: readonly number[]): string[] {
  return pids.flatMap((pid) =>
    descriptors(pid).flatMap((fd) => /\/calls\/([^/]+)\/[^/]+$/.exec(targetOf(pid, fd) ?? "")?.[1] ?? []),
  );
}
