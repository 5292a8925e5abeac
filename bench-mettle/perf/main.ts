// The benchmark's command: how long checkpoints and rewinds take, and what they store, beside what a user would pick instead.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, writeFileSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { agentrewindArm, killAgents } from "./arm-agentrewind.ts";
import { copyArm } from "./arm-copy.ts";
import { shadowGitArm, stashArm } from "./arm-git.ts";
import { resticArm } from "./arm-restic.ts";
import { rsyncArm } from "./arm-rsync.ts";
import { buildIfStale } from "./build.ts";
import { type SubjectResult, subjectResult } from "./figures.ts";
import { describeMachine, versionOf } from "./machine.ts";
import { type Options, parseOptions, usage } from "./options.ts";
import { svg } from "./plot.ts";
import { makeResult } from "./result.ts";
import { runSubject } from "./rounds.ts";
import { makeSubject } from "./subjects.ts";
import { markdown } from "./table.ts";
import { fetchTools, findTool } from "./tools.ts";

function chooseArms({ arms: names, modelMs }: Options) {
  const [rsync, restic] = [findTool("rsync"), findTool("restic")];
  const own = [agentrewindArm(modelMs, "auto"), agentrewindArm(modelMs, "scan")];
  const all = [...own, copyArm, shadowGitArm, stashArm, rsyncArm(rsync), resticArm(restic)];
  const unknown = names?.find((name) => all.every((arm) => arm.name !== name));
  if (unknown !== undefined)
    throw new Error(`--arms ${unknown}: no such arm; there are ${all.map(({ name }) => name).join(", ")}.`);
  const versions = {
    git: versionOf("git"),
    cp: versionOf("cp"),
    ...(typeof rsync === "string" ? {} : { rsync: versionOf(...rsync) }),
    ...(typeof restic === "string" ? {} : { restic: versionOf(...restic) }),
  };
  return { arms: names === undefined ? all : all.filter(({ name }) => names.includes(name)), versions };
}

function conditions({ settleMs, modelMs, repeats }: Options): string[] {
  return [
    "Arms take turns within each operation and start at another one in each round; each has a copy of the tree of its own, fresh in each round.",
    "Warm page cache for all: every tree is read once before each operation.",
    `${settleMs} ms pass between a change and its measurement, so that no arm must read a file again because it changed in the clock tick of the last reading.`,
    "`sync` runs between two arms, outside of the measured time: what one left to write does not fall into another's.",
    `Up to ${repeats} samples of each operation in a round; one where the first took more than 2 s, and of the first checkpoint and the rewind after rm -rf *.`,
    "Commands are measured from start to exit, as a user waits for them. AgentRewind runs in a process that is already open, as it does beside an agent: neither its start nor opening the store is in the times.",
    `A turn's model call takes ${modelMs} ms; exposed is what the agent waits besides.`,
    "Durability differs: cp, rsync and git leave their files to the kernel; restic and AgentRewind's durable sync them.",
    "A block of the event loop is the longest time between two ticks of a 1 ms timer, less that 1 ms; a busy machine makes it longer, see the row where nothing of ours runs. Its own block is less what the kernel counted as waiting for a core (schedstat). Collection is V8's longest single pause for garbage, which is part of a block.",
    "Storage is what `du` counts; hard links count once.",
  ];
}

/** Without where it was written to, which is nobody's business. */
function commandOf(args: readonly string[]): string {
  const shown = args.filter((one, index) => !one.startsWith("--out") && args[index - 1] !== "--out");
  return ["npm run bench:perf", ...(shown.length === 0 ? [] : ["--", ...shown])].join(" ");
}

async function main(args: readonly string[]): Promise<void> {
  const options = parseOptions(args);
  if (options === "help") {
    process.stdout.write(usage);
    return;
  }
  if (options.fetchTools) fetchTools();
  const { arms, versions } = chooseArms(options);
  buildIfStale();
  const base = mkdtempSync(join(realpathSync(tmpdir()), "agentrewind-bench-"));
  const machine = describeMachine(base);
  let subjects: readonly SubjectResult[] = [];
  const tell = (line: string): void => console.error(line);
  const stop = (): void => {
    killAgents();
    execFileSync("rm", ["-rf", base]);
    process.exit(130);
  };
  process.once("SIGINT", stop).once("SIGTERM", stop);
  /** After each round: a long run that is given up has not been for nothing. */
  const write = (done: readonly SubjectResult[]): string => {
    const result = makeResult({
      command: commandOf(args),
      date: new Date().toISOString().slice(0, 10),
      machine: { ...machine, loadAfter: loadavg()[0] as number },
      versions,
      rounds: options.rounds,
      quick: options.quick,
      conditions: conditions(options),
      arms,
      subjects: done,
    });
    mkdirSync(options.out, { recursive: true });
    const text = markdown(result);
    writeFileSync(join(options.out, "perf.json"), `${JSON.stringify(result, null, 2)}\n`);
    writeFileSync(join(options.out, "perf.md"), text);
    writeFileSync(join(options.out, "perf.svg"), svg(result));
    return text;
  };
  let text = "";
  try {
    const present = arms.filter(({ missing }) => missing === undefined);
    for (const size of options.sizes) {
      const folder = join(base, "source");
      const subject = makeSubject(size, folder);
      const before = [...subjects];
      await runSubject(subject, present, options, base, tell, (measured) => {
        subjects = [...before, subjectResult(subject, measured)];
        text = write(subjects);
      });
      execFileSync("rm", ["-rf", folder]);
    }
  } finally {
    execFileSync("rm", ["-rf", base]);
  }
  process.stdout.write(text);
  tell(`\nwritten to ${options.out}: perf.json, perf.md, perf.svg`);
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  console.error((error as Error).message);
  process.exitCode = 1;
}
