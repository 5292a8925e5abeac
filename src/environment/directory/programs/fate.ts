// What a restore does with the programs of an environment: told before, then done.
import type { Problem } from "../../environment.ts";
import { nameOf, notKept, relaunched } from "../../processes/start-again.ts";
import { launch, obstacle } from "./launch.ts";
import type { ProgramPolicy } from "./policy.ts";
import { keyOf, type RecordedProgram } from "./run.ts";
import type { ProgramTable, RecordedRun } from "./table.ts";
import type { LiveRun } from "./tracker.ts";

export interface Fate {
  /** Those whose processes are ended before files are touched. */
  readonly end: readonly LiveRun[];
  /** Those of them that were started after the moment to which is gone back. */
  readonly later: ReadonlySet<string>;
  readonly start: readonly { readonly run: string; readonly program: RecordedProgram }[];
  /** What stays different, and why; without what happens to those of `start`. */
  readonly problems: readonly Problem[];
}

const wentOn = "still runs: it has gone on since then, and its memory is not what it was";
const elsewhere = "ran in the workspace from which this one was forked, and not here";
const waitedFor = "it was the command of a call, which has ended";
const ofAnother = "still runs: it is, or belongs to, a command that somebody waits for outside of this session";

/**
 * @param live what runs now
 * @param table what ran at the moment to which is gone back; null where nothing did
 * @param name of a program that runs
 */
export function decideFate(
  live: readonly LiveRun[],
  table: ProgramTable | null,
  environment: string,
  policy: ProgramPolicy,
  name: (run: LiveRun) => readonly string[],
): Fate {
  const here = table?.environment === environment ? table.runs : [];
  const recorded = new Map(here.map((run) => [run.id, run]));
  const end: LiveRun[] = [];
  const later = new Set<string>();
  const problems: Problem[] = [];
  const staying = new Set<string>();
  for (const one of live) {
    const known = recorded.has(one.run.id);
    if (one.run.waiter !== null) {
      problems.push(...name(one).map((path) => ({ path, reason: ofAnother })));
      staying.add(one.run.id);
    } else if (known && policy === "relaunch") {
      problems.push(...name(one).map((path) => ({ path, reason: wentOn })));
      staying.add(one.run.id);
    } else {
      end.push(one);
      if (!known) later.add(one.run.id);
    }
  }
  const alive = new Set(
    live.flatMap(({ run }) => (staying.has(run.id) ? run.programs.map(({ about }) => keyOf(about)) : [])),
  );
  const gone = here.flatMap((run) =>
    run.programs.filter((program) => !alive.has(keyOf(program))).map((program) => ({ run, program })),
  );
  const start = gone.filter(({ run, program }) => against(run, program, policy) === null);
  for (const { run, program } of gone) {
    const reason = against(run, program, policy);
    if (reason !== null) problems.push({ path: nameOf(program), reason });
  }
  const foreign = table === null || table.environment === environment ? [] : table.runs;
  problems.push(
    ...foreign.flatMap(({ programs }) => programs.map((one) => ({ path: nameOf(one), reason: elsewhere }))),
  );
  return { end, later, problems, start: start.map(({ run, program }) => ({ run: run.id, program })) };
}

/** null where it is started again. */
function against({ waited }: RecordedRun, program: RecordedProgram, policy: ProgramPolicy): string | null {
  if (policy === "stop") return notKept;
  const reason = waited ? waitedFor : obstacle(program);
  return reason === null ? null : `not started again: ${reason}`;
}

/** Said at a capture. */
export function foretold(runs: readonly LiveRun[], policy: ProgramPolicy): Problem[] {
  return runs.flatMap(({ run }) =>
    run.programs.map(({ pid, about }) => {
      const reason = against({ id: run.id, waited: run.waiter !== null, programs: [] }, about, policy);
      return { path: nameOf({ ...about, pid }), reason: `its memory is not kept: a rewind ${future(reason, policy)}` };
    }),
  );
}

function future(reason: string | null, policy: ProgramPolicy): string {
  if (policy === "stop") return "ends it, and does not bring it back";
  if (reason !== null) return `does not bring it back (${reason})`;
  return policy === "restart" ? "starts it again" : "starts it again where it has ended, and lets it go on where not";
}

/** Starts them, in the order in which they were started first. Says of each what has become of it. */
export async function startAll(
  { start }: Fate,
  variables: (run: string) => Readonly<Record<string, string>>,
  started: (run: string, program: RecordedProgram, pid: number) => void,
): Promise<Problem[]> {
  const begun: { program: RecordedProgram; pid: number | undefined; end: Promise<string | null> }[] = [];
  for (const { run, program } of start) {
    const { pid, end } = launch(program, variables(run));
    if (pid !== undefined) started(run, program, pid);
    begun.push({ program, pid, end });
  }
  return Promise.all(
    begun.map(async ({ program, pid, end }) => ({
      path: nameOf({ ...program, pid: pid ?? program.pid }),
      reason: (await end) ?? relaunched,
    })),
  );
}
