// What each policy would have come to on turns that are known: which of them it captures, what that costs, and how much work can be lost.
import type { PolicyClass } from "../coordinator/policy/actions.ts";
import { byClass } from "../coordinator/policy/by-class.ts";
import { effects, every, explicit } from "../coordinator/policy/by-name.ts";
import type { Wants } from "../coordinator/policy/policy.ts";
import { longestGap } from "../session/capture-stats.ts";
import { type FactCall, isOwed, type TurnFacts } from "./turns.ts";

export interface PolicyOutcome {
  /** As the option `capture` is written. */
  readonly capture: string;
  /** Turns with a state of the environment of their own. */
  readonly captured: number;
  /** Turns with that of the one before, since nothing had changed. */
  readonly unchanged: number;
  /** Turns that could not be returned to. */
  readonly notCaptured: number;
  /** Stored, at most, beside all that was there at the first capture: what several turns wrote to one file counts once for each. */
  readonly bytes: number;
  /** Milliseconds in which the agent waits, in all. */
  readonly waitedMs: number;
  /** The most turns of work between two that can be returned to, the beginning and the present included. */
  readonly worstLoss: number;
}

export interface Fit {
  readonly capture: string;
  /** One sentence. */
  readonly why: string;
}

interface Candidate {
  readonly capture: string;
  readonly wants: Wants;
}

const classes = (side: "before" | "after", ...asked: readonly PolicyClass[]): Candidate => ({
  capture: `{ ${side}: [${asked.map((one) => `"${one}"`).join(", ")}] }`,
  wants: byClass({ [side]: asked }),
});

const candidates: readonly Candidate[] = [
  { capture: '"every"', wants: every },
  { capture: '"effects"', wants: effects },
  classes("before", "delete", "overwrite", "git", "database"),
  classes("before", "delete", "git", "database"),
  classes("after", "write", "overwrite", "packages"),
  { capture: '"explicit"', wants: explicit },
];

/** What storing these bytes adds to the wait, in milliseconds. */
export type WriteMs = (bytes: number) => number;

/** @param turns of one thread or several, each in its order */
export function replayPolicies(turns: readonly TurnFacts[], writeMs: WriteMs = () => 0): PolicyOutcome[] {
  const names = new Set(turns.map(({ thread }) => thread));
  const threads = [...names].map((name) => turns.filter(({ thread }) => thread === name));
  return candidates.map(({ capture, wants }) => {
    const each = threads.map((line) => replayOne(line, wants, writeMs));
    const sum = (field: "captured" | "unchanged" | "notCaptured" | "bytes" | "waitedMs"): number =>
      each.reduce((total, one) => total + one[field], 0);
    return {
      capture,
      captured: sum("captured"),
      unchanged: sum("unchanged"),
      notCaptured: sum("notCaptured"),
      bytes: sum("bytes"),
      waitedMs: sum("waitedMs"),
      worstLoss: Math.max(0, ...each.map(({ worstLoss }) => worstLoss)),
    };
  });
}

function replayOne(
  line: readonly TurnFacts[],
  { wants, always }: Wants,
  writeMs: WriteMs,
): Omit<PolicyOutcome, "capture"> {
  const points: number[] = [];
  const found = { captured: 0, unchanged: 0, notCaptured: 0, bytes: 0, waitedMs: 0 };
  /** Since the newest that is captured. */
  let pending = 0;
  let changed = false;
  let newest: number | null = null;
  for (const [index, one] of line.entries()) {
    // What was there before the first turn every policy stores once.
    if (index > 0 || one.changed !== null) pending += one.bytes;
    changed ||= one.changed !== "none" || newest === null;
    const turnsSince = newest === null ? null : one.turn - newest;
    const about = { thread: one.thread, turn: one.turn, turnsSince };
    const before = one.calls.length > 0 || line[index - 1]?.reply !== null ? one.calls : null;
    const begins =
      always === true || wants({ ...about, moment: "begin", ...asked(before), changed: changed ? "both" : "none" });
    const late =
      !begins &&
      ((one.reply ?? []).some(isOwed) ||
        (one.reply?.length !== 0 && wants({ ...about, moment: "reply", ...asked(one.reply), changed: "unknown" })));
    // Where a policy is asked whether anything changed, that is looked for: what that takes is waited for all the same.
    const looks = begins || wants === effects.wants;
    if (looks) found.waitedMs += one.exposedMs;
    if (late) found.waitedMs += one.exposedMs + one.overlappedMs;
    if (!begins && !late && !(looks && !changed)) {
      found.notCaptured++;
      continue;
    }
    if (changed) {
      found.captured++;
      found.bytes += pending;
      found.waitedMs += writeMs(pending);
    } else found.unchanged++;
    points.push(one.turn);
    newest = one.turn;
    pending = 0;
    changed = false;
  }
  const last = line.at(-1)?.turn;
  return { ...found, worstLoss: last === undefined ? 0 : longestGap(points, last) };
}

function asked(calls: readonly FactCall[] | null): { calls: []; classes: readonly PolicyClass[] } {
  const found = calls === null ? (["unknown"] as const) : calls.flatMap((one) => one.classes);
  return { calls: [], classes: [...new Set(found)] };
}

/** Of the run's time: below it, what loses nothing costs nothing that matters. */
export const freeShare = 0.01;
/** Turns of work that may be lost where that has its price. */
export const bearableLoss = 5;
/** Of fewer nothing is told but the policy that loses nothing. */
const fewTurns = 3;
/** A longer pause between two turns is nobody's work. */
const longestPauseMs = 60_000;

/**
 * `"effects"` where what it makes the agent wait is at most 1 % of the run's time; else what makes it wait least and loses at most 5 turns of work, `"explicit"`
 * apart, which captures nothing by itself. Undefined where there are no turns.
 */
export function fitOf(turns: readonly TurnFacts[], outcomes: readonly PolicyOutcome[]): Fit | undefined {
  const whole = outcomes.find(({ capture }) => capture === '"effects"');
  if (turns.length === 0 || whole === undefined) return undefined;
  if (turns.length < fewTurns)
    return { capture: whole.capture, why: `fewer than ${fewTurns} turns say nothing of how often something changes` };
  const share = whole.waitedMs / Math.max(1, runMs(turns) + whole.waitedMs);
  const percent = `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`;
  if (share <= freeShare)
    return {
      capture: whole.capture,
      why: `it loses nothing, and waiting for it is ${percent} of the run's time (at most 1 %)`,
    };
  const [best] = outcomes
    .filter(({ capture, worstLoss }) => capture !== '"explicit"' && worstLoss <= bearableLoss)
    .sort((a, b) => a.waitedMs - b.waitedMs || a.bytes - b.bytes || a.worstLoss - b.worstLoss);
  const chosen = best ?? whole;
  return {
    capture: chosen.capture,
    why: `"effects" would be ${percent} of the run's time (more than 1 %), and of those that lose at most ${bearableLoss} turns of work it waits least`,
  };
}

/** From the first turn to the last, without long pauses. */
function runMs(turns: readonly TurnFacts[]): number {
  const times = turns.map(({ at }) => at).sort((a, b) => a - b);
  return times.reduce((sum, at, index) => sum + Math.min(longestPauseMs, at - (times[index - 1] ?? at)), 0);
}
