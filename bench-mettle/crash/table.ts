// The result as a table, with what the traces need beside it.
import { share, sum, table } from "../markdown.ts";
import { quantile } from "../perf/figures.ts";
import type { Machine } from "../perf/machine.ts";
import { type Judged, needsOf } from "./oracle.ts";
import { type Policy, unkilled } from "./policies.ts";
import { latencyAbout, latencyOf } from "./random.ts";
import type { Run } from "./run.ts";
import type { Trace } from "./traces/trace.ts";

export interface Result {
  readonly command: string;
  readonly date: string;
  readonly machine: Machine;
  readonly traces: readonly Trace[];
  readonly policies: readonly Policy[];
  readonly judged: readonly Judged[];
  readonly runs: readonly Run[];
  readonly scale: number;
  readonly seeds: readonly number[];
  readonly jobs: number;
}

const kinds = ["shell", "files"] as const;

const passed = (runs: readonly Run[]): string => {
  const passing = runs.filter(({ pass }) => pass).length;
  return runs.length === 0 ? "-" : `${share(passing, runs.length)} (${passing}/${runs.length})`;
};

/** How much longer than the same trace without a kill and without checkpoints: the median of the ratios. */
function timesFaultFree(runs: readonly Run[], all: readonly Run[]): string {
  const plain = new Map(
    all.filter(({ policy }) => policy === "fault-free").map((run) => [`${run.trace}/${run.seed}`, run.ms]),
  );
  const ratios = runs.flatMap(({ trace, seed, ms }) => {
    const without = plain.get(`${trace}/${seed}`);
    return without === undefined ? [] : [ms / without];
  });
  return ratios.length === 0 ? "-" : `${quantile(ratios, 0.5).toFixed(2)}x`;
}

/** What agents waited for captures, of what the model would have taken without the scale: captures that a scaled model does not hide count in full. */
function exposedShare(runs: readonly Run[]): string {
  const exposed = sum(runs.map(({ exposedMs }) => exposedMs));
  const model = sum(
    runs.flatMap(({ trace, turns }) => Array.from({ length: turns }, (_, turn) => latencyOf(trace, turn))),
  );
  return exposed === 0 ? "-" : `${((100 * exposed) / model).toFixed(2)} %`;
}

function skips(runs: readonly Run[], half: "filesSkipped" | "processesSkipped" | "bothSkipped"): string {
  return share(sum(runs.map(({ captures }) => captures[half])), sum(runs.map(({ captures }) => captures.made)));
}

const policyRow = ({ name }: Policy, runs: readonly Run[]): (string | number)[] => {
  const own = runs.filter(({ policy }) => policy === name);
  const total = (of: (run: Run) => number): number => sum(own.map(of));
  return [
    name,
    ...kinds.map((kind) => passed(own.filter((run) => run.kind === kind))),
    total((run) => run.modelCallsRepeated),
    total((run) => run.toolRunsRepeated),
    total((run) => run.toolRunsRedone),
    total((run) => run.begunAgain),
    `${skips(own, "filesSkipped")} / ${skips(own, "processesSkipped")} / ${skips(own, "bothSkipped")}`,
    (total((run) => run.bytes) / Math.max(1, own.length) / 2 ** 20).toFixed(1),
    timesFaultFree(own, runs),
    exposedShare(own),
  ];
};

function composition({ judged, traces }: Result): string {
  const needs = ["none", "files", "processes", "both"] as const;
  const row = (title: string, some: readonly Judged[]): (string | number)[] => {
    const turns = sum(some.map(({ tried }) => tried.length));
    const unharmed = (drop: "both" | "processes"): string =>
      share(sum(some.map(({ harmless }) => harmless[drop].length)), turns);
    return [
      title,
      some.length,
      ...needs.map((need) => some.filter((one) => needsOf(one) === need).length),
      unharmed("both"),
      unharmed("processes"),
    ];
  };
  const families = [...new Set(traces.map(({ family }) => family))];
  return table(
    ["traces", "number", ...needs.map((need) => `need ${need}`), "turns unharmed without both", "without processes"],
    [
      ...kinds.map((kind) =>
        row(
          `all ${kind}`,
          judged.filter((one) => one.kind === kind),
        ),
      ),
      ...families.map((family) =>
        row(
          family,
          judged.filter((one) => one.family === family),
        ),
      ),
    ],
  );
}

function byFamily({ traces, policies, runs }: Result): string {
  const killed = policies.filter((policy) => !unkilled.includes(policy));
  const families = [...new Set(traces.map(({ family }) => family))];
  return table(
    ["family", ...killed.map(({ name }) => name)],
    families.map((family) => [
      family,
      ...killed.map(({ name }) => passed(runs.filter((run) => run.family === family && run.policy === name))),
    ]),
  );
}

function byMoment({ policies, runs }: Result): string {
  const killed = policies.filter((policy) => !unkilled.includes(policy));
  const groups = ["model", "tool", "behind"].flatMap((moment) =>
    ["agent", "sandbox"].map((victim) => ({ moment, victim })),
  );
  return table(
    ["killed", "victim", ...killed.map(({ name }) => name)],
    groups.map(({ moment, victim }) => [
      moment,
      victim,
      ...killed.map(({ name }) =>
        passed(runs.filter(({ kill, policy }) => policy === name && kill?.moment === moment && kill.victim === victim)),
      ),
    ]),
  );
}

function failures({ runs }: Result): string {
  const failed = runs.filter(
    ({ policy, pass }) => !pass && (policy.startsWith("ours") || policy === "full" || policy === "fault-free"),
  );
  if (failed.length === 0) return "Under `full`, `ours` and without a kill every verifier passed.";
  return failed
    .map(
      ({ trace, policy, seed, kill, why }) =>
        `- ${trace} under ${policy}, seed ${seed}, ${JSON.stringify(kill)}: ${why.replaceAll("\n", " ")}`,
    )
    .join("\n");
}

export function markdown(result: Result): string {
  const { command, date, machine, traces, policies, runs, scale, seeds, jobs } = result;
  const follow = traces.flatMap(({ id, follows }) => (follows === undefined ? [] : [`- ${id}: ${follows}`]));
  return `# Recovery after a crash, ${date}

\`${command}\`

${machine.cores} cores (${machine.processor}), ${machine.memoryGiB} GiB, Linux ${machine.kernel}, ${machine.fileSystem}, Node ${machine.node}${machine.root ? ", as root" : ""}, load ${machine.loadBefore.toFixed(1)} before it began, ${jobs} runs beside each other: times are rough.
${traces.length} traces, seed${seeds.length === 1 ? "" : "s"} ${seeds.join(", ")}; the model answers after ${latencyAbout}, times ${scale}. Every run is killed once by SIGKILL, at a random turn but the first: while the model is asked (and the turn's pair captured), while a tool runs, or right behind the turn's last tool; the agent's process alone, or everything below it first.
All policies are killed at the same places. A model that is replayed does not notice what is missing: a recovery is correct where the trace's verifier passes at the end.

${policies.map(({ name, about }) => `- \`${name}\`: ${about}`).join("\n")}

## Result

${table(
  [
    "policy",
    "correct, shell",
    "correct, files",
    "model calls repeated",
    "tool runs repeated",
    "done again: not kept yet",
    "interrupted and begun again",
    "captures without new files / processes / both",
    "MiB a run",
    "time against fault-free",
    "exposed, of the model's time",
  ],
  policies.map((policy) => policyRow(policy, runs)),
)}

"Repeated" is what had ended and lay in the restored prefix. "Done again": tools that had ended a moment before the kill, when no pair behind them was captured (with \`chat\`, no line of the log written) yet; what they did went with the sandbox. Bytes are what the captures wrote. "Exposed" is what agents waited for captures, against the model's time without the scale: an upper bound, since a model that is so much faster hides less of them.

${failures(result)}

Why they differ: \`restart\` is right and pays for everything twice. \`chat\` goes on with a conversation whose work is gone: right only where what came before the kill had only looked, or is made again behind it. \`chat+files\` adds what tools wrote, anywhere on the machine, and lacks servers' and jobs' memory, the shell's folder, variables, functions and open files:
right where the task works in files alone (git, builds, packages, repositories), wrong where it does not. \`full\` and \`ours\` bring both halves back as of one moment, so the rest of the trace meets what it met before. The last table says the same without any kill.

## By family

${byFamily(result)}

## By the moment of the kill

${byMoment(result)}

## What the traces need

For each trace and each turn but the first, the rest was replayed with the files as at the beginning, with all processes gone, and with both: which halves its verifier needs at some turn, and in which share of turns nothing is lost without them. That share is what \`chat\` (without both) and \`chat+files\` (without processes) can reach.

${composition(result)}

Traces that follow published tasks, in our own words:

${follow.join("\n")}
`;
}
