// The bench: every cell under every arm. Writes density.jsonl, a line for each block and each task as it ends, and density.md.
import { appendFileSync, mkdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { plainEnvironment } from "../crash/place.ts";
import { describeMachine } from "../perf/machine.ts";
import { type Block, blocksOf, bounded, cellsOf, perPercent } from "./cells.ts";
import { differences } from "./compare.ts";
import { cleanOnSignals } from "./ground.ts";
import { blockLine, taskLine } from "./lines.ts";
import { readProcessors, usedBetween } from "./meters.ts";
import type { Options } from "./options.ts";
import { markdown } from "./table.ts";

/** For so long it is watched what others use. */
const quietMs = 1_000;
const mostBusy = 0.1;

/** Without where it was written to, which is nobody's business. */
function commandOf(args: readonly string[]): string {
  const shown = args.filter((one, index) => !one.startsWith("--out") && args[index - 1] !== "--out");
  return ["npm run bench:density", ...(shown.length === 0 ? [] : ["--", ...shown])].join(" ");
}

export async function runDensity(options: Options, args: readonly string[]): Promise<void> {
  const machine = describeMachine(tmpdir());
  // Agents run with this, also where this process itself runs a command for them.
  for (const name of Object.keys(process.env)) if (name !== "TMPDIR") delete process.env[name];
  Object.assign(process.env, plainEnvironment());
  cleanOnSignals();
  mkdirSync(options.out, { recursive: true });
  const file = join(options.out, "density.jsonl");
  const before = readProcessors();
  await sleep(quietMs);
  const busyBefore = usedBetween(before, readProcessors());
  if (busyBefore > mostBusy)
    process.stderr.write(
      `Others use ${(100 * busyBefore).toFixed(0)} % of the processors: the numbers of sandboxes and the figures are not those of a quiet machine.\n`,
    );
  const about = {
    command: commandOf(args),
    date: new Date().toISOString().slice(0, 10),
    machine,
    busyBefore,
    seed: options.seed,
  };
  writeFileSync(file, `${JSON.stringify({ type: "run", ...about })}\n`);
  const start = performance.now();
  const tell = (text: string): void =>
    void process.stderr.write(`${((performance.now() - start) / 60_000).toFixed(1)} min: ${text}\n`);

  const blocks: Block[] = [];
  const rates = new Map<number, number>();
  for (const cell of cellsOf(options)) {
    let { sandboxes } = cell;
    if (sandboxes === null) {
      const rate = rates.get(cell.medianMs) ?? (await perPercent(options, cell, tell));
      rates.set(cell.medianMs, rate);
      sandboxes = bounded((cell.load as number) * rate);
    }
    for await (const block of blocksOf(options, cell, sandboxes, tell)) {
      blocks.push(block);
      const lines = [blockLine(block), ...block.tasks.map((task) => taskLine(block, task))];
      appendFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
    }
  }
  const faults = [
    ...blocks.flatMap(({ cell, arm, round, died }) => died.map((one) => `${cell}, ${arm}, round ${round + 1}: ${one}`)),
    ...differences(blocks),
  ];
  for (const fault of faults) process.stderr.write(`${fault}\n`);
  const text = markdown({ ...about, options, blocks, faults });
  writeFileSync(join(options.out, "density.md"), text);
  process.stdout.write(text);
  if (faults.length > 0) process.exitCode = 1;
}
