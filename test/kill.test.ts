// SIGKILL at random moments: of a session, of a command beside it, of opening and recovery. AGENTREWIND_KILLS says how often, AGENTREWIND_SEED how.
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { describe, expect, test } from "vitest";
import { digestTree } from "./helpers/digest.ts";
import { commandFile } from "./helpers/library.ts";
import { type Step, warmSteps } from "./helpers/steps.ts";
import { endSession, makePlace, type Place, useRewind } from "./helpers/workspace.ts";
import { makeRandom } from "./power/log.ts";

const kills = Number(process.env.AGENTREWIND_KILLS ?? 100);
const seed = Number(process.env.AGENTREWIND_SEED ?? 20_240_607);
/** One store takes so many: a check after each kill reads all of it. */
const killsPerStore = 50;

const states = [
  "mkdir -p d/sub gone; echo 1 > a; echo 1 > b; echo 1 > d/f; ln -s a l; ln a d/hard; echo 1 > gone/x; mkfifo p; seq 60000 > big",
  "echo 2 > a; rm b; mkdir b; echo 2 > b/in; rm -r gone; ln -sf b l; echo 2 > new; chmod 700 d",
  "echo 3 > d/f; rm -r b; rm p; mkdir -p deep/er; echo 3 > deep/er/x; echo 3 >> big; ln new new2; touch d/sub",
];

const random = makeRandom(seed);
const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const ended = (child: ChildProcess): Promise<NodeJS.Signals | null> =>
  child.exitCode !== null || child.signalCode !== null
    ? Promise.resolve(child.signalCode)
    : new Promise((resolve) => child.once("exit", (_code, signal) => resolve(signal)));

/** What a session does until it is killed. A new operation is one line. */
const operations: readonly ((round: number, nth: number) => Step)[] = [
  () => ({ op: "rewind", to: `c${random(states.length)}`, lesson: "learned" }),
  (round, nth) => ({ op: "turn", context: { messages: [`turn ${round}`, `${nth}`] } }),
  (_round, nth) => ({ op: "turn", context: { messages: ["durable", `${nth}`] }, durable: true }),
  () => ({ op: "undo" }),
  (_round, nth) => ({ op: "effect", n: nth % 5 }),
  () => ({ op: "prune", keepLast: 3 }),
];
const commands = [
  ["checkpoint"],
  ["rewind", "c0"],
  ["rewind", "c1"],
  ["undo"],
  ["verify"],
  ["prune", "--keep-last", "2"],
  ["gc"],
] as const;

const stepsOf = (round: number): Step[] => [
  { op: "open" },
  ...Array.from({ length: 40 }, (_, nth) =>
    (operations[random(operations.length)] as (typeof operations)[number])(round, nth),
  ),
];

function command(place: Place, words: readonly string[], stderr: "ignore" | "pipe" = "ignore"): ChildProcess {
  return spawn(
    process.execPath,
    [commandFile, "--workspace", place.workspace, "--store", place.store, "--thread", "t", "--json", ...words],
    {
      stdio: ["ignore", "ignore", stderr],
    },
  );
}

async function makeScene(): Promise<{ place: Place; trees: Map<string, string[]> }> {
  const place = makePlace();
  const trees = new Map<string, string[]>();
  const setup = await useRewind(place);
  for (const state of states) {
    execFileSync("sh", ["-c", state], { cwd: place.workspace });
    // Labelled: what is rewound to is not pruned.
    const { environment } = await setup.thread("t").checkpoint({ context: { messages: [state] }, label: "kept" });
    trees.set(environment.files as string, digestTree(place.workspace));
  }
  await endSession(setup);
  return { place, trees };
}

/** Runs a command to its end; its error's code. */
async function finished(child: ChildProcess): Promise<string | undefined> {
  let errors = "";
  child.stderr?.on("data", (data: Buffer) => {
    errors += data;
  });
  await new Promise((resolve) => child.once("close", resolve));
  return child.exitCode === 0 ? undefined : (JSON.parse(errors) as { error: { code: string } }).error.code;
}

describe("F-26: two commands at once beside a session", () => {
  const pairs = [
    [["checkpoint"], ["checkpoint"]],
    [
      ["rewind", "c0"],
      ["rewind", "c1"],
    ],
    [["rewind", "c0"], ["checkpoint"]],
    [["undo"], ["rewind", "c1"]],
  ] as const;
  for (const [one, other] of pairs) {
    for (const killed of [false, true]) {
      test(`${one.join(" ")} and ${other.join(" ")}${killed ? ", the session is killed in the middle" : ""}`, async () => {
        const { place, trees } = await makeScene();
        const { child, begin } = warmSteps(place);
        try {
          let output = "";
          const holding = new Promise<void>((resolve) =>
            child.stdout?.on("data", (data: Buffer) => {
              output += data;
              if (output.includes("holding")) resolve();
            }),
          );
          begin([{ op: "open" }, { op: "rewind", to: "c1" }, { op: "hold" }]);
          await holding;
          const both = Promise.all([one, other].map((words) => finished(command(place, words, "pipe"))));
          if (killed) {
            await wait(200 + random(500));
            child.kill("SIGKILL");
          }
          const codes = await both;
          const fine = killed ? [undefined, "CONTROL_FAILED", "ENVIRONMENT_BUSY"] : [undefined];
          for (const code of codes) expect(fine, `AGENTREWIND_SEED=${seed}: ${codes}`).toContain(code);
        } finally {
          child.kill("SIGKILL");
          await ended(child);
        }
        const rewind = await useRewind(place);
        const head = rewind
          .thread("t")
          .checkpoints({ all: true })
          .find((checkpoint) => checkpoint.head);
        expect(digestTree(place.workspace)).toEqual(trees.get(head?.environment.files as string));
        await endSession(rewind);
      });
    }
  }
});

describe("F-16, F-22, F-24, F-26: killed at random moments", () => {
  test(`${kills} times`, { timeout: kills * 20_000 + 60_000 }, async () => {
    let killed = 0;
    let warm: ReturnType<typeof warmSteps> | undefined;
    try {
      for (let round = 0; round < kills; ) {
        const { place, trees } = await makeScene();
        let highest = states.length - 1;
        warm = warmSteps(place);
        for (let last = Math.min(kills, round + killsPerStore); round < last; round++) {
          const { child, begin } = warm;
          warm = warmSteps(place);
          const first = new Promise((resolve) => child.stdout?.once("data", resolve));
          child.stdout?.resume();
          begin(stepsOf(round));
          // From the first sign of life on, or from the start, so that opening and recovery are hit as well.
          if (round % 3 !== 0) await first;
          const beside =
            round % 5 === 0 ? command(place, commands[random(commands.length)] as readonly string[]) : undefined;
          await wait(random(round % 3 === 0 ? 120 : beside === undefined ? 150 : 500));
          if (beside !== undefined && random(2) === 0) beside.kill("SIGKILL");
          child.kill("SIGKILL");
          if ((await ended(child)) === "SIGKILL") killed++;
          if (beside !== undefined) await ended(beside);

          const rewind = await useRewind(place);
          const all = rewind.thread("t").checkpoints({ all: true });
          const head = all.find((one) => one.head);
          const hint = `AGENTREWIND_SEED=${seed}, round ${round}`;
          expect(head, hint).toBeDefined();
          expect(digestTree(place.workspace), `${hint}: the tree is the head's`).toEqual(
            trees.get(head?.environment.files as string),
          );
          expect(new Set(all.map((one) => one.id)).size, hint).toBe(all.length);
          const number = Math.max(...all.map((one) => Number(one.id.slice(1))));
          expect(number, hint).toBeGreaterThanOrEqual(highest);
          highest = number;
          await endSession(rewind);
        }
        warm.child.kill("SIGKILL");
      }
    } finally {
      warm?.child.kill("SIGKILL");
    }
    expect(killed).toBeGreaterThan(kills / 2);
  });
});
