// When a pair is captured: what a policy is asked, and how its answer is used.
import type { ActionCall, Declarations, PolicyClass } from "./actions.ts";
import { classesOfCall } from "./actions.ts";
import type { Changed } from "./changed.ts";

/** A turn of which a policy says whether it is captured. */
export interface CaptureTurn {
  readonly thread: string;
  /** Number of the model decision in its line, from 1. */
  readonly turn: number;
  /**
   * "begin": the model is about to be asked; what is captured now costs it nothing. "reply": the reply is there, its tools have not begun, and they wait for
   * what is captured now. A policy that says yes at the beginning is not asked again.
   */
  readonly moment: "begin" | "reply";
  /** At "begin" the calls of the reply before, at "reply" those of this one. Empty where the caller did not tell them. */
  readonly calls: readonly ActionCall[];
  /** Of all these calls, each once: what they may have done, or may be about to do. "unknown" among them where one cannot be judged, or tools ran that nobody told of. */
  readonly classes: readonly PolicyClass[];
  /** Against the newest checkpoint before it that can be restored; "unknown" where nothing can tell, or there is none. At "reply" always "unknown". */
  readonly changed: Changed;
  /** Model decisions since the newest checkpoint that can be restored; null where there is none. */
  readonly turnsSince: number | null;
}

export interface Policy {
  /** As it is told to people: "effects", "before delete, git". */
  readonly name: string;
  /** Whether every turn is captured at its beginning; then nothing is asked. */
  readonly always: boolean;
  /** Whether files between two decisions, for states that a framework names, are captured. */
  readonly steps: boolean;
  wants(turn: CaptureTurn): boolean;
  classesOf(call: ActionCall): readonly PolicyClass[];
}

/** Of all calls, each once. */
export function classesOf(policy: Policy, calls: readonly ActionCall[]): readonly PolicyClass[] {
  return [...new Set(calls.flatMap((call) => policy.classesOf(call)))];
}

export type Wants = Pick<Policy, "name" | "wants"> & Partial<Pick<Policy, "always" | "steps">>;

export const policyOf = (wants: Wants, declarations: Declarations): Policy => ({
  always: false,
  steps: false,
  ...wants,
  classesOf: (call) => classesOfCall(call, declarations),
});
