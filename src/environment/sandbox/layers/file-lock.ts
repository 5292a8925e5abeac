// Locks on files that the kernel drops with their holder, shared or exclusive.
import { closeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { lockKind, type Native } from "../../../native.ts";
import { openForWriting } from "../../../store/io.ts";

export interface FileLock {
  /** Without waiting. False while others hold it: then this one is lost, since the kernel drops the old lock first. */
  tryExclusive(): boolean;
  /** Of an exclusive lock: lets others in. */
  share(): void;
  release(): void;
}

/** Undefined when it could not be had within `patienceMs`. */
export async function lockFile(
  native: Native,
  path: string,
  kind: "shared" | "exclusive",
  patienceMs: number,
): Promise<FileLock | undefined> {
  const fd = openForWriting(path, "w");
  const deadline = Date.now() + patienceMs;
  try {
    while (!native.lockFile(fd, lockKind[kind])) {
      if (Date.now() > deadline) {
        closeSync(fd);
        return undefined;
      }
      await sleep(2 + Math.random() * 8);
    }
  } catch (error) {
    closeSync(fd);
    throw error;
  }
  return {
    tryExclusive: () => native.lockFile(fd, lockKind.exclusive),
    share: () => void native.lockFile(fd, lockKind.shared),
    release: () => closeSync(fd),
  };
}
