// The suite: traces are judged, killed once under every policy, recovered and verified. Writes crash.md, crash.jsonl and traces.jsonl.
import { createHash } from "node:crypto";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describeMachine } from "../perf/machine.ts";
import type { Options } from "./options.ts";
import { type Judged, judge } from "./oracle.ts";
import { plainEnvironment } from "./place.ts";
import { killOf } from "./plan.ts";
import { unkilled } from "./policies.ts";
import { between, randomOf } from "./random.ts";
import { type Run, runTrace } from "./run.ts";
import { markdown } from "./table.ts";
import type { Trace } from "./traces/trace.ts";
import { doAll } from "./work.ts";

/** Changes with the trace: what was found out of an older one counts no more. */
const nameOf = (trace: Trace): string =>
  `${trace.id}/${createHash("sha256").update(JSON.stringify(trace)).digest("hex").slice(0, 8)}`;

/** All turns of the trace, or so many of them, chosen by its name. */
function someTurns(trace: Trace, count: number): (turn: number) => boolean {
  if (count >= trace.turns.length) return () => true;
  const random = randomOf("judged", trace.id);
  const acting = trace.turns.flatMap(({ looks }, turn) => (looks || turn === 0 ? [] : [turn]));
  const picked = new Set<number>();
  while (picked.size < Math.min(count, acting.length))
    picked.add(acting[between(random, 0, acting.length - 1)] as number);
  return (turn) => picked.has(turn);
}

/** Without where it was written to, which is nobody's business, and whether in one go. */
function commandOf(args: readonly string[]): string {
  const shown = args.filter(
    (one, index) => one !== "--resume" && !one.startsWith("--out") && args[index - 1] !== "--out",
  );
  return ["npm run bench:crash", ...(shown.length === 0 ? [] : ["--", ...shown])].join(" ");
}

export async function runSuite(options: Options, args: readonly string[]): Promise<void> {
  const { traces, policies, seeds, scale, jobs, out, turns, resume } = options;
  const machine = describeMachine(tmpdir());
  // Traces run with this, also where this process itself runs them.
  for (const name of Object.keys(process.env)) if (name !== "TMPDIR") delete process.env[name];
  Object.assign(process.env, plainEnvironment());
  mkdirSync(out, { recursive: true });
  const files = { judged: join(out, "traces.jsonl"), runs: join(out, "crash.jsonl") };
  if (!resume) for (const file of Object.values(files)) rmSync(file, { force: true });
  const judged = await doAll<Judged>(
    traces.map((trace) => ({
      name: `${nameOf(trace)}/${turns}`,
      about: `judged ${trace.id}`,
      run: () => judge(trace, { leaveOut: someTurns(trace, turns), ablate: someTurns(trace, turns) }),
    })),
    files.judged,
    jobs,
  );
  const faults = judged.flatMap(({ trace, faults }) => faults.map((fault) => `${trace} ${fault}`));
  for (const fault of faults) process.stderr.write(`${fault}\n`);
  if (faults.length > 0) process.exitCode = 1;
  if (options.validate) return;
  const runs = await doAll<Run>(
    seeds.flatMap((seed) =>
      traces.flatMap((trace) =>
        policies.map((policy) => ({
          name: `${nameOf(trace)}/${policy.name}/${seed}/${scale}`,
          about: `${trace.id} under ${policy.name}`,
          run: () => runTrace(trace, policy, seed, unkilled.includes(policy) ? null : killOf(trace, seed), scale),
        })),
      ),
    ),
    files.runs,
    jobs,
  );
  const date = new Date().toISOString().slice(0, 10);
  const text = markdown({
    command: commandOf(args),
    date,
    machine,
    traces,
    policies,
    judged,
    runs,
    scale,
    seeds,
    jobs,
  });
  writeFileSync(join(out, "crash.md"), text);
  process.stdout.write(text);
  if (runs.some(({ policy, pass }) => policy.startsWith("ours") && !pass)) process.exitCode = 1;
}
