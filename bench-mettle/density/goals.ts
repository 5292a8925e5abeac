// The goals, and what was measured of them.
import type { ArmFigures } from "./figures.ts";
import { turnsOf } from "./figures.ts";

export interface Goal {
  readonly goal: string;
  /** Null where it was not measured. */
  readonly met: boolean | null;
  readonly measured: string;
}

export interface CellFigures {
  readonly cell: string;
  readonly arms: readonly ArmFigures[];
}

const percent = (value: number, digits = 2): string => `${(100 * value).toFixed(digits)} %`;

export function judge(cells: readonly CellFigures[]): Goal[] {
  const of = (arm: string) =>
    cells.flatMap(({ cell, arms }) => arms.filter((one) => one.arm === arm).map((figures) => ({ cell, figures })));
  const ours = of("ours");
  const turns = turnsOf(ours.flatMap(({ figures }) => figures.tasks));
  const exposed = ours.flatMap(({ cell, figures: { exposedShare } }) =>
    exposedShare === null ? [] : [{ cell, p95: exposedShare.p95 }],
  );
  const worst = largest(exposed, ({ p95 }) => p95);
  const full = largest(
    of("full").filter(({ figures }) => figures.slower !== null),
    ({ figures }) => figures.slower?.all ?? 0,
  );
  const there = ours.find(({ cell }) => cell === full?.cell)?.figures.slower;
  return [
    {
      goal: "turns skipped by `ours`, all classes: at least 75 %",
      met: turns.all === 0 ? null : turns.skipped >= 0.75 * turns.all,
      measured: turns.all === 0 ? "-" : percent(turns.skipped / turns.all, 0),
    },
    {
      goal: "exposed delay of `ours`, p95 over tasks: at most 0.3 % of a task's time",
      met: worst === undefined ? null : worst.p95 <= 0.003,
      measured: worst === undefined ? "-" : `${percent(worst.p95)} at ${worst.cell}, where it is most`,
    },
    {
      goal: "`ours` at most 1.02 times as long as without checkpoints, where `full` is slowest",
      met: there == null ? null : there.all <= 1.02,
      measured:
        there == null || full === undefined
          ? "-"
          : `${there.all.toFixed(3)}x at ${full.cell}, where \`full\` takes ${full.figures.slower?.all.toFixed(2)}x`,
    },
  ];
}

function largest<T>(list: readonly T[], of: (one: T) => number): T | undefined {
  return list.reduce<T | undefined>((best, one) => (best === undefined || of(one) > of(best) ? one : best), undefined);
}
