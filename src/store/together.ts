// What several ask for at once is done once for all of them: it begins after each of their calls.
import { setImmediate as nextTurn } from "node:timers/promises";

const due = new Map<string, Promise<void>>();
const last = new Map<string, Promise<void>>();

/** @param key of what `work` does, whoever gives it; one runs at a time */
export function together(key: string, work: () => Promise<void>): Promise<void> {
  const waiting = due.get(key);
  if (waiting !== undefined) return waiting;
  const before = last.get(key) ?? Promise.resolve();
  // Those whose turn comes in the same round of the event loop are in time.
  const next = before
    .catch(() => {})
    .then(() => nextTurn())
    .then(() => {
      due.delete(key);
      return work();
    })
    .finally(() => {
      if (last.get(key) === next) last.delete(key);
    });
  due.set(key, next);
  last.set(key, next);
  return next;
}
