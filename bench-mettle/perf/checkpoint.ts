// How long a checkpoint and a rewind of a real tree take, beside what a user would pick instead. Arms are interleaved; ratios, not times, are the result.
import { execFileSync } from "node:child_process";
import { appendFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { cpus, loadavg, tmpdir, totalmem } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { openRewind } from "agentrewind";

const { values } = parseArgs({
  options: { rounds: { type: "string", default: "5" }, out: { type: "string" }, tree: { type: "string" } },
});
const rounds = Number(values.rounds);
const root = fileURLToPath(new URL("../..", import.meta.url));
const source = values.tree ?? join(root, "node_modules");

const samples: Record<string, number[]> = {};

async function time(arm: string, work: () => unknown): Promise<void> {
  const start = performance.now();
  await work();
  const took = performance.now() - start;
  samples[arm] = [...(samples[arm] ?? []), took];
}

const git = (folder: string, ...args: string[]): string =>
  execFileSync("git", [`--git-dir=${folder}.git`, `--work-tree=${folder}`, "-c", "core.autocrlf=false", ...args], {
    encoding: "utf8",
    maxBuffer: 1 << 28,
    stdio: ["ignore", "pipe", "ignore"],
  });

/** Reads everything once, so that no arm pays for a cold page cache. */
function warm(folder: string): { entries: number; bytes: number } {
  let entries = 0;
  let bytes = 0;
  for (const entry of readdirSync(folder, { withFileTypes: true, recursive: true })) {
    entries++;
    if (entry.isFile()) bytes += readFileSync(join(entry.parentPath, entry.name)).length;
  }
  return { entries, bytes };
}

async function round(base: string, index: number): Promise<{ entries: number; bytes: number }> {
  const work = join(base, `work-${index}`);
  execFileSync("cp", ["-a", source, work]);
  const size = warm(work);
  const edited = join(work, "edited.txt");
  writeFileSync(edited, "0\n");
  // A change in the same clock tick as the reading would be read again, by git as by us.
  await new Promise((resolve) => setTimeout(resolve, 1_100));

  await time("cp -a", () => execFileSync("cp", ["-a", work, join(base, `copy-${index}`)]));
  execFileSync("git", ["init", "-q", "--bare", `${work}.git`]);
  await time("shadow git, first", () => {
    git(work, "add", "-A", "-f", ".");
    git(work, "write-tree");
  });
  const rewind = await openRewind({ workspace: work, store: join(base, `store-${index}`) });
  const thread = rewind.thread("bench");
  await time("agentrewind, first", () => thread.checkpoint());

  for (let step = 0; step < 3; step++) {
    await time("shadow git, unchanged", () => {
      git(work, "add", "-A", "-f", ".");
      git(work, "write-tree");
    });
    await time("agentrewind, unchanged", () => thread.checkpoint());
    appendFileSync(edited, `${step}\n`);
    let tree = "";
    await time("shadow git, 1 file", () => {
      git(work, "add", "-A", "-f", ".");
      tree = git(work, "write-tree").trim();
    });
    let made = "";
    await time("agentrewind, 1 file", async () => {
      made = (await thread.checkpoint()).id;
    });
    appendFileSync(edited, "wrong\n");
    await time("shadow git, rewind 1 file", () => {
      git(work, "read-tree", "-u", "--reset", tree);
      git(work, "clean", "-fdxq");
    });
    appendFileSync(edited, "wrong\n");
    await time("agentrewind, rewind 1 file", () => thread.rewind({ to: made }));
  }
  await rewind.close();
  for (const name of [work, `${work}.git`, join(base, `copy-${index}`), join(base, `store-${index}`)]) {
    rmSync(name, { recursive: true, force: true });
  }
  return size;
}

const base = mkdtempSync(join(tmpdir(), "arw-bench-"));
let size = { entries: 0, bytes: 0 };
try {
  for (let index = 0; index < rounds; index++) size = await round(base, index);
} finally {
  rmSync(base, { recursive: true, force: true });
}

const quantile = (list: readonly number[], q: number): number => {
  const sorted = [...list].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(q * sorted.length) - 1)] as number;
};
const baselines: Record<string, string> = {
  "agentrewind, first": "cp -a",
  "shadow git, first": "cp -a",
  "agentrewind, unchanged": "shadow git, unchanged",
  "agentrewind, 1 file": "shadow git, 1 file",
  "agentrewind, rewind 1 file": "shadow git, rewind 1 file",
};
const rows = Object.entries(samples).map(([arm, list]) => {
  const against = baselines[arm];
  const p50 = quantile(list, 0.5);
  return {
    arm,
    n: list.length,
    p50: Number(p50.toFixed(1)),
    p95: Number(quantile(list, 0.95).toFixed(1)),
    ratio: against === undefined ? null : Number((p50 / quantile(samples[against] as number[], 0.5)).toFixed(2)),
    against: against ?? null,
  };
});

console.log(`${size.entries} entries, ${(size.bytes / 1e6).toFixed(0)} MB, ${rounds} rounds\n`);
console.log("| arm | p50 ms | p95 ms | n | p50 against |");
console.log("|---|---:|---:|---:|---|");
for (const row of rows) {
  console.log(
    `| ${row.arm} | ${row.p50} | ${row.p95} | ${row.n} | ${row.ratio === null ? "" : `${row.ratio}x ${row.against}`} |`,
  );
}
console.log(`\npeak RSS of this process: ${(process.resourceUsage().maxRSS / 1024).toFixed(0)} MB`);

if (values.out !== undefined) {
  mkdirSync(join(values.out, ".."), { recursive: true });
  const machine = {
    cpus: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    node: process.version,
    load: loadavg()[0],
  };
  const command = "npm run bench:perf";
  writeFileSync(
    values.out,
    `${JSON.stringify({ command, date: new Date().toISOString().slice(0, 10), machine, size, rows }, null, 2)}\n`,
  );
}
