// When a list cannot be told to belong to a conversation: an error, never a wrong context.
import { RewindError } from "../errors.ts";
import type { Entry, Format } from "../wire/index.ts";

/** Whether the caller's list holds something of the model there. */
export const speaks =
  (format: Format) =>
  (entry: Entry): boolean =>
    entry.own === null && (entry.item === undefined || format.speaker(entry.item) === "model");

export function historyUnknown(thread: string, count: number): RewindError {
  return new RewindError(
    "HISTORY_UNKNOWN",
    `None of the ${count} messages of this request belongs to the conversation of thread "${thread}".`,
    {
      hint: "Give another conversation a thread of its own, or keep at least its newest messages when you shorten this one.",
      details: { thread },
    },
  );
}
