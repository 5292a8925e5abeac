// Where blocks happen: a folder with one store and a workspace for each agent, and what removes all of it, also when a signal ends the bench.
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { cleanStore } from "../crash/place.ts";
import { checks, checksPath } from "./looking.ts";
import type { AgentProcess } from "./processes.ts";

export interface Ground {
  readonly base: string;
  readonly store: string;
  workspace(agent: number): string;
  /** Its processes, which end with the ground. */
  readonly processes: AgentProcess[];
}

const grounds = new Set<Ground>();

export function makeGround(): Ground {
  const base = mkdtempSync(join(realpathSync(tmpdir()), "agentrewind-density-"));
  const store = join(base, "store");
  for (const folder of [store, join(base, "agents")]) mkdirSync(folder);
  const workspace = (agent: number): string => join(base, "agents", `${agent}`);
  const ground = { base, store, workspace, processes: [] };
  grounds.add(ground);
  return ground;
}

export function prepareWorkspace(ground: Ground, agent: number): void {
  const file = join(ground.workspace(agent), checksPath);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, checks);
}

export async function removeGround(ground: Ground): Promise<void> {
  for (const one of ground.processes) one.kill();
  await Promise.all(ground.processes.map((one) => one.closed()));
  cleanStore(ground.store, join(ground.base, "agents"));
  rmSync(ground.base, { recursive: true, force: true, maxRetries: 3 });
  grounds.delete(ground);
}

/** Of all that are there; then the process ends as the signal would have ended it. */
export function cleanOnSignals(): void {
  for (const [signal, code] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const) {
    process.once(signal, () => {
      void Promise.allSettled([...grounds].map(removeGround)).then((ended) => {
        for (const one of ended) if (one.status === "rejected") process.stderr.write(`${one.reason}\n`);
        process.exit(code);
      });
    });
  }
}
