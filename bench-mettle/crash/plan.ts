// Where a run is killed: chosen by the trace and the seed alone, the same for every policy.
import { between, pick, randomOf } from "./random.ts";
import type { Trace } from "./traces/trace.ts";

export const moments = ["model", "tool", "behind"] as const;

export interface Kill {
  /** Index of the turn in whose course it falls; never the first. */
  readonly turn: number;
  /** "model": while the model is asked, so while the pair of the turn is captured. "tool": while the turn's first tool runs. "behind": right behind its last. */
  readonly moment: (typeof moments)[number];
  /** Milliseconds into that. What ends before is killed at its end. */
  readonly delayMs: number;
  /** "agent": its process alone. "sandbox": everything that descends from it as well, first. */
  readonly victim: "agent" | "sandbox";
}

const longestDelay = { model: 250, tool: 120, behind: 15 } as const;

export function killOf(trace: Trace, seed: number): Kill {
  const random = randomOf("kill", trace.id, seed);
  const turn = between(random, 1, trace.turns.length - 1);
  const moment = pick(random, moments);
  const delayMs = between(random, 0, longestDelay[moment]);
  return { turn, moment, delayMs, victim: pick(random, ["agent", "sandbox"]) };
}
