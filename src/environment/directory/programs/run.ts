// A run: a command that `exec` was given, with everything that it has left running.
import type { ProcessDescription } from "../../processes/description.ts";
import type { KnownProcess } from "./seeing.ts";

/** As it was first seen; a program that is started again keeps it, so that it is the same state as before. */
export interface RecordedProgram extends ProcessDescription {
  readonly pid: number;
  readonly start: string;
  readonly ports: readonly number[];
  /** Its program is that of a process which had forked it, and in memory only. */
  readonly forked: boolean;
}

/** A process of a run that none of its other processes has started. */
export interface Program extends KnownProcess {
  readonly about: RecordedProgram;
  /** Path of the program file when it was described: another one means that it has become another program. null: it was started again, and stays described as it was. */
  readonly file: string | null;
}

export interface Run {
  readonly id: string;
  /** Where its numbers mean something (`Seeing.machine`). */
  readonly machine: string;
  /** Process groups that were made for it. */
  readonly groups: readonly number[];
  /** All that were seen last. */
  readonly known: readonly KnownProcess[];
  readonly programs: readonly Program[];
  /** Who waits for the command, as long as somebody does. */
  readonly waiter: KnownProcess | null;
}

export const keyOf = ({ pid, start }: KnownProcess): string => `${pid} ${start}`;
