// The journal of a durable-execution engine: one JSON line an event, on disk before the workflow goes on, read again from the start after a crash.
import { closeSync, fdatasyncSync, ftruncateSync, openSync, readFileSync, statSync, writeSync } from "node:fs";

/** What happened, named by ids: the payloads lie in AgentRewind's store. */
export type JournalEvent =
  | { readonly event: "workflow-started"; readonly thread: string; readonly checkpoint: string }
  | { readonly event: "turn-completed"; readonly turn: number; readonly checkpoint: string }
  | { readonly event: "workflow-completed"; readonly checkpoint: string };

export interface Journal {
  readonly events: readonly JournalEvent[];
  append(event: JournalEvent): void;
  readonly bytes: number;
  close(): void;
}

export function openJournal(file: string): Journal {
  const fd = openSync(file, "a+");
  const text = readFileSync(fd, "utf8");
  const whole = text.slice(0, text.lastIndexOf("\n") + 1);
  // A line that a crash cut short was never promised to anybody.
  if (whole.length < text.length) ftruncateSync(fd, Buffer.byteLength(whole));
  const events = whole
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line) as JournalEvent);
  return {
    events,
    append(event) {
      writeSync(fd, `${JSON.stringify(event)}\n`);
      fdatasyncSync(fd);
      events.push(event);
    },
    get bytes() {
      return statSync(file).size;
    },
    close: () => closeSync(fd),
  };
}
