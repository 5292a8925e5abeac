// What was observed, and what policies come to, as tables of text.

import { type Cause, type Spread, type TurnClass, turnClasses } from "../session/turn-stats.ts";
import { type Paint, unpainted } from "../text/paint.ts";
import { oneLine } from "../text/safe.ts";
import { columns } from "../text/table.ts";
import { bytes, milliseconds, plural } from "../text/words.ts";
import type { Fit, PolicyOutcome } from "./policies.ts";
import type { ObserveReport } from "./report.ts";

const causesShown = 12;
const callLimit = 40;

/** As `agentrewind observe` ends with it. */
export const observedTable = (report: ObserveReport): string => `${reportLines(report, unpainted).join("\n")}\n`;

export function reportLines(report: ObserveReport, paint: Paint): string[] {
  const { classes, turns, uncompared, firstBytes } = report;
  const row = (name: TurnClass): string[] => {
    const { turns: count, share, bytes: stored, exposedMs, overlappedMs } = classes[name];
    return [name, `${count}`, percentOf(share), bytes(stored), ...times(exposedMs), ...times(overlappedMs)];
  };
  return [
    headline(report),
    ...(turns === 0
      ? []
      : [
          `A first capture would store ${bytes(firstBytes)}${uncompared === 0 ? "" : `; ${plural(uncompared, "turn")} had nothing before to compare with`}`,
        ]),
    ...report.notes.map((note) => oneLine(note)),
    ...(turns === 0
      ? []
      : [
          "",
          ...columns(
            ["CHANGED", "TURNS", "SHARE", "WOULD STORE", "WOULD WAIT p50", "p95", "BESIDE THE MODEL p50", "p95"],
            turnClasses.map(row),
            paint,
          ),
          ...totalsLine(report),
          ...causesLines(report.causes, "WOULD STORE", paint),
          ...policyLines(report.policies, report.fits, paint),
        ]),
  ];
}

function headline({ source, pauseMs, turns, workspaces }: ObserveReport): string {
  const where = workspaces.length === 0 ? "" : ` in ${workspaces.map((one) => oneLine(one)).join(", ")}`;
  if (source === "turns") return `Observed ${plural(turns, "turn")}${where}; nothing was captured`;
  const what = plural(turns, "stretch of activity", "stretches of activity");
  return `Observed ${what}${where} from outside, counted as turns: a pause of ${pauseMs} ms ends one, so this is an estimate; nothing was captured`;
}

function totalsLine({ bytes: stored, waitedMs, writeRate }: ObserveReport): string[] {
  if (stored === null || waitedMs === null) return [];
  const estimate =
    writeRate === null
      ? ""
      : `; WOULD WAIT is what looking took and at most the writing, estimated at ${bytes(writeRate)}/s as measured in the temporary folder`;
  return [
    `A turn would store ${bytes(stored.p50)} (p50), ${bytes(stored.p95)} (p95) and wait ${milliseconds(waitedMs.p50)} (p50), ${milliseconds(waitedMs.p95)} (p95)${estimate}`,
  ];
}

/** @param stored title of the bytes */
export function causesLines(causes: readonly Cause[], stored: string, paint: Paint): string[] {
  if (causes.length === 0) return [];
  const shown = causes.slice(0, causesShown);
  const rows = shown.map((one) => [
    oneLine(one.call, callLimit),
    `${one.turns}`,
    `${one.files}`,
    `${one.processes}`,
    bytes(one.bytes),
  ]);
  return [
    "",
    ...columns(["CALL", "TURNS", "FILES CHANGED", "PROCESSES CHANGED", stored], rows, paint),
    ...(causes.length > shown.length ? [`(${causes.length - shown.length} more)`] : []),
  ];
}

export function policyLines(policies: readonly PolicyOutcome[], fits: Fit | null, paint: Paint): string[] {
  if (fits === null) return [];
  const rows = policies.map((one) => [
    one.capture,
    `${one.captured}`,
    `${one.unchanged}`,
    `${one.notCaptured}`,
    bytes(one.bytes),
    milliseconds(one.waitedMs),
    plural(one.worstLoss, "turn"),
  ]);
  return [
    "",
    ...columns(
      ["CAPTURE", "CAPTURED", "AS BEFORE", "LEFT OUT", "STORES AT MOST", "WAITS", "WORST WORK LOST"],
      rows,
      paint,
    ),
    `Fits: capture: ${fits.capture} (${fits.why})`,
  ];
}

export const percentOf = (share: number): string => `${(share * 100).toFixed(1)} %`;

export const times = (spread: Spread | null): string[] =>
  spread === null ? ["-", "-"] : [milliseconds(spread.p50), milliseconds(spread.p95)];
