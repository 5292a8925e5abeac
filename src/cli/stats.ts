// `stats`: what the turns of a thread changed, and what their checkpoints cost.

import { type Fit, fitOf, type PolicyOutcome, replayPolicies } from "../observe/policies.ts";
import { causesLines, percentOf, policyLines, times } from "../observe/table.ts";
import { recordedTurns } from "../observe/turns.ts";
import type { CaptureStats } from "../session/capture-stats.ts";
import { type TurnStats, turnClasses, turnStats } from "../session/turn-stats.ts";
import type { Paint } from "../text/paint.ts";
import { oneLine } from "../text/safe.ts";
import { columns } from "../text/table.ts";
import { bytes, milliseconds, plural } from "../text/words.ts";
import type { Global } from "./global.ts";
import type { Output } from "./output.ts";
import { withThread } from "./recorded.ts";

/** What other policies would have come to, on the head's line. */
interface Compared {
  readonly policies: readonly PolicyOutcome[];
  readonly fits: Fit | null;
}

export function stats(global: Global): Promise<Output> {
  return withThread(global, (thread) => {
    const all = thread.checkpoints({ all: true });
    const found = turnStats(all);
    const turns = recordedTurns(all);
    const policies = replayPolicies(turns);
    const compared: Compared = { policies, fits: fitOf(turns, policies) ?? null };
    return {
      json: { thread: thread.name, ...found, ...compared },
      text: (paint) => lines(thread.name, found, compared, paint),
    };
  });
}

function lines(
  thread: string,
  { checkpoints, uncompared, notRestorable, classes, captures, causes }: TurnStats,
  { policies, fits }: Compared,
  paint: Paint,
): string[] {
  const apart = [
    ...(uncompared > 0 ? [`${uncompared} with nothing before to compare with`] : []),
    ...(notRestorable > 0 ? [`${notRestorable} not restorable`] : []),
  ];
  const row = (name: keyof typeof classes): string[] => {
    const { turns, share, bytes: stored, exposedMs, overlappedMs } = classes[name];
    return [name, `${turns}`, percentOf(share), bytes(stored), ...times(exposedMs), ...times(overlappedMs)];
  };
  return [
    `Thread ${oneLine(thread)}: ${plural(checkpoints, "checkpoint")}${apart.length === 0 ? "" : ` (${apart.join(", ")})`}`,
    ...(captures.turns === 0 ? [] : [capturesLine(captures)]),
    "",
    ...columns(
      ["CHANGED", "TURNS", "SHARE", "STORED", "WAITED p50", "p95", "BESIDE THE MODEL p50", "p95"],
      turnClasses.map(row),
      paint,
    ),
    ...causesLines(causes, "STORED", paint),
    ...policyLines(policies, fits, paint),
  ];
}

function capturesLine({
  turns,
  captured,
  unchanged,
  notCaptured,
  failed,
  bytes: stored,
  exposedMs,
  worstLoss,
}: CaptureStats): string {
  const parts = [
    `${captured} captured`,
    `${unchanged} as the one before`,
    ...(notCaptured > 0 ? [`${notCaptured} not captured, as it was set`] : []),
    ...(failed > 0 ? [`${failed} failed`] : []),
  ];
  return `Of ${plural(turns, "turn")} ${parts.join(", ")}: ${bytes(stored)} stored, ${milliseconds(exposedMs)} waited in all, at most ${plural(worstLoss, "turn")} of work between two that can be restored`;
}
