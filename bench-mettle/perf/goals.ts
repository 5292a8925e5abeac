// What the project wants to reach, judged by the medians of one run. What is missed is said.
import type { Operation } from "./arm.ts";
import type { Detail, Row, SubjectResult } from "./figures.ts";

export interface Goal {
  readonly goal: string;
  /** What was measured, in words with numbers; "not measured" where this run did not have it. */
  readonly measured: string;
  readonly met: boolean | null;
}

const real = "10,000 files";
const large = "100,000 files";

export function judge(subjects: readonly SubjectResult[]): Goal[] {
  const subject = (name: string): SubjectResult | undefined => subjects.find((one) => one.name === name);
  const row = (of: string, operation: Operation, arm: string): Row | undefined =>
    subject(of)?.rows.find((one) => one.operation === operation && one.arm === arm);
  const detail = (of: string, arm: string, operation: Operation, mode: string): Detail | undefined =>
    subject(of)?.details.find((one) => one.arm === arm && one.operation === operation && one.mode === mode);

  function within(goal: string, operation: Operation, limit: number, base: string, arm = "agentrewind"): Goal {
    const own = row(real, operation, arm);
    const other = row(real, operation, base);
    const name = `${real}: ${goal}`;
    if (own === undefined || other === undefined) return notMeasured(name);
    const ratio = own.ms.p50 / other.ms.p50;
    return {
      goal: name,
      measured: `${show(ratio)}x: ${show(own.ms.p50)} ms against ${show(other.ms.p50)} ms`,
      met: ratio <= limit,
    };
  }

  function rewindOfOne(): Goal {
    const name = `${real}: rewind of 1 file <= the scan + 5 ms`;
    const own = row(real, "rewind-one", "agentrewind");
    const scan = detail(real, "scan", "unchanged", "capture");
    if (own === undefined || scan === undefined) return notMeasured(name);
    const over = own.ms.p50 - scan.ms.p50;
    const alone = detail(real, "agentrewind", "rewind-one", "restore");
    const restore =
      alone === undefined
        ? ""
        : `; the environment's restore alone ${show(alone.ms.p50)} ms (scan + ${show(alone.ms.p50 - scan.ms.p50)} ms)`;
    const ratio = show(own.ms.p50 / scan.ms.p50);
    return {
      goal: name,
      measured: `${ratio}x the scan: ${show(own.ms.p50)} ms against ${show(scan.ms.p50)} ms (scan + ${show(over)} ms)${restore}`,
      met: over <= 5,
    };
  }

  function memory(): Goal {
    const name = `${large}: peak RSS of the process <= 150 MB`;
    const worst = highest("peakMB");
    if (worst === undefined) return notMeasured(name);
    const limit = 150;
    return {
      goal: name,
      measured: `${show(worst.value / limit)}x the limit: ${show(worst.value)} MB, reached by ${worst.where}`,
      met: worst.value <= limit,
    };
  }

  function eventLoop(): Goal {
    const name = `${large}: a checkpoint never blocks the event loop for more than 5 ms`;
    const worst = highest("ownBlockMs") ?? highest("blockMs");
    const raw = highest("blockMs");
    if (worst === undefined || raw === undefined) return notMeasured(name);
    const limit = 5;
    const collection = highest("collectionMs")?.value;
    const idle = detail(large, "agentrewind", "first", "idle")?.parts.blockMs?.max;
    return {
      goal: name,
      measured:
        `${show(worst.value / limit)}x the limit: ${show(worst.value)} ms of its own (${worst.where}), ${show(raw.value)} ms with waiting for a core` +
        (collection === undefined ? "" : `; the longest single collection of V8 took ${show(collection)} ms`) +
        (idle === undefined ? "" : `; ${show(idle)} ms while nothing of ours ran`),
      met: worst.value <= limit,
    };
  }

  /** Over all checkpoints of the largest tree. */
  function highest(part: string): { value: number; where: string } | undefined {
    return (subject(large)?.details ?? [])
      .filter(
        (one) =>
          one.parts[part] !== undefined &&
          one.mode !== "idle" &&
          (part === "peakMB" || !one.operation.startsWith("rewind")),
      )
      .map((one) => ({ value: one.parts[part]?.max as number, where: `${one.arm}, ${one.operation}, ${one.mode}` }))
      .reduce<{ value: number; where: string } | undefined>(
        (a, b) => (a !== undefined && a.value >= b.value ? a : b),
        undefined,
      );
  }

  function growth(): Goal {
    const name = "SQLite 1024 MiB: 1 changed row stores at most 1 MiB";
    const grown = row("SQLite 1024 MiB", "one", "agentrewind")?.grownBytes;
    if (grown === undefined || grown === null) return notMeasured(name);
    return { goal: name, measured: `${show(grown / 2 ** 20)} MiB a checkpoint`, met: grown <= 2 ** 20 };
  }

  return [
    within("first checkpoint <= 0.5x cp -a", "first", 0.5, "cp"),
    within("1 changed file <= 0.25x shadow git (by scanning)", "one", 0.25, "git", "scan"),
    within("unchanged <= 0.25x shadow git (by scanning)", "unchanged", 0.25, "git", "scan"),
    within("1 changed file <= 0.05x shadow git (where a watcher saw everything)", "one", 0.05, "git"),
    within("unchanged <= 0.05x shadow git (likewise)", "unchanged", 0.05, "git"),
    rewindOfOne(),
    within("rewind after rm -rf * <= 1.0x cp -a back", "rewind-all", 1, "cp"),
    memory(),
    eventLoop(),
    growth(),
  ];
}

const notMeasured = (goal: string): Goal => ({ goal, measured: "not measured in this run", met: null });
const show = (value: number): string => `${Number(value.toPrecision(3))}`;
