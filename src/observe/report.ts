// What was observed, as one object: how turns changed the environment, what a capture would have cost, what caused it, and which policy fits.
import { type Cause, type ClassStats, type Spread, spread, type TurnClass, tally } from "../session/turn-stats.ts";
import { type Fit, fitOf, type PolicyOutcome, replayPolicies, type WriteMs } from "./policies.ts";
import type { TurnFacts } from "./turns.ts";

export interface ObserveReport {
  /** "turns": the model decisions of agents that use AgentRewind. "pauses": stretches of activity of a program that does not, between pauses. */
  readonly source: "turns" | "pauses";
  /** Milliseconds of a pause that ends a stretch; null where turns are model decisions. */
  readonly pauseMs: number | null;
  /** Real paths. */
  readonly workspaces: readonly string[];
  readonly turns: number;
  /** Of these: with nothing before them to compare with. */
  readonly uncompared: number;
  /** Bytes that first captures would have stored: all that was there. */
  readonly firstBytes: number;
  readonly classes: Readonly<Record<TurnClass, ClassStats>>;
  /** Of the turns that were compared: bytes that a capture would have stored. Null where there are none. */
  readonly bytes: Spread | null;
  /** Of the same: milliseconds in which the agent would have waited, the estimate of the writing included. */
  readonly waitedMs: Spread | null;
  /** How long writing would have taken is estimated with this many bytes a second, measured in the temporary folder; null where nothing was observed. */
  readonly writeRate: number | null;
  /** Those that changed most often come first. */
  readonly causes: readonly Cause[];
  /** What each policy would have come to. */
  readonly policies: readonly PolicyOutcome[];
  /** The one that fits; null where there are no turns. */
  readonly fits: Fit | null;
  /** What could not be told, and why. */
  readonly notes: readonly string[];
}

/** What was observed, before it is counted. */
export interface Observed {
  readonly source: ObserveReport["source"];
  readonly pauseMs: number | null;
  readonly workspaces: readonly string[];
  readonly turns: readonly TurnFacts[];
  /** Bytes of what was there before the first of them, where that was looked at apart. */
  readonly baseBytes: number;
  /** Bytes a second. */
  readonly writeRate: number | null;
  readonly notes: readonly string[];
}

export function observeReport({ turns, baseBytes, writeRate, ...about }: Observed): ObserveReport {
  const writeMs: WriteMs = writeRate === null ? () => 0 : (bytes) => (bytes / writeRate) * 1000;
  const compared = turns.flatMap((one) => (one.changed === null ? [] : [{ ...one, changed: one.changed }]));
  const counted = compared.map(({ calls, bytes, exposedMs, ...one }) => ({
    ...one,
    bytes,
    exposedMs: exposedMs + writeMs(bytes),
    calls: calls.map(({ name }) => name),
  }));
  const policies = replayPolicies(turns, writeMs);
  return {
    ...about,
    turns: turns.length,
    uncompared: turns.length - compared.length,
    firstBytes: turns.reduce((sum, { changed, bytes }) => sum + (changed === null ? bytes : 0), baseBytes),
    ...tally(counted),
    bytes: spread(counted.map(({ bytes }) => bytes)),
    waitedMs: spread(counted.map(({ exposedMs }) => exposedMs)),
    writeRate: writeRate === null ? null : Math.round(writeRate),
    policies,
    fits: fitOf(turns, policies) ?? null,
  };
}
