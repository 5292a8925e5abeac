// Cuts long synchronous work into slices, so that the event loop is never held for more than a few milliseconds.
import { performance } from "node:perf_hooks";

const sliceMs = 2;

/** Yields to the event loop when the slice is used up. */
export type Breathe = () => Promise<void> | undefined;

/** Call `breathe()` between small steps; it yields to the event loop when the slice is used up. */
export function makeBreather(signal?: AbortSignal): Breathe {
  let start = performance.now();
  return () => {
    if (performance.now() - start < sliceMs) return undefined;
    return new Promise((resolve, reject) => {
      setImmediate(() => {
        start = performance.now();
        if (signal?.aborted) reject(signal.reason);
        else resolve();
      });
    });
  };
}
