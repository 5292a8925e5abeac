// `stats`: what the turns of a thread changed, and what their checkpoints cost.
import type { CaptureStats } from "../session/capture-stats.ts";
import { type Spread, type TurnStats, turnClasses, turnStats } from "../session/turn-stats.ts";
import type { Paint } from "../text/paint.ts";
import { oneLine } from "../text/safe.ts";
import { columns } from "../text/table.ts";
import { bytes, milliseconds, plural } from "../text/words.ts";
import type { Global } from "./global.ts";
import type { Output } from "./output.ts";
import { withThread } from "./recorded.ts";

const causesShown = 12;
const callLimit = 40;

export function stats(global: Global): Promise<Output> {
  return withThread(global, (thread) => {
    const found = turnStats(thread.checkpoints({ all: true }));
    return { json: { thread: thread.name, ...found }, text: (paint) => lines(thread.name, found, paint) };
  });
}

function lines(
  thread: string,
  { checkpoints, uncompared, notRestorable, classes, captures, causes }: TurnStats,
  paint: Paint,
): string[] {
  const apart = [
    ...(uncompared > 0 ? [`${uncompared} with nothing before to compare with`] : []),
    ...(notRestorable > 0 ? [`${notRestorable} not restorable`] : []),
  ];
  const row = (name: keyof typeof classes): string[] => {
    const { turns, share, bytes: stored, exposedMs, overlappedMs } = classes[name];
    const percent = `${(share * 100).toFixed(1)} %`;
    return [name, `${turns}`, percent, bytes(stored), ...times(exposedMs), ...times(overlappedMs)];
  };
  const shown = causes.slice(0, causesShown);
  return [
    `Thread ${oneLine(thread)}: ${plural(checkpoints, "checkpoint")}${apart.length === 0 ? "" : ` (${apart.join(", ")})`}`,
    ...(captures.turns === 0 ? [] : [capturesLine(captures)]),
    "",
    ...columns(
      ["CHANGED", "TURNS", "SHARE", "STORED", "WAITED p50", "p95", "BESIDE THE MODEL p50", "p95"],
      turnClasses.map(row),
      paint,
    ),
    ...(shown.length === 0
      ? []
      : [
          "",
          ...columns(
            ["CALL", "TURNS", "FILES CHANGED", "PROCESSES CHANGED", "STORED"],
            shown.map((one) => [
              oneLine(one.call, callLimit),
              `${one.turns}`,
              `${one.files}`,
              `${one.processes}`,
              bytes(one.bytes),
            ]),
            paint,
          ),
        ]),
    ...(causes.length > shown.length ? [`(${causes.length - shown.length} more)`] : []),
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

const times = (spread: Spread | null): string[] =>
  spread === null ? ["-", "-"] : [milliseconds(spread.p50), milliseconds(spread.p95)];
