// What can be told of a sandbox's present without a snapshot or a dump.
import { workSuffix } from "./layers/layers.ts";
import type { Life, LifePlan } from "./life.ts";
import { stillState } from "./processes/still.ts";
import { runLayer } from "./run-folder.ts";

export interface Present {
  /** Host path of the folder in which everything lies that the sandbox changes on disk. */
  readonly live: string;
  /** Equal where the processes are what they were; null where none run, undefined where only a dump would tell. */
  readonly processes: string | null | undefined;
}

/** Glob patterns of what lies in the live folder and is no state of the sandbox's. */
export const passingFolders = [runLayer, `*${workSuffix}`, "*.merged"].flatMap((one) => [one, `${one}/**`]);

export async function presentProcesses(plan: LifePlan, life: Life): Promise<Present["processes"]> {
  const still = await stillState(plan, life);
  if (still === undefined) return undefined;
  return still.shells.length === 0 ? null : still.key;
}
