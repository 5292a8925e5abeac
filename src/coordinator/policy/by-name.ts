// The policies that have a name.
import type { Wants } from "./policy.ts";

/** Each turn, at its beginning. */
export const every: Wants = { name: "every", always: true, steps: true, wants: () => true };

/** Each turn of which it is not certain that nothing changed before it. */
export const effects: Wants = {
  name: "effects",
  steps: true,
  wants: ({ moment, changed }) => moment === "begin" && changed !== "none",
};

/** None by itself: what somebody asks for, and what safety needs. */
export const explicit: Wants = { name: "explicit", wants: () => false };
