// A moment of a conversation, and whether the conversation in force still holds what was learned then.
import type { Catalog } from "../store/catalog.ts";
import type { ThreadRow } from "../store/rows.ts";

/** Opaque: what `Thread.moment` gives and `Thread.holds` takes. */
export interface Moment {
  readonly head: number | null;
  readonly epoch: number;
}

/**
 * What was learned behind a head is part of every context from the next checkpoint on. So a moment is held while the conversation has not moved since, and
 * after a move as long as that next checkpoint, found on the line that the move left, lies on the line in force. Where the move left the very head (nothing
 * of what came behind it was recorded) the moment is lost, also for an undo.
 */
export function holdsMoment(catalog: Catalog, thread: ThreadRow | undefined, moment: Moment): boolean {
  if (catalog.epoch() === moment.epoch) return true;
  if (thread === undefined) return moment.head === null;
  const move = catalog.rewinds(thread.id).find((row) => row.epoch > moment.epoch && row.scope !== "environment");
  if (move === undefined) return true;
  const next = nextTowards(catalog, moment.head, move.left_at);
  return next !== null && (next === thread.head || catalog.isAncestor(next, thread.head));
}

/** The checkpoint right behind `from` on the line to `to`; null when there is none. */
function nextTowards(catalog: Catalog, from: number | null, to: number | null): number | null {
  for (let id = to; id !== null && id !== from; ) {
    const parent: number | null = catalog.checkpoint(id)?.parent ?? null;
    if (parent === from) return id;
    id = parent;
  }
  return null;
}
