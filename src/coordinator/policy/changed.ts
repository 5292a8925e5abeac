// Did the environment change? The answer that spares a capture.
import type { Manifest } from "../../environment/environment.ts";

/** Which halves differ from a state. "unknown" counts as both. */
export type Changed = "none" | "files" | "processes" | "both" | "unknown";

/**
 * Whoever can tell more cheaply than by a capture whether the environment is still in a state that was captured. Asked while nothing is captured or restored.
 * MUST answer "none" only where that is certain: what is said to be unchanged is restored as it was at `since`.
 */
export type ChangedSince = (since: Manifest) => Promise<Changed>;

/** In doubt, also where the answer failed, "unknown". */
export async function askChanged(ask: ChangedSince | undefined, since: Manifest | undefined): Promise<Changed> {
  if (ask === undefined || since === undefined) return "unknown";
  try {
    return await ask(since);
  } catch {
    return "unknown";
  }
}
