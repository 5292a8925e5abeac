// Catalog rows of effects as the public Effect, and as lines that a model or a person reads.
import type { EffectRow } from "../store/effects.ts";
import type { SessionDeps } from "./deps.ts";
import { returnedIn } from "./effect-results.ts";
import type { Effect, EffectState } from "./effect-types.ts";
import { maskSecrets, shorten } from "./mask.ts";

export const descriptionLimit = 200;
const resultLimit = 300;
const noteLimit = 400;

export const oneLine = (text: string, limit: number): string => shorten(maskSecrets(text).replace(/\s+/g, " "), limit);

export function toEffect({ catalog, running }: Pick<SessionDeps, "catalog" | "running">, row: EffectRow): Effect {
  return {
    id: row.id,
    thread: catalog.threadName(row.thread),
    tool: row.tool,
    class: row.class as Effect["class"],
    description: row.description,
    checkpoint: row.seq === null ? null : `c${row.seq}`,
    epoch: row.epoch,
    state: stateOf(row, running),
    result: row.shown,
    note: row.note === null ? null : oneLine(row.note, noteLimit),
    createdAt: row.created_at,
  };
}

/** Those that say something about the world: what was not called is of no interest, and what was given again is told by the original. */
export const isTold = (row: EffectRow): boolean => row.state !== "withdrawn" && row.state !== "replayed";

function stateOf({ id, state }: EffectRow, running: ReadonlySet<number>): EffectState {
  if (running.has(id)) return "running";
  if (state === "completed" || state === "failed" || state === "compensated") return state;
  return state === "uncompensated" || state === "compensating" ? "uncompensated" : "unknown";
}

/** A result that is a text, or has one in `content`, is shown as that. */
export function resultText(json: string): string {
  const value = returnedIn(JSON.parse(json));
  const content = typeof value === "object" && value !== null ? (value as { content?: unknown }).content : value;
  return oneLine(typeof content === "string" ? content : JSON.stringify(value), resultLimit);
}

const where = ({ checkpoint }: Effect): string => (checkpoint === null ? "" : ` at ${checkpoint}`);
const because = ({ note }: Effect): string => (note === null ? "" : ` (${note})`);

/** One line of what is done in the world and stays so. */
export function describeEffect(effect: Effect): string {
  const { description, state, result } = effect;
  const done = `${description}${where(effect)}`;
  if (state === "unknown" || state === "running")
    return `${done}: begun, and not known whether it was done; look before you do it again`;
  if (state === "failed") return `${done}: it failed${because(effect)}, and it is not known whether it was done`;
  if (state === "uncompensated")
    return `${done}: still in force, what should have made up for it failed${because(effect)}`;
  return result === null ? done : `${done} -> "${result}"`;
}

/** The same for people: how each of them ended. */
export function describeEffectState(effect: Effect): string {
  const { description, state, result } = effect;
  const at = where(effect);
  if (state === "unknown") return `${description}${at}: begun, no result recorded`;
  if (state === "running") return `${description}${at}: runs`;
  const shown = result === null ? "" : ` -> "${result}"`;
  return `${description}${at}: ${state}${because(effect)}${shown}`;
}
