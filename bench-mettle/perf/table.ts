// The result as Markdown.
import type { Operation } from "./arm.ts";
import type { Detail, Figures, SubjectResult } from "./figures.ts";
import type { Result } from "./result.ts";

export const operationTitle: Readonly<Record<Operation, string>> = {
  first: "first checkpoint",
  unchanged: "checkpoint, 0 changed",
  one: "checkpoint, 1 changed",
  hundred: "checkpoint, 100 changed",
  "rewind-one": "rewind, 1 changed",
  "rewind-all": "rewind after rm -rf *",
};

const modeTitle: Readonly<Record<string, string>> = {
  session: "the session's call",
  capture: "environment.capture()",
  turn: "a turn with a model call",
  restore: "environment.restore()",
  walk: "bare walk by find",
  idle: "nothing of ours runs",
};

export function markdown(result: Result): string {
  const { machine, versions } = result;
  return [
    `# Checkpoints and rewinds, ${result.date}`,
    `\`${result.command}\``,
    ...(result.quick ? ["**A quick run: it shows that everything works and measures nothing.**"] : []),
    `${machine.cores} cores (${machine.processor}), ${machine.memoryGiB} GiB, Linux ${machine.kernel}, ${machine.fileSystem}, Node ${machine.node}, ${machine.root ? "as root" : "as a user"}; ` +
      `load ${machine.loadBefore.toFixed(1)} before and ${machine.loadAfter.toFixed(1)} after. ${Object.values(versions).join("; ")}.`,
    "## Goals",
    table(
      ["goal", "met", "measured (p50)"],
      result.goals.map(({ goal, met, measured }) => [goal, met === null ? "-" : met ? "met" : "**not met**", measured]),
      "lll",
    ),
    ...result.subjects.flatMap((subject) => subjectText(subject, result)),
    "## Arms",
    result.arms
      .map(
        ({ title, about, missing }) => `- **${title}**: ${about}${missing === null ? "" : ` **Missing: ${missing}.**`}`,
      )
      .join("\n"),
    "## Conditions",
    result.conditions.map((one) => `- ${one}`).join("\n"),
  ]
    .join("\n\n")
    .concat("\n");
}

function subjectText(subject: SubjectResult, { arms }: Result): string[] {
  const titles = new Map(arms.map(({ name, title }) => [name, title]));
  const { entries, files, bytes } = subject.census;
  const faults = subject.rows.flatMap(({ operation, arm, faults }) =>
    faults.map((fault) => `- ${titles.get(arm)}, ${operationTitle[operation]}: ${fault}`),
  );
  return [
    `## ${subject.name}`,
    `${subject.about}: ${files} files, ${entries} entries, ${mega(bytes)} MB.`,
    table(
      ["operation", "arm", "p50 ms", "p95 ms", "n", "x cp -a", "x shadow git", "store MB", "grew MB"],
      subject.rows.map((row) => [
        operationTitle[row.operation],
        titles.get(row.arm) ?? row.arm,
        number(row.ms.p50),
        number(row.ms.p95),
        `${row.ms.n}`,
        row.timesCopy === null ? "" : number(row.timesCopy),
        row.timesGit === null ? "" : number(row.timesGit),
        mega(row.storedBytes),
        row.grownBytes === null ? "" : mega(row.grownBytes),
      ]),
      "llrrrrrrr",
    ),
    ...(faults.length === 0 ? [] : ["What a rewind left wrong:", faults.join("\n")]),
    ...(subject.details.length === 0
      ? []
      : [
          "AgentRewind in detail (p50 / p95; the longest block of its event loop, the same less waiting for a core, and the peak of its memory so far, p50 / highest):",
          table(
            [
              "operation",
              "measured",
              "arm",
              "captured or done ms",
              "durable ms",
              "exposed ms",
              "block ms",
              "own block ms",
              "collection ms",
              "peak MB",
            ],
            subject.details.map((one) => detailCells(one, titles)),
            "lllrrrrrrr",
          ),
        ]),
  ];
}

function detailCells({ arm, operation, mode, ms, parts }: Detail, titles: ReadonlyMap<string, string>): string[] {
  const pair = (figures: Figures | undefined, high: "p95" | "max"): string =>
    figures === undefined ? "" : `${number(figures.p50)} / ${number(figures[high])}`;
  return [
    operationTitle[operation],
    modeTitle[mode] ?? mode,
    titles.get(arm) ?? arm,
    mode === "idle" ? "" : pair(ms, "p95"),
    pair(parts.durableMs, "p95"),
    pair(parts.exposedMs, "p95"),
    pair(parts.blockMs, "max"),
    pair(parts.ownBlockMs, "max"),
    pair(parts.collectionMs, "max"),
    pair(parts.peakMB, "max"),
  ];
}

function table(head: readonly string[], rows: readonly (readonly string[])[], align: string): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  return [line(head), line([...align].map((one) => (one === "r" ? "---:" : "---"))), ...rows.map(line)].join("\n");
}

const number = (value: number): string =>
  value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
const mega = (bytes: number): string => {
  const value = bytes / 1e6;
  return Math.abs(value) >= 100 ? value.toFixed(0) : Math.abs(value) >= 1 ? value.toFixed(1) : value.toFixed(3);
};
