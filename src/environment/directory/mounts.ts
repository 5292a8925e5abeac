// What is mounted below a directory, as /proc tells.
import { readFileSync, realpathSync } from "node:fs";
import { fromBytes, type RawPath } from "./names.ts";

/** Paths relative to `root`; none where there is no /proc. */
export function mountPoints(root: string): ReadonlySet<RawPath> {
  try {
    const top = `${fromBytes(realpathSync(root, "buffer"))}/`;
    const lines = fromBytes(readFileSync("/proc/self/mountinfo")).split("\n");
    const points = lines.map((line) => fromOctal(line.split(" ")[4] ?? ""));
    return new Set(points.filter((point) => point.startsWith(top)).map((point) => point.slice(top.length)));
  } catch {
    return new Set();
  }
}

/** The kernel writes space, tab, newline and backslash in octal. */
const fromOctal = (text: string): RawPath =>
  text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
