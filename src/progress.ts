// Progress of what may take long, for whoever listens to the diagnostics channel "agentrewind:progress".
import { channel } from "node:diagnostics_channel";

export interface Progress {
  readonly operation: "checkpoint" | "rewind" | "undo" | "adopt" | "align" | "fork" | "export" | "import";
  /** What is being done, in words: "reading the workspace". */
  readonly phase: string;
  /** Of `total`, where the phase counts something; else null. */
  readonly done: number | null;
  readonly total: number | null;
}

export const progressChannel = channel("agentrewind:progress");

export function reportProgress(operation: Progress["operation"], phase: string, done?: number, total?: number): void {
  if (!progressChannel.hasSubscribers) return;
  progressChannel.publish({ operation, phase, done: done ?? null, total: total ?? null } satisfies Progress);
}
