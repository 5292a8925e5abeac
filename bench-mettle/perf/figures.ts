// Samples become figures: quantiles, and ratios against the other arms of the same run.
import type { Operation } from "./arm.ts";
import type { Measured } from "./rounds.ts";
import type { Census, Subject } from "./subjects.ts";

export interface Figures {
  readonly n: number;
  readonly p50: number;
  readonly p95: number;
  readonly max: number;
}

export interface Row {
  readonly operation: Operation;
  readonly arm: string;
  readonly ms: Figures;
  readonly samplesMs: readonly number[];
  /** p50 against that of the copy and of the shadow git; null where they did not run. */
  readonly timesCopy: number | null;
  readonly timesGit: number | null;
  /** Bytes on disk of the arm's store behind the operation, and how much one checkpoint added. */
  readonly storedBytes: number;
  readonly grownBytes: number | null;
  readonly faults: readonly string[];
}

/** One way in which AgentRewind's own operation was measured, with what was seen besides its time. */
export interface Detail {
  /** "agentrewind", or "scan" where no watcher helped. */
  readonly arm: string;
  readonly operation: Operation;
  /** "session" is the operation as the first table has it. */
  readonly mode: string;
  readonly ms: Figures;
  readonly parts: Readonly<Record<string, Figures>>;
}

export interface SubjectResult {
  readonly name: string;
  readonly about: string;
  readonly census: Census;
  readonly rows: readonly Row[];
  readonly details: readonly Detail[];
}

/** The nearest-rank quantile. */
export function quantile(list: readonly number[], q: number): number {
  const sorted = [...list].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(q * sorted.length) - 1)] as number;
}

const digits = (value: number): number => Number(value.toPrecision(4));

function figures(list: readonly number[]): Figures {
  const at = (q: number): number => digits(quantile(list, q));
  return { n: list.length, p50: at(0.5), p95: at(0.95), max: at(1) };
}

export function subjectResult(subject: Subject, measured: readonly Measured[]): SubjectResult {
  const own = measured.filter(({ mode }) => mode === "");
  const p50 = (operation: Operation, arm: string): number | undefined => {
    const found = own.find((one) => one.operation === operation && one.arm === arm);
    return found === undefined
      ? undefined
      : quantile(
          found.samples.map(({ ms }) => ms),
          0.5,
        );
  };
  const ratio = (one: Measured, arm: string): number | null => {
    const base = p50(one.operation, arm);
    return base === undefined || arm === one.arm ? null : digits((p50(one.operation, one.arm) as number) / base);
  };
  return {
    name: subject.name,
    about: subject.about,
    census: subject.census,
    rows: own.map((one) => ({
      operation: one.operation,
      arm: one.arm,
      ms: figures(one.samples.map(({ ms }) => ms)),
      samplesMs: one.samples.map(({ ms }) => digits(ms)),
      timesCopy: ratio(one, "cp"),
      timesGit: ratio(one, "git"),
      storedBytes: Math.round(quantile(one.stored, 0.5)),
      grownBytes: one.grown.length === 0 ? null : Math.round(quantile(one.grown, 0.5)),
      faults: [...new Set(one.faults)],
    })),
    details: measured.filter(({ arm }) => arm === "agentrewind" || arm === "scan").map(detail),
  };
}

function detail({ operation, arm, mode, samples }: Measured): Detail {
  const names = [...new Set(samples.flatMap(({ parts = {} }) => Object.keys(parts)))];
  const values = (name: string): number[] => samples.map(({ parts = {} }) => parts[name] as number);
  return {
    arm,
    operation,
    mode: mode === "" ? "session" : mode,
    ms: figures(samples.map(({ ms }) => ms)),
    parts: Object.fromEntries(names.map((name) => [name, figures(values(name))])),
  };
}
