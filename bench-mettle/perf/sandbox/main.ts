// What checkpoints and rewinds of a sandbox cost, beside CRIU's command with cp -a in the same run. Writes sandbox.json and sandbox.md.
import { existsSync, mkdtempSync, readdirSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { homedir, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { quantile } from "../figures.ts";
import { describeMachine } from "../machine.ts";
import { type Arm, agentrewindArm, commandsArm, type Shape } from "./arms.ts";

const here = fileURLToPath(new URL(".", import.meta.url));
const usage = `npm run bench:sandbox -- [--processes 0,1,10,50] [--megabytes 10,100] [--files 1000,10000] [--samples 12] [--out FOLDER]

Needs root, and CRIU as \`node scripts/sandbox-tools.mjs\` finds or places it.
`;

const { values } = parseArgs({
  options: {
    processes: { type: "string", default: "0,1,10,50" },
    megabytes: { type: "string", default: "10,100" },
    files: { type: "string", default: "1000,10000" },
    samples: { type: "string", default: "12" },
    out: { type: "string", default: join(here, "../../results") },
    help: { type: "boolean", default: false },
  },
});

const numbers = (text: string): number[] => text.split(",").map(Number);

/** The same program as the sandbox uses, with the libraries that it came with. */
function criuCommand(): string[] {
  const tools = join(homedir(), ".cache", "agentrewind", "tools");
  const name = existsSync(tools) ? readdirSync(tools).find((one) => one.startsWith("criu-")) : undefined;
  if (name === undefined) return ["criu"];
  const prefix = join(tools, name, "usr");
  const files = readdirSync(prefix, { recursive: true, encoding: "utf8" });
  const loader = files.find((one) => /\/ld-linux[^/]*\.so\.\d+$/.test(one));
  const libraries = new Set(files.filter((one) => one.includes(".so")).map((one) => join(prefix, one, "..")));
  const criu = join(prefix, "sbin", "criu");
  return loader === undefined ? [criu] : [join(prefix, loader), "--library-path", [...libraries].join(":"), criu];
}

interface Measured {
  readonly checkpoint: number[];
  readonly rewind: number[];
  readonly restore: number[];
}

async function timed(work: () => Promise<void>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

/** Arms take turns: what the machine does besides falls on both. */
async function measure(arms: readonly Arm[], changesFiles: boolean, samples: number): Promise<Map<string, Measured>> {
  const found = new Map<string, Measured>(arms.map(({ name }) => [name, { checkpoint: [], rewind: [], restore: [] }]));
  for (const arm of arms) await arm.checkpoint();
  for (let sample = 0; sample < samples + 2; sample++) {
    for (const arm of sample % 2 === 0 ? arms : [...arms].reverse()) {
      await arm.change(changesFiles);
      const checkpoint = await timed(() => arm.checkpoint());
      await arm.change(changesFiles);
      await arm.beforeRewind();
      const rewind = await timed(() => arm.rewind());
      const restore = arm.restore === undefined ? rewind : await timed(() => arm.restore?.() ?? Promise.resolve());
      // Behind the first ones, in which caches fill.
      if (sample < 2) continue;
      found.get(arm.name)?.checkpoint.push(checkpoint);
      found.get(arm.name)?.rewind.push(rewind);
      found.get(arm.name)?.restore.push(restore);
    }
  }
  return found;
}

interface Row extends Shape {
  readonly what: "files" | "processes" | "both";
  readonly operation: "checkpoint" | "rewind" | "restore";
  readonly arm: string;
  readonly n: number;
  readonly p50: number;
  readonly p95: number;
  /** p50 against the commands of the same run. */
  readonly ratio: number;
}

async function rowsOf(shape: Shape, samples: number): Promise<Row[]> {
  const base = mkdtempSync(join(realpathSync(tmpdir()), "agentrewind-bench-"));
  const folders = ["own", "commands"].map((name) => mkdtempSync(join(base, `${name}-`))) as [string, string];
  const arms = [await agentrewindArm(folders[0], shape), await commandsArm(folders[1], shape, criuCommand())];
  const rows: Row[] = [];
  try {
    for (const what of shape.processes === 0 ? (["files"] as const) : (["processes", "both"] as const)) {
      const found = await measure(arms, what !== "processes", samples);
      for (const operation of ["checkpoint", "rewind", "restore"] as const) {
        const base50 = quantile(found.get("criu + cp")?.[operation] ?? [], 0.5);
        for (const [arm, measured] of found) {
          const list = measured[operation];
          const p50 = quantile(list, 0.5);
          rows.push({
            ...shape,
            what,
            operation,
            arm,
            n: list.length,
            p50,
            p95: quantile(list, 0.95),
            ratio: p50 / base50,
          });
        }
      }
    }
  } finally {
    for (const arm of arms) await arm.end();
    rmSync(base, { recursive: true, force: true });
  }
  return rows;
}

const conditions = [
  "Arms take turns in one run. A sample is: a change, a checkpoint, a change, a rewind to the checkpoint before; the first two samples are left out.",
  "criu + cp: `criu dump --leave-running` and `cp -a`; SIGKILL (not measured: how soon its processes are waited for is the machine's matter), `rm -rf`, `cp -a` and `criu restore -d`. Its processes run in the host's namespaces: nothing keeps their numbers free, and nothing outside of the one folder is in its state.",
  "rewind: AgentRewind captures the state that is left first, so that the rewind can be undone, and it kills the tree; the commands do neither in the measured time. restore: the same without that capture.",
  "AgentRewind's process is open, as it is beside an agent; its tree has two processes more (the root and a shell), and its state is the whole file system.",
  "processes: no file changes between two checkpoints, so `cp -a` copies an unchanged folder, as its user would have to.",
];

const describe = (): string => {
  const { cores, processor, kernel, node } = describeMachine(tmpdir());
  return `${cores} cores (${processor}), Linux ${kernel}, Node ${node}`;
};

function markdown(rows: readonly Row[], command: string): string {
  const cell = (value: number): string => value.toFixed(value < 100 ? 1 : 0);
  return [
    "# Sandbox: checkpoints and rewinds beside CRIU's command and cp -a",
    "",
    `\`${command}\` on ${describe()}; load ${loadavg()[0]?.toFixed(1)} at the end. Milliseconds from call to ready; ratio of the p50.`,
    "",
    ...conditions.map((one) => `- ${one}`),
    "",
    "| processes | MB | files | what changed | operation | arm | p50 | p95 | n | ratio |",
    "|---|---|---|---|---|---|---|---|---|---|",
    ...rows.map(
      (row) =>
        `| ${row.processes} | ${row.processes === 0 ? 0 : row.megabytes} | ${row.files} | ${row.what} | ${row.operation} | ${row.arm} | ${cell(row.p50)} | ${cell(row.p95)} | ${row.n} | ${row.arm === "agentrewind" ? `${row.ratio.toFixed(2)}x` : ""} |`,
    ),
    "",
  ].join("\n");
}

if (values.help) process.stdout.write(usage);
else {
  const rows: Row[] = [];
  const { processes, megabytes, files, samples } = values;
  const command = `npm run bench:sandbox -- --processes ${processes} --megabytes ${megabytes} --files ${files} --samples ${samples}`;
  for (const files of numbers(values.files))
    for (const processes of numbers(values.processes))
      for (const megabytes of processes === 0 ? [0] : numbers(values.megabytes)) {
        const made = await rowsOf({ processes, megabytes, files }, Number(values.samples));
        rows.push(...made);
        // A run that is cut off has told what it has measured.
        writeFileSync(join(values.out, "sandbox.json"), `${JSON.stringify({ command, rows }, null, 1)}\n`);
        writeFileSync(join(values.out, "sandbox.md"), markdown(rows, command));
        for (const { what, operation, arm, p50, ratio } of made)
          process.stderr.write(
            `${processes} processes, ${megabytes} MB, ${files} files: ${what}: ${operation}: ${arm} ${p50.toFixed(1)} ms, ${ratio.toFixed(2)}x\n`,
          );
      }
}
