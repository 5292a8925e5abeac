// A caller's own policy.
import type { CaptureTurn, Wants } from "./policy.ts";

/**
 * Says whether a turn is captured; asked at its beginning and, where it said no and the reply calls tools, once more before they run. Only `false` means no: what it throws, or a
 * promise, counts as yes.
 */
export type CaptureFunction = (turn: CaptureTurn) => boolean;

export const byFunction = (decide: CaptureFunction): Wants => ({
  name: "a function",
  wants(turn) {
    try {
      return decide(turn) !== false;
    } catch (error) {
      const why = (error as Error)?.message ?? String(error);
      process.emitWarning(`capture failed, so the turn is captured: ${why}`, "AgentRewindWarning");
      return true;
    }
  },
});
