// Ends all processes of some runs: asked first, then killed, and looked for until none is left.
import { setTimeout as sleep } from "node:timers/promises";
import { kill } from "../../processes/proc.ts";
import type { Seeing, SeenProcess } from "./seeing.ts";

/** How long they may take to end when they are asked, and when they are killed. */
const askedMs = 1_000;
const killedMs = 5_000;
const lookMs = 10;

/** @param find those that are left. Returns those that do not end. */
export async function endProcesses(
  see: Seeing,
  find: () => Promise<readonly SeenProcess[]>,
): Promise<readonly SeenProcess[]> {
  let left = await find();
  for (const one of left) send(see, one, "SIGTERM");
  for (const end = Date.now() + askedMs; left.length > 0 && Date.now() < end; ) {
    await sleep(lookMs);
    if (left.some((one) => isThere(see, one))) continue;
    // What it has started while it ended.
    left = await find();
    for (const one of left) send(see, one, "SIGTERM");
  }
  for (const end = Date.now() + killedMs; left.length > 0 && Date.now() < end; ) {
    left = await find();
    for (const one of left) send(see, one, "SIGKILL");
    if (left.length > 0) await sleep(lookMs);
  }
  return left;
}

const isThere = (see: Seeing, { pid, start }: SeenProcess): boolean => see.startOf(pid) === start;

/** Right before, it is still the one that was found. */
function send(see: Seeing, one: SeenProcess, signal: NodeJS.Signals): void {
  if (one.pid > 1 && one.pid !== process.pid && isThere(see, one)) kill(one.pid, signal);
}
