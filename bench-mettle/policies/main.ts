// Each policy on the recorded run: what it captures, what that costs, and how much work can be lost. Prints a table in Markdown, with --json a list.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { type OpenOptions, openRewind } from "agentrewind";
import { replay } from "./replay.ts";
import { prepare, trace } from "./trace.ts";

export const policies: readonly (readonly [string, NonNullable<OpenOptions["capture"]>])[] = [
  ['"every"', "every"],
  ['"effects"', "effects"],
  ['{ before: ["delete", "overwrite", "git"] }', { before: ["delete", "overwrite", "git"] }],
  ['{ before: ["delete", "git"] }', { before: ["delete", "git"] }],
  ['{ after: ["write", "overwrite"] }', { after: ["write", "overwrite"] }],
  ["({ turn }) => turn % 10 === 1", ({ turn, moment }) => moment === "begin" && turn % 10 === 1],
  ['"explicit"', "explicit"],
];

interface Row {
  readonly policy: string;
  readonly turns: number;
  readonly captured: number;
  readonly unchanged: number;
  readonly notCaptured: number;
  readonly bytes: number;
  readonly exposedMs: number;
  readonly worstLoss: number;
}

async function measure(policy: string, capture: NonNullable<OpenOptions["capture"]>, latencyMs: number): Promise<Row> {
  const base = mkdtempSync(join(tmpdir(), "agentrewind-policies-"));
  try {
    const [workspace, store] = [join(base, "workspace"), join(base, "store")];
    mkdirSync(workspace);
    prepare(workspace);
    const rewind = await openRewind({ workspace, store, capture });
    await replay(rewind, { latencyMs });
    await rewind.close();
    const command = resolve(import.meta.dirname, "../../dist/src/cli/main.js");
    const told = execFileSync(
      process.execPath,
      [command, "--workspace", workspace, "--store", store, "--thread", "trace", "--json", "stats"],
      { encoding: "utf8" },
    );
    return { policy, ...(JSON.parse(told) as { captures: Omit<Row, "policy"> }).captures };
  } finally {
    rmSync(base, { recursive: true, force: true });
  }
}

const { values } = parseArgs({
  options: { json: { type: "boolean", default: false }, latency: { type: "string", default: "50" } },
});
const rows: Row[] = [];
for (const [name, capture] of policies) rows.push(await measure(name, capture, Number(values.latency)));
if (values.json) console.log(JSON.stringify(rows));
else {
  console.log(`${trace.length} turns of a recorded run, a model that takes ${values.latency} ms\n`);
  console.log(
    "| `capture` | captured | as the one before | not captured | KiB | ms waited | worst work lost (turns) |",
  );
  console.log("|---|---|---|---|---|---|---|");
  for (const { policy, captured, unchanged, notCaptured, bytes, exposedMs, worstLoss } of rows) {
    const cells = [captured, unchanged, notCaptured, (bytes / 1024).toFixed(0), exposedMs.toFixed(0), worstLoss];
    console.log(`| \`${policy}\` | ${cells.join(" | ")} |`);
  }
}
