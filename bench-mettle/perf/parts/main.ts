// What the parts of a turn without a change take: deciding that, storing its row, asking the kernel's counters; and what those cost who is counted. Writes parts.md.
import { writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { count } from "../../arguments.ts";
import { quantile } from "../figures.ts";
import { describeMachine } from "../machine.ts";
import { counted } from "./counted.ts";
import { decisions } from "./decisions.ts";
import { questions } from "./questions.ts";

const usage =
  "npm run bench:parts -- [--turns 1000] [--rounds 15] [--out FOLDER]\n\nNeeds root, eBPF, and CRIU as `node scripts/sandbox-tools.mjs` finds or places it.\n";

const { values } = parseArgs({
  options: {
    turns: { type: "string", default: "1000" },
    rounds: { type: "string", default: "15" },
    out: { type: "string", default: fileURLToPath(new URL("../../results", import.meta.url)) },
    help: { type: "boolean", default: false },
  },
});

const times = (name: string, list: readonly number[], goal: string): string =>
  `| ${name} | ${(quantile(list, 0.5) * 1000).toFixed(0)} | ${(quantile(list, 0.95) * 1000).toFixed(0)} | ${goal} |`;

if (values.help) process.stdout.write(usage);
else {
  const turns = count("--turns", values.turns);
  const rounds = count("--rounds", values.rounds);
  const { decided, stored } = await decisions(turns);
  const { asked, spared } = await questions(turns);
  const works = await counted(rounds);
  const { cores, processor, kernel, node } = describeMachine(tmpdir());
  const text = [
    "# The parts of a turn in which nothing happened",
    "",
    `\`npm run bench:parts -- --turns ${turns} --rounds ${rounds}\` on ${cores} cores (${processor}), Linux ${kernel}, Node ${node}. Microseconds.`,
    "",
    "| part | p50 | p95 | goal (p50) |",
    "|---|---|---|---|",
    times("from `beginTurn` to the decision that nothing is captured", decided, "20"),
    times("from `beginTurn` until the row of its checkpoint is committed", stored, "150"),
    times("a sandbox with an idle server answers whether anything happened (eBPF)", asked, "200"),
    times("a whole turn of that sandbox, from `beginTurn` to its gate", spared, "-"),
    "",
    'What being counted costs: the same work in a sandbox with `inspector: "ebpf"`, and in one without, while the programs are not in the kernel, by turns.',
    "",
    "| work | without, ms p50 | with, ms p50 | ratio |",
    "|---|---|---|---|",
    ...works.map(({ name, without, counting }) => {
      const [off, on] = [quantile(without, 0.5), quantile(counting, 0.5)];
      return `| ${name} | ${off.toFixed(0)} | ${on.toFixed(0)} | ${(on / off).toFixed(3)} |`;
    }),
    "",
  ].join("\n");
  process.stdout.write(text);
  writeFileSync(join(values.out, "parts.md"), text);
}
