// The lines of density.jsonl: blocks and tasks, with what each turn waited.
import type { BlockLine, TaskLine } from "./block.ts";
import type { Block } from "./cells.ts";

const tenth = (value: number): number => Math.round(value * 10) / 10;

export function blockLine({ tasks, ...block }: Block) {
  return { type: "block", ...block, tasks: tasks.length };
}

/** Each turn as one letter: "." both halves are those of the turn before, "f" new files, "p" new processes, "b" both are new, "!" it cannot be restored. */
function letter({ filesKept, processesKept, lost }: BlockLine["tasks"][number]["turns"][number]): string {
  if (lost) return "!";
  if (filesKept) return processesKept ? "." : "p";
  return processesKept ? "f" : "b";
}

export function taskLine({ cell, arm, round }: Block, { turns, looked, left, ...task }: TaskLine) {
  return {
    type: "task",
    ...{ cell, arm, round, ...task },
    /** Each reply: "l" it looked, "a" it acted. */
    replies: looked.map((looks) => (looks ? "l" : "a")).join(""),
    halves: turns.map(letter).join(""),
    exposedMs: turns.map((one) => tenth(one.exposedMs)),
    waitedMs: turns.map((one) => tenth(one.waitedMs)),
    bytes: turns.map((one) => one.bytes),
    verified: left?.verdicts.map(({ trace, pass }) => `${trace}: ${pass ? "passed" : "failed"}`) ?? [],
  };
}
