// What the relay refuses: lists that cannot be told to belong to a conversation, and rewinds that would leave a wrong one.
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

/** A conversation begins while the tools of another one run: an agent that is one of them. */
export function stillOpen(thread: string): RewindError {
  return new RewindError(
    "HISTORY_UNKNOWN",
    `The conversation of thread "${thread}" waits for the results of its last calls, and no message of this request belongs to it.`,
    {
      hint: "Give an agent that runs inside of a tool the model as it is without rewinding, or a thread of its own. After a run that was given up go on with its messages, or use a new thread.",
      details: { thread },
    },
  );
}

export const crossesPerson = (count: number): RewindError =>
  new RewindError(
    "BAD_ARGUMENT",
    `That checkpoint lies before ${count === 1 ? "a message" : `${count} messages`} that the person sent.`,
    { hint: "Choose a checkpoint after the person's last message." },
  );

export const crossesHandoff = (): RewindError =>
  new RewindError("BAD_ARGUMENT", "That checkpoint lies before a handoff: the conversation was another agent's.", {
    hint: "Choose a checkpoint after the handoff.",
  });
