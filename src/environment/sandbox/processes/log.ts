// What CRIU's log warns of and fails with. It is written at the level of warnings: each line is a write, and ten times as many make a dump a fifth slower.
import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";

export interface LogLine {
  readonly level: "warning" | "error";
  /** The process that a line is about, as the sandbox numbers it; null where it does not say. */
  readonly pid: string | null;
  readonly text: string;
}

/** [] where there is no log. */
export async function readLog(path: string): Promise<LogLine[]> {
  const lines: LogLine[] = [];
  const stream = createReadStream(path);
  try {
    for await (const line of createInterface({ input: stream, crlfDelay: Number.POSITIVE_INFINITY })) {
      // While processes are restored, each line names the one that says it.
      const match = /^(?:\([\d.]+\))?[: ]*(?:pie: )?(?:(\d+): )?.*?(Error|Warn) +\([^)]*\): (.*)$/.exec(line);
      if (match === null) continue;
      const [, speaker, kind, text = ""] = match;
      const named = /\(pid: (\d+)/.exec(text)?.[1];
      lines.push({ level: kind === "Warn" ? "warning" : "error", pid: speaker ?? named ?? null, text });
    }
  } catch {
    return lines;
  } finally {
    stream.destroy();
  }
  return lines;
}
