// Turns of a sandbox whose command changes nothing that a later one can see: with all of the memory compared, and as shells are judged. Writes quiet.md.
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { openRewind, type Rewind } from "agentrewind";
import { count } from "../../arguments.ts";
import { quantile } from "../figures.ts";
import { describeMachine } from "../machine.ts";

const usage =
  "npm run bench:quiet -- [--turns 100] [--out FOLDER]\n\nNeeds root, and CRIU as `node scripts/sandbox-tools.mjs` finds or places it.\n";

const { values } = parseArgs({
  options: {
    turns: { type: "string", default: "100" },
    out: { type: "string", default: fileURLToPath(new URL("../../results", import.meta.url)) },
    help: { type: "boolean", default: false },
  },
});

const commands = [
  "ls -la /etc",
  "cat /etc/passwd",
  "grep -r root /etc/passwd",
  "false",
  "echo $PWD $STAGE",
  "find /usr/share -maxdepth 1",
  "for f in /etc/*.conf; do wc -l $f; done; unset f",
];

class Arm {
  readonly inspector: "auto" | "scan";
  readonly times: number[] = [];
  readonly states = new Set<string>();
  bytes = 0;
  readonly #base: string;
  readonly #rewind: Rewind;

  private constructor(inspector: "auto" | "scan", base: string, rewind: Rewind) {
    this.inspector = inspector;
    this.#base = base;
    this.#rewind = rewind;
  }

  static async open(inspector: "auto" | "scan"): Promise<Arm> {
    const base = mkdtempSync(join(realpathSync(tmpdir()), "agentrewind-bench-"));
    const workspace = join(base, "workspace");
    mkdirSync(workspace);
    const store = join(base, "store");
    const arm = new Arm(inspector, base, await openRewind({ workspace, store, environment: "sandbox", inspector }));
    await arm.#rewind.environment.exec("cd /tmp; export STAGE=1");
    await arm.#rewind.thread("bench").checkpoint();
    return arm;
  }

  async turn(command: string): Promise<void> {
    await this.#rewind.environment.exec(command);
    const begun = performance.now();
    const { environment, timings } = await this.#rewind.thread("bench").checkpoint();
    this.times.push(performance.now() - begun);
    this.states.add(`${environment.files} ${environment.processes}`);
    this.bytes += timings.bytes;
  }

  async close(): Promise<void> {
    await this.#rewind.close();
    rmSync(this.#base, { recursive: true, force: true });
  }
}

function markdown(arms: readonly Arm[], turns: number): string {
  const { cores, processor, kernel, node } = describeMachine(tmpdir());
  const rows = arms.map(({ inspector, times, states, bytes }) =>
    [`\`${inspector}\``, quantile(times, 0.5).toFixed(1), quantile(times, 0.95).toFixed(1), states.size, bytes].join(
      " | ",
    ),
  );
  return [
    "# Turns that change nothing a later command can see",
    "",
    `\`npm run bench:quiet -- --turns ${turns}\` on ${cores} cores (${processor}), Linux ${kernel}, Node ${node}. A turn: one of ${commands.length} commands in the sandbox's shell, then a checkpoint, in both sandboxes by turns. Milliseconds from call to captured; states that differ; bytes stored.`,
    "",
    "| inspector | p50 | p95 | states | bytes |",
    "|---|---|---|---|---|",
    ...rows.map((row) => `| ${row} |`),
    "",
  ].join("\n");
}

if (values.help) process.stdout.write(usage);
else {
  const turns = count("--turns", values.turns);
  const arms = [await Arm.open("scan"), await Arm.open("auto")];
  try {
    for (let turn = 0; turn < turns; turn++)
      for (const arm of arms) await arm.turn(commands[turn % commands.length] as string);
    const text = markdown(arms, turns);
    process.stdout.write(text);
    writeFileSync(join(values.out, "quiet.md"), text);
  } finally {
    for (const arm of arms) await arm.close();
  }
}
