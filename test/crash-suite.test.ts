// The crash suite's command in its small form: traces hold what they must, and recoveries end as the policies' reasons say. No time is asserted.
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import type { Judged } from "../bench-mettle/crash/oracle.ts";
import { randomOf } from "../bench-mettle/crash/random.ts";
import type { Run } from "../bench-mettle/crash/run.ts";
import { traces } from "../bench-mettle/crash/traces/index.ts";
import { readLines } from "../bench-mettle/crash/work.ts";
import { lacking } from "./capabilities.ts";
import { needed } from "./sandbox/machine.ts";

const root = resolve(import.meta.dirname, "..");
const out = mkdtempSync(join(tmpdir(), "agentrewind-crash-test-"));
const long = process.env.AGENTREWIND_LONG === "1";
const seed = process.env.AGENTREWIND_SEED ?? `${Date.now()}`;
afterAll(() => rmSync(out, { recursive: true, force: true }));

const suite = (...args: string[]): Promise<{ stdout: string; stderr: string }> =>
  promisify(execFile)("npm", ["run", "--silent", "bench:crash", "--", "--out", out, ...args], { cwd: root });

const chosen = ["service-counter", "shell-deploy-stage", "py-lru"];
/** Killed so late that nothing of a shell's state is made behind it. */
const small = ["--traces", chosen.join(","), "--seeds", "5", "--turns", "1", "--latency-scale", "0.005"];
const five = ["--policies", "restart,chat,chat+files,full,ours"];

test.skipIf(lacking(...needed))(
  "three traces are killed and recovered under the five policies",
  { timeout: 300_000 },
  async () => {
    const { stdout } = await suite(...small, ...five);
    expect(readFileSync(join(out, "crash.md"), "utf8")).toBe(stdout);
    const runs = [...readLines<Run>(join(out, "crash.jsonl")).values()];
    expect(runs).toHaveLength(15);
    const of = (policy: string) => runs.filter((run) => run.policy === policy);
    for (const policy of ["restart", "full", "ours"]) {
      expect(of(policy).map(({ trace, pass, why }) => [trace, pass, why])).toEqual(
        of(policy).map(({ trace }) => [trace, true, ""]),
      );
    }
    // What a plain loop has done is done again; of a restored prefix nothing is.
    for (const run of of("restart")) expect(run.modelCallsRepeated).toBeGreaterThanOrEqual(run.kill?.turn as number);
    for (const policy of ["chat", "chat+files", "full", "ours"]) {
      for (const run of of(policy)) expect([run.modelCallsRepeated, run.toolRunsRepeated]).toEqual([0, 0]);
    }
    // Their variables and counters are in processes.
    for (const policy of ["chat", "chat+files"]) {
      expect(of(policy).filter(({ kind, pass }) => kind === "shell" && pass)).toEqual([]);
    }
    expect(
      of("chat+files")
        .filter(({ kind }) => kind === "files")
        .map(({ pass }) => pass),
    ).toEqual([true]);
    for (const run of of("ours")) expect(run.captures.notRestorable).toBe(0);

    const again = await suite(...small, ...five, "--resume");
    expect(again.stderr).not.toContain("left: ");
    // What stands before it tells of the machine's load.
    const result = (text: string): string => text.slice(text.indexOf("## Result"));
    expect(result(again.stdout)).toBe(result(stdout));
  },
);

test.skipIf(lacking(...needed))(
  `verifiers fail at the beginning and without an acting turn (seed ${seed})`,
  { timeout: long ? 3_600_000 : 300_000 },
  async () => {
    const random = randomOf("sample", seed);
    const sample = long
      ? traces
      : [...traces]
          .map((trace) => ({ trace, at: random() }))
          .sort((a, b) => a.at - b.at)
          .slice(0, 4)
          .map(({ trace }) => trace);
    const turns = long ? [] : ["--turns", "1"];
    await suite("--validate", "--resume", "--traces", sample.map(({ id }) => id).join(","), ...turns);
    const judged = [...readLines<Judged>(join(out, "traces.jsonl")).values()];
    for (const { id } of sample) expect(judged.find(({ trace }) => trace === id)?.faults, id).toEqual([]);
  },
);
