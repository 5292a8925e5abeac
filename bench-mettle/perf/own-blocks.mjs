// How long a process held its own event loop, whatever else the machine did.
import { readFileSync } from "node:fs";
import { PerformanceObserver, performance } from "node:perf_hooks";

/** Of the timer that looks whether the loop runs. */
export const resolutionMs = 1;

/** Milliseconds that the main thread could have run but had no core; undefined where the kernel does not tell. */
function waitedMs() {
  try {
    return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, "utf8").split(" ")[1]) / 1e6;
  } catch {
    return undefined;
  }
}

/** The longest pause in which V8 collected garbage, in milliseconds; with the blocks, not besides them. */
export function watchCollections() {
  let longest = 0;
  const seen = (entries) => {
    for (const { duration } of entries) longest = Math.max(longest, duration);
  };
  const observer = new PerformanceObserver((list) => seen(list.getEntries()));
  observer.observe({ entryTypes: ["gc"] });
  return () => {
    seen(observer.takeRecords());
    observer.disconnect();
    return { collectionMs: longest };
  };
}

/** The longest time between two ticks, less what the thread waited for a core in it: what a busy machine does is not ours. */
export function watchOwnBlocks() {
  let at = performance.now();
  let waited = waitedMs();
  let longest = 0;
  if (waited === undefined) return () => ({});
  const timer = setInterval(() => {
    const now = performance.now();
    const soFar = waitedMs();
    longest = Math.max(longest, now - at - (soFar - waited) - resolutionMs);
    at = now;
    waited = soFar;
  }, resolutionMs);
  return () => {
    clearInterval(timer);
    return { ownBlockMs: longest };
  };
}
