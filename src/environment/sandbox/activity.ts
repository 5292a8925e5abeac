// What tells whether anything can have happened in a sandbox, where somebody sees everything that its processes do: src/inspector/ebpf gives it.

import type { Contact } from "../environment.ts";

/**
 * Implementer's contract.
 *
 * - What nobody can have seen MUST make `mark` undefined or `isQuiet` false: a loss, a thread that runs, a call under way, a tree that was there before the watch.
 * - Work that the tasks of `tracers` make a traced process do is nothing that it did.
 */
export interface Activity {
  /**
   * From before the first process is there.
   * @param group folder of the cgroup (v2) of all processes
   * @param tracers folder of the cgroup of whatever looks into them from outside
   */
  watch(group: string, tracers: string): TreeActivity;
  /** Where connections are seen: where all of its trees have made TCP connections to since the last call, also those whose watch was closed meanwhile. */
  takeContacts?(): readonly Contact[];
  close(): void;
}

export interface TreeActivity {
  /** Of this moment. undefined where something may go on of which nothing would be told: then nothing can be compared with it. */
  mark(): ActivityMark | undefined;
  /**
   * To be called before tracers hold the processes; the result gives the mark of the moment in which they do. A thread that merely makes the call again that they broke
   * has done nothing since.
   */
  beforeHold(): () => ActivityMark | undefined;
  /** True only where no process has run code of its own, none has begun, ended or been told something, and no file has been changed by any since. */
  isQuiet(since: ActivityMark): boolean;
  close(): void;
}

/** Means something to whoever gave it. */
export type ActivityMark = readonly (bigint | string)[];
