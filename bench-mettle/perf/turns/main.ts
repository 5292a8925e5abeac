// What a turn of a long conversation costs: with AgentRewind, and what LangGraph's own savers take for the same messages. Writes turns.json and turns.md.
import { execFileSync } from "node:child_process";
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { quantile } from "../figures.ts";
import { describeMachine } from "../machine.ts";

const here = fileURLToPath(new URL(".", import.meta.url));
const usage = `npm run bench:turns -- [--rounds 3] [--lengths 10,100,1000,10000] [--turns 40] [--long 100000] [--out FOLDER]

--long makes a thread of so many turns, one after the other, and opens it again; 0 leaves that out.
`;
const arms = ["agentrewind", "memory", "sqlite", "agent", "agent+agentrewind", "json", "openai", "openai+agentrewind"];
const warmUp = 10;

type Samples = Record<string, number[]>;
interface Figure {
  readonly p50: number;
  readonly p95: number;
  readonly n: number;
}

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "3" },
    lengths: { type: "string", default: "10,100,1000,10000" },
    turns: { type: "string", default: "40" },
    long: { type: "string", default: "100000" },
    out: { type: "string", default: join(here, "../../results") },
    help: { type: "boolean", default: false },
  },
});

const figure = (list: readonly number[]): Figure => ({
  p50: Number(quantile(list, 0.5).toPrecision(4)),
  p95: Number(quantile(list, 0.95).toPrecision(4)),
  n: list.length,
});

function measure(arm: string, length: number, turns: number, folder: string): Samples {
  const script = join(here, "arms.mjs");
  const args = ["--max-old-space-size=8192", script, arm, `${length}`, `${turns}`, folder];
  return JSON.parse(execFileSync(process.execPath, args, { encoding: "utf8", maxBuffer: 1 << 28 })) as Samples;
}

function inFolder<T>(work: (folder: string) => T): T {
  const folder = mkdtempSync(join(realpathSync(tmpdir()), "agentrewind-turns-"));
  try {
    return work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Behind the first turns, in which the engine learns. */
const figures = (samples: Samples, skip: number): Record<string, Figure> =>
  Object.fromEntries(Object.entries(samples).map(([name, list]) => [name, figure(list.slice(skip))]));

function compare(lengths: readonly number[], rounds: number, turns: number) {
  const all = new Map<string, Samples>();
  for (let round = 0; round < rounds; round++) {
    for (const length of lengths) {
      for (let at = 0; at < arms.length; at++) {
        const arm = arms[(at + round) % arms.length] as string;
        const key = `${arm}/${length}`;
        const samples = inFolder((folder) => measure(arm, length, turns, folder));
        const known = all.get(key) ?? {};
        for (const [name, list] of Object.entries(samples))
          known[name] = [...(known[name] ?? []), ...list.slice(warmUp)];
        all.set(key, known);
      }
      console.error(`round ${round + 1}: ${length} messages`);
    }
  }
  return lengths.map((length) => ({
    length,
    arms: Object.fromEntries(arms.map((arm) => [arm, figures(all.get(`${arm}/${length}`) as Samples, 0)])),
  }));
}

function long(turns: number) {
  return inFolder((folder) => {
    const grown = measure("grow", 0, turns, folder);
    const part = (from: number): Record<string, Figure> =>
      figures(
        Object.fromEntries(Object.entries(grown).map(([name, list]) => [name, list.slice(from, from + 1_000)])),
        0,
      );
    console.error(`a thread of ${turns} turns is made`);
    const reopened = measure("reopen", turns, 9, folder);
    return { turns, first: part(1_000), last: part(turns - 1_000), reopened: figures(reopened, 0) };
  });
}

const of = (arm: Record<string, Figure> | undefined, name = "turns"): string => {
  const { p50, p95 } = arm?.[name] ?? { p50: Number.NaN, p95: Number.NaN };
  return `${p50.toFixed(1)} / ${p95.toFixed(1)}`;
};
const bytes = (arm: Record<string, Figure> | undefined): string => (arm?.bytes?.p50 ?? 0).toLocaleString("en");
const less = (a: Record<string, Figure> | undefined, b: Record<string, Figure> | undefined, name: string): string =>
  ((a?.[name]?.p50 ?? 0) - (b?.[name]?.p50 ?? 0)).toFixed(1);

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map(() => "---:")), ...rows.map(line)].join("\n");
}

if (values.help) process.stdout.write(usage);
else {
  const lengths = values.lengths.split(",").map(Number);
  const [rounds, turns, longTurns] = [Number(values.rounds), Number(values.turns), Number(values.long)];
  const given = process.argv.slice(2).filter((one, at, list) => !one.startsWith("--out") && list[at - 1] !== "--out");
  const command = ["npm run bench:turns", ...(given.length === 0 ? [] : ["--", ...given])].join(" ");
  const machine = describeMachine(tmpdir());
  const compared = compare(lengths, rounds, turns);
  const grown = longTurns > 0 ? long(longTurns) : null;
  const result = {
    command,
    date: new Date().toISOString().slice(0, 10),
    machine,
    rounds,
    turns,
    compared,
    long: grown,
  };
  writeFileSync(join(values.out, "turns.json"), `${JSON.stringify(result, null, 2)}\n`);
  const rowsOf = (cells: (arms: Record<string, Record<string, Figure>>) => string[]) =>
    compared.map((one) => [one.length.toLocaleString("en"), ...cells(one.arms)]);
  const text = `# A turn of a long conversation, ${result.date}

\`${command}\`

${machine.cores} cores (${machine.processor}), ${machine.memoryGiB} GiB, Linux ${machine.kernel}, ${machine.fileSystem}, Node ${machine.node}${machine.root ? ", as root" : ""}, load ${machine.loadBefore.toFixed(1)} before it began. Messages of about 220 bytes, an empty
workspace; ${rounds} round${rounds === 1 ? "" : "s"}, arms in turn, each in a process of its own; ${turns - warmUp} turns a round behind ${warmUp} to warm up. Milliseconds at p50 / p95. Raw: turns.json.

## LangChain's messages, in memory

AgentRewind: \`beginTurn\` and \`gate\`, with the look at the files; "before the model" is what the agent waits for, the rest runs beside the model call. The savers: \`put\` of a checkpoint with the same messages.

${table(
  [
    "messages",
    "AgentRewind",
    "before the model",
    "MemorySaver.put",
    "SqliteSaver.put",
    "AgentRewind, bytes a turn",
    "MemorySaver, bytes",
    "SqliteSaver, bytes",
  ],
  rowsOf(({ agentrewind, memory, sqlite }) => [
    of(agentrewind),
    of(agentrewind, "begun"),
    of(memory),
    of(sqlite),
    bytes(agentrewind),
    bytes(memory),
    bytes(sqlite),
  ]),
)}

## Whole agents

From one request to the model to the next, with a model that takes 30 ms and a tool that does nothing; what AgentRewind adds is the look at the files before and behind the tool, and what of the checkpoint the model's 30 ms do not hide.

${table(
  [
    "messages",
    "createAgent",
    "with rewindMiddleware",
    "adds, p50",
    "OpenAI loop",
    "with withRewind",
    "adds, p50",
    "adds of the processor, p50",
    "one JSON.parse and stringify of the body",
  ],
  rowsOf((one) => [
    of(one.agent),
    of(one["agent+agentrewind"]),
    less(one["agent+agentrewind"], one.agent, "turns"),
    of(one.openai),
    of(one["openai+agentrewind"]),
    less(one["openai+agentrewind"], one.openai, "turns"),
    less(one["openai+agentrewind"], one.openai, "cpu"),
    of(one.json),
  ]),
)}
${
  grown === null
    ? ""
    : `
## A thread of ${grown.turns.toLocaleString("en")} turns

A turn, between the 1,000th and the 2,000th: ${of(grown.first)} ms, ${bytes(grown.first)} bytes; the last thousand: ${of(grown.last)} ms, ${bytes(grown.last)} bytes. Opened in a new process: ${of(grown.reopened, "opened")} ms until its head is known,
${of(grown.reopened)} ms until the next turn's checkpoint is made, whose ${grown.turns.toLocaleString("en")} messages are other objects than before and are all compared.
`
}`;
  writeFileSync(join(values.out, "turns.md"), text);
  process.stdout.write(text);
}
