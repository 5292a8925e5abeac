// Progress on stderr for what takes longer than a second: one line that is renewed on a terminal, else a line every few seconds.
import type { Progress } from "../progress.ts";
import { progressChannel } from "../progress.ts";

interface Stream {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

/** Milliseconds without a word; the variable is for tests and for who wants it otherwise. */
const patienceMs = Number(process.env.AGENTREWIND_PROGRESS_AFTER ?? 1_000);
const terminalMs = 200;
const lineMs = 5_000;
const clearLine = "\r\x1b[K";

/** Call the result when the command has ended. */
export function showProgress(stream: Stream): () => void {
  let latest: Progress | undefined;
  let since = 0;
  let shownAt: number | undefined;

  function show(): void {
    if (latest === undefined) return;
    const now = Date.now();
    if (now - since < patienceMs || (shownAt !== undefined && !stream.isTTY && now - shownAt < lineMs)) return;
    shownAt = now;
    const text = `${describe(latest)} (${Math.round((now - since) / 1000)} s)`;
    stream.write(stream.isTTY ? `${clearLine}${text}` : `${text}\n`);
  }

  const listen = (message: unknown): void => {
    const progress = message as Progress;
    if (latest?.operation !== progress.operation) since = Date.now();
    latest = progress;
    show();
  };
  progressChannel.subscribe(listen);
  const timer = setInterval(show, terminalMs);
  timer.unref();
  return () => {
    clearInterval(timer);
    progressChannel.unsubscribe(listen);
    if (shownAt !== undefined && stream.isTTY) stream.write(clearLine);
  };
}

const describe = ({ operation, phase, done, total }: Progress): string =>
  `${operation}: ${phase}${done === null || total === null ? "" : `, ${done} of ${total}`}`;
