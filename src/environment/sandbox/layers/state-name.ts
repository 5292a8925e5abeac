// What the name of a state tells (F-61): which live folder it was captured from, which state that one came from, and its place in the order of captures.
import { randomBytes } from "node:crypto";

export interface StateName {
  readonly text: string;
  readonly live: number;
  /** Grows with each capture of the sandbox. */
  readonly order: number;
  /** The `order` of the state from which its live folder was made; 0 when from nothing. */
  readonly origin: number;
}

const form = /^(\d+)-(\d+)-(\d+)-[0-9a-f]{12}$/;

export function parseState(text: string): StateName | undefined {
  const found = form.exec(text);
  if (found === null) return undefined;
  return { text, live: Number(found[1]), order: Number(found[2]), origin: Number(found[3]) };
}

/** The random part keeps it apart from the states of a fork. */
export function makeState(live: number, order: number, origin: number): StateName {
  return { text: `${live}-${order}-${origin}-${randomBytes(6).toString("hex")}`, live, order, origin };
}

export interface LiveName {
  readonly text: string;
  readonly number: number;
  /** The state that it began as; undefined when it began empty. */
  readonly from: string | undefined;
}

const liveForm = /^live-(\d+)(?:-from-(.+))?$/;

export function parseLive(text: string): LiveName | undefined {
  const found = liveForm.exec(text);
  return found === null ? undefined : { text, number: Number(found[1]), from: found[2] };
}

export function makeLive(number: number, from: string | undefined): LiveName {
  return { text: `live-${number}${from === undefined ? "" : `-from-${from}`}`, number, from };
}

/** The newest state from which both were made, as far as those that are still there tell; one of the two where it is the other's. */
export function commonState(states: Iterable<StateName>, a: StateName, b: StateName): StateName | undefined {
  const byOrder = new Map<number, StateName>();
  for (const state of states) byOrder.set(state.order, state);
  let [one, other] = [a, b];
  for (;;) {
    if (one.live === other.live) return one.order < other.order ? one : other;
    // Live folders are numbered in the order in which they were made.
    const newer = one.live > other.live ? one : other;
    const origin = byOrder.get(newer.origin);
    if (origin === undefined || origin.live >= newer.live) return undefined;
    if (newer === one) one = origin;
    else other = origin;
  }
}
