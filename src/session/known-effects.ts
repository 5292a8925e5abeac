// Of which effects does a conversation tell? Those that it does not tell of are done in the world all the same (F-44).
import { type EffectRow, type KnownEffects, knows } from "../store/effects.ts";
import type { CheckpointRow, ThreadRow } from "../store/rows.ts";
import type { SessionDeps } from "./deps.ts";

export type IsKnown = (row: EffectRow) => boolean;

/** To the conversation of a checkpoint. */
export function knownAt({ effects }: Pick<CheckpointRow, "effects">): IsKnown {
  const known = JSON.parse(effects) as KnownEffects;
  return (row) => knows(known, row);
}

/** To the conversation at a thread's head as it goes on: also what was done since. */
export function knownNow({ catalog }: Pick<SessionDeps, "catalog">, thread: ThreadRow): IsKnown {
  const head = thread.head === null ? undefined : catalog.checkpoint(thread.head);
  const atHead = head === undefined ? () => false : knownAt(head);
  const from = catalog.effectsFrom(thread.id);
  return (row) => (row.thread === thread.id && row.id > from) || atHead(row);
}
