// Who is told of turns where a workspace was opened to be observed: nothing is captured, and nothing can be returned to.
import type { ActionCall } from "../coordinator/policy/actions.ts";
import type { Manifest } from "../environment/environment.ts";
import { RewindError } from "../errors.ts";
import type { Timings } from "./types.ts";

export interface TurnObserver {
  /** A turn has begun, and its environment was looked at. */
  began(turn: BegunTurn): void;
  /** Its reply is there, before its tools run. */
  replied(turn: RepliedTurn): void;
  /** The agent waited for another look, before its first tool. */
  waited(turn: TurnName, ms: number): void;
}

export interface TurnName {
  readonly thread: string;
  /** Id of its checkpoint. */
  readonly id: string;
}

export interface BegunTurn extends TurnName {
  /** Number of the model decision in its line, from 1. */
  readonly turn: number;
  /** What ran since the turn before. */
  readonly calls: readonly ActionCall[];
  /** Undefined where it could not be looked at. */
  readonly manifest: Manifest | undefined;
  readonly workMs: number;
}

export interface RepliedTurn extends TurnName {
  readonly tools: boolean;
  /** Undefined where the caller did not tell them. */
  readonly calls: readonly ActionCall[] | undefined;
  readonly timings: Pick<Timings, "exposedMs" | "overlappedMs">;
}

/** What stands in the place of the environment half of a turn that was observed (F-18). */
export const observedReason = "not captured: the workspace was opened to be observed";

/** @throws OBSERVING where nothing is captured */
export function requireRecording({ observer }: { readonly observer?: TurnObserver | undefined }): void {
  if (observer !== undefined) throw observing();
}

export const observing = (): RewindError =>
  new RewindError(
    "OBSERVING",
    "This workspace was opened to be observed: nothing is captured, so nothing can be taken back.",
    {
      hint: "Open it without `inspector: { observe: true }`, and not below `agentrewind observe`, to record it.",
      modelHint: "Go on from here, and mend what is wrong with ordinary steps.",
    },
  );
