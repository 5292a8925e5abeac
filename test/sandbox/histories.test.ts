// Random histories of a whole sandbox: behind each rewind everything in it is as it was at the checkpoint, as an independent reader sees it from outside.
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Checkpoint } from "agentrewind";
import { describe, test } from "vitest";
import { lacking } from "../capabilities.ts";
import { pythonPath } from "../helpers/python.ts";
import { Exact, type Seen } from "./exact.ts";
import { type Held, needed } from "./held.ts";
import { beginning, makeHistory, type Step, shown } from "./history.ts";

const histories = process.env.AGENTREWIND_LONG === "1" ? 2000 : 8;
/** Set it to a seed that failed to run that history alone. */
const only = process.env.AGENTREWIND_SEED;
/** In one sandbox. */
const together = 8;
/** How many shorter histories are tried where one fails. */
const tries = 40;

async function run(exact: Exact, empty: Checkpoint, steps: readonly Step[]): Promise<void> {
  const { held } = exact;
  const states: Seen[] = [];
  exact.forgetRewinds();
  await held.back(empty);
  await held.sh(beginning(pythonPath() as string));
  for (const step of steps) {
    if (step.do === "line") await held.rewind.environment.exec(`{ ${step.line}\n} 2>/dev/null`, { timeoutMs: 20_000 });
    else if (step.do === "checkpoint") states.push(await exact.capture());
    else if (step.do === "undo") await exact.undo();
    else {
      const to = states[step.to % Math.max(1, states.length)];
      const left = to === undefined ? undefined : await exact.back(to);
      if (left !== undefined) states.push(left);
    }
  }
}

/** The shortest history that is found by leaving steps out and fails as well. */
async function shrink(steps: readonly Step[], fails: (steps: readonly Step[]) => Promise<boolean>): Promise<Step[]> {
  let shortest = [...steps];
  let left = tries;
  for (let size = Math.ceil(steps.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = 0; at < shortest.length && left > 0; left--) {
      const shorter = [...shortest.slice(0, at), ...shortest.slice(at + size)];
      if (await fails(shorter)) shortest = shorter;
      else at += size;
    }
  }
  return shortest;
}

describe.skipIf(lacking(...needed))("random histories of a sandbox", () => {
  const seeds = only === undefined ? Array.from({ length: histories }, (_, index) => index + 1) : [Number(only)];
  const groups = Array.from({ length: Math.ceil(seeds.length / together) }, (_, index) =>
    seeds.slice(index * together, (index + 1) * together),
  );
  test.each(groups.map((group) => [group[0], group.at(-1), group] as const))(
    "seeds %d to %d",
    { timeout: 900_000 },
    async (_, __, group) => {
      const exact = await Exact.open({ network: "own" }, ["actor.py"]);
      try {
        makePackages(exact.held);
        const empty = await exact.held.checkpoint();
        for (const seed of group) {
          const steps = makeHistory(seed);
          const errorOf = (some: readonly Step[]): Promise<unknown> =>
            run(exact, empty, some).then(
              () => undefined,
              (error: unknown) => error,
            );
          const error = await errorOf(steps);
          if (error === undefined) continue;
          const shortest = await shrink(steps, async (some) => (await errorOf(some)) !== undefined);
          const failure = error as Error;
          failure.message = `AGENTREWIND_SEED=${seed}: ${failure.message}\n\nThe history:\n${shown(steps)}\n\nThe shortest that fails as well:\n${shown(shortest)}`;
          throw failure;
        }
      } finally {
        await exact.end();
      }
    },
  );
});

/** Two versions of a small package, in the workspace. */
function makePackages({ base, rewind }: Held): void {
  for (const version of [1, 2]) {
    const folder = join(base, `package-${version}`);
    for (const name of ["DEBIAN", "usr/bin"]) mkdirSync(join(folder, name), { recursive: true });
    const control = [
      "Package: it",
      `Version: ${version}`,
      "Architecture: all",
      "Maintainer: x <x@y>",
      "Description: x",
    ];
    writeFileSync(join(folder, "DEBIAN/control"), `${control.join("\n")}\n`);
    const program = `#!/bin/sh\nexec sleep infinity # ${version}\n`;
    writeFileSync(join(folder, "usr/bin/it-packaged"), program, { mode: 0o755 });
    execFileSync(
      "dpkg-deb",
      ["--root-owner-group", "-b", folder, rewind.environment.path(`it_${version}.deb`) as string],
      { stdio: "pipe" },
    );
  }
}
