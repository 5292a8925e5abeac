// What a model takes for the turns of a task.
import { between, latencyOf, type Random } from "../crash/random.ts";

/** Of the distribution that `latencyOf` draws from, in rising order. */
const drawn = Array.from({ length: 10_000 }, (_, index) => latencyOf("density", index)).sort((a, b) => a - b);

/** Its median, in milliseconds. */
export const drawnMedian = 4_000;
const drawnMean = drawn.reduce((sum, one) => sum + one, 0) / drawn.length;

export const meanLatency = (medianMs: number): number => (drawnMean * medianMs) / drawnMedian;

export const latencyAbout = (medianMs: number): string =>
  `log-normal, median ${medianMs / 1_000} s, p95 ${(medianMs * 15) / 4_000} s`;

/**
 * One latency from each of so many equally likely slices of the distribution, in any order: the tasks of a block take about the same time, and its load holds. Of the
 * slowest slice it is the middle.
 */
export function latenciesOf(random: Random, turns: number, medianMs: number): number[] {
  const sliced = Array.from({ length: turns }, (_, slice) => {
    const at = (slice + (slice === turns - 1 ? 0.5 : random())) / turns;
    return ((drawn[Math.floor(at * drawn.length)] as number) * medianMs) / drawnMedian;
  });
  for (let last = turns - 1; last > 0; last--) {
    const other = between(random, 0, last);
    [sliced[last], sliced[other]] = [sliced[other] as number, sliced[last] as number];
  }
  return sliced;
}
