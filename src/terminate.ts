// What SIGTERM does to a process with open workspaces: what is recorded reaches the disk first, then the process ends as it would have.
import { setTimeout as sleep } from "node:timers/promises";

/** A workspace that asked for it. */
export interface Terminable {
  /** Milliseconds from the signal on. */
  readonly deadlineMs: number;
  /** Everything that was recorded before the call is on disk when it resolves. */
  durable(): Promise<void>;
}

const open = new Set<Terminable>();
let ending = false;

/** @returns ends it */
export function onTerminate(one: Terminable): () => void {
  // Before all others: one that is for a single signal is taken off before it is called, and would not be seen.
  if (open.size === 0) process.prependListener("SIGTERM", terminate);
  open.add(one);
  return () => {
    open.delete(one);
    if (open.size === 0 && !ending) process.removeListener("SIGTERM", terminate);
  };
}

const isOurs = (): boolean => process.listeners("SIGTERM").every((listener) => listener === terminate);

function terminate(): void {
  // Who listens too says when the process ends.
  const alone = isOurs();
  if (ending) {
    if (alone) end();
    return;
  }
  ending = true;
  void Promise.all([...open].map(settle)).then(() => {
    ending = false;
    if (alone && isOurs()) end();
    else if (open.size === 0) process.removeListener("SIGTERM", terminate);
  });
}

async function settle({ deadlineMs, durable }: Terminable): Promise<void> {
  const over = new AbortController();
  const late = sleep(deadlineMs, "late" as const, { signal: over.signal }).catch(() => "done" as const);
  const done = durable().then(
    () => "done" as const,
    (error: unknown) => error as Error,
  );
  const outcome = await Promise.race([done, late]);
  over.abort();
  if (outcome === "done") return;
  const why = outcome === "late" ? `after ${deadlineMs} ms` : `(${outcome.message})`;
  process.emitWarning(`SIGTERM: not everything that was recorded is on disk ${why}.`, {
    code: "AGENTREWIND_NOT_DURABLE",
    detail: "The next open goes on from the last checkpoint that is whole.",
  });
  // Warnings are printed in a turn of their own.
  await sleep(1);
}

/** As the signal itself ends a process that does not listen. */
function end(): void {
  process.removeListener("SIGTERM", terminate);
  process.kill(process.pid, "SIGTERM");
  // Nothing ends the first process of a PID namespace so.
  process.exit(128 + 15);
}
