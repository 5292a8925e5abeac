// What is seen of the processes of this machine.
import type { ProcessDescription } from "../../processes/description.ts";

/** A process's number may be another's later: only with the time of its start it names one. */
export interface KnownProcess {
  readonly pid: number;
  /** In a form of the machine's own. */
  readonly start: string;
}

export interface SeenProcess extends KnownProcess {
  readonly parent: number;
  readonly group: number;
  /** It was forked and has not become another program since; false where that cannot be seen. */
  readonly forked: boolean;
  /** Value of its mark variable (mark.ts); empty where it has none or may not be read. */
  readonly marks: string;
}

export interface Seeing {
  /** Names this run of the machine and what of its processes can be seen: a number and a start mean nothing elsewhere. */
  readonly machine: string;
  /**
   * Those that run. `whole`: none ended while they were looked at, so what it had started is among them.
   * @param since one of the earliest numbers that count, and how long ago it was given out, in milliseconds
   */
  list(since?: { readonly pid: number; readonly ms: number }): Promise<{ seen: SeenProcess[]; whole: boolean }>;
  /** undefined when it has gone. */
  startOf(pid: number): string | undefined;
  /** What cannot be known is empty. */
  describe(pid: number): ProcessDescription;
  /** Path of its program; empty where it cannot be known. */
  fileOf(pid: number): string;
  /** TCP ports on which these listen. */
  portsOf(pids: readonly number[]): number[];
  /** Absolute paths of files that these have open for writing. */
  writtenBy(pids: readonly number[]): string[];
}
