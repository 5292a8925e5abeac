// Checks of what `exec` leaves running, for environments that say that a restore covers it.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { Environment } from "../environment/environment.ts";
import type { EnvironmentCheck } from "./environment-check.ts";
import { captured, shell } from "./environment-tools.ts";

const covers = ({ capabilities }: Environment): boolean => capabilities.processes || capabilities.programs === true;

/** A program that writes the time into a file outside of the workspace, until the file's folder goes. */
const beating = (folder: string, name: string): string =>
  `sh -c 'while test -d ${folder}; do date +%s%N > ${folder}/${name}; sleep 0.05; done' </dev/null >/dev/null 2>&1 &`;

async function beats(environment: Environment, folder: string, name: string): Promise<boolean> {
  const look = `cat ${folder}/${name} 2>/dev/null; true`;
  const first = await shell(environment, look);
  await sleep(400);
  return (await shell(environment, look)) !== first;
}

/** On a busy machine it may take a while. */
async function goesOn(environment: Environment, folder: string, name: string): Promise<boolean> {
  const looks = 12;
  for (let look = 0; look < looks; look++) if (await beats(environment, folder, name)) return true;
  return false;
}

async function untilBeats(environment: Environment, folder: string, name: string): Promise<void> {
  await shell(environment, `until test -s ${folder}/${name}; do sleep 0.02; done`);
}

async function inFolder(environment: Environment, work: (folder: string) => Promise<void>): Promise<undefined> {
  const folder = (await shell(environment, "mktemp -d")).trim();
  try {
    await work(folder);
  } finally {
    // Programs that are left end with the folder, and may write into it until then.
    await shell(
      environment,
      `(for i in $(seq 100); do rm -rf ${folder} 2>/dev/null && exit; sleep 0.05; done; exit 1)`,
    );
  }
}

export const programChecks: readonly EnvironmentCheck[] = [
  {
    name: "a restore ends what exec has left running since",
    async check(environment) {
      if (!covers(environment)) return undefined;
      return inFolder(environment, async (folder) => {
        const { manifest } = await captured(environment);
        await shell(environment, beating(folder, "later"));
        await untilBeats(environment, folder, "later");
        assert(await goesOn(environment, folder, "later"), "what a command leaves in the background goes on");
        await environment.restore(manifest);
        assert(!(await beats(environment, folder, "later")), "what was started since still runs");
      });
    },
  },
  {
    name: "what exec had left running is there after a restore, or named",
    async check(environment) {
      if (!covers(environment)) return undefined;
      return inFolder(environment, async (folder) => {
        await shell(environment, `${beating(folder, "then")} echo $! > ${folder}/pid`);
        await untilBeats(environment, folder, "then");
        const { manifest } = await captured(environment);
        await shell(environment, `kill $(cat ${folder}/pid)`);
        await sleep(200);
        assert(!(await beats(environment, folder, "then")), "the program was ended");
        const { notRestored } = await environment.restore(manifest);
        const named = notRestored.some(({ path }) => /^process \d+ /.test(path));
        assert(named || (await goesOn(environment, folder, "then")), "what ran then is neither there nor named");
      });
    },
  },
];
