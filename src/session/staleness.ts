// Tells model calls that run that a rewind has made them stale.
import { RewindError } from "../errors.ts";

export interface Staleness {
  /** The signal aborts with the next rewind; call `end` when nobody listens any more. */
  watch(): { readonly signal: AbortSignal; readonly end: () => void };
  /** A rewind is committed. */
  raise(): void;
}

export function makeStaleness(): Staleness {
  const watched = new Set<AbortController>();
  return {
    watch() {
      const controller = new AbortController();
      watched.add(controller);
      return { signal: controller.signal, end: () => void watched.delete(controller) };
    },
    raise() {
      for (const controller of watched) controller.abort(stale());
      watched.clear();
    },
  };
}

const stale = (): RewindError =>
  new RewindError("STALE_EPOCH", "A rewind came while the model was asked.", {
    hint: "Drop the reply and go on from the restored context.",
  });
