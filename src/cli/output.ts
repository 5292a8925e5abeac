// What a command gives back, and how it reaches the person or the program that asked.
import type { RewindError } from "../errors.ts";
import { type Paint, paintFor } from "../text/paint.ts";
import { safeJson } from "../text/safe.ts";

export interface Output {
  readonly json: unknown;
  /** The lines for a person. */
  readonly text: (paint: Paint) => readonly string[];
  /** Where the lines go: "stderr" where stdout belongs to somebody else. */
  readonly to?: "stdout" | "stderr";
  /** The command said what it found, and what it found is a failure. */
  readonly failure?: RewindError;
  /** The exit status, where it is another program's. Default: 0, or the failure's. */
  readonly status?: number;
}

export function print(output: Output, json: boolean): void {
  if (json) {
    process.stdout.write(`${safeJson(output.json)}\n`);
    return;
  }
  const stream = output.to === "stderr" ? process.stderr : process.stdout;
  for (const line of output.text(paintFor(stream))) stream.write(`${line}\n`);
}
