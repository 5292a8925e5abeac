// Choices that a seed and a name decide, so that every policy meets the same ones.
import { createHash } from "node:crypto";

export type Random = () => number;

/** Uniform in [0, 1), by mulberry32. */
export function randomOf(...seed: readonly (string | number)[]): Random {
  let state = createHash("sha256").update(JSON.stringify(seed)).digest().readUInt32LE(0);
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** A whole number from `from` up to and with `to`. */
export const between = (random: Random, from: number, to: number): number =>
  from + Math.floor(random() * (to - from + 1));

export const pick = <T>(random: Random, list: readonly [T, ...T[]]): T => list[Math.floor(random() * list.length)] as T;

const median = 4_000;
/** 95 of 100 are below 15 s: ln(15/4) / 1.645. */
const sigma = Math.log(15 / 4) / 1.645;

export const latencyAbout = "log-normal, median 4 s, p95 15 s";

/** Milliseconds that the model takes for a turn, before scaling. */
export function latencyOf(trace: string, turn: number): number {
  const random = randomOf("latency", trace, turn);
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  return median * Math.exp(sigma * normal);
}
