// What tells whether anything can have happened in a sandbox, where somebody sees everything that its processes do: src/inspector/ebpf gives it.

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
  close(): void;
}

export interface Contact {
  /** IPv4 or IPv6, in its shortest form. */
  readonly address: string;
  readonly port: number;
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
  /** TCP connections to elsewhere that were made since the last call, each place once. */
  takeContacts(): readonly Contact[];
  close(): void;
}

/** Means something to whoever gave it. */
export type ActivityMark = readonly bigint[];
