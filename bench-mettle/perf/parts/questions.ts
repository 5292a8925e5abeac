// A sandbox in which a server waits: how long it takes to tell that nothing happened, and the whole turn.
import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { makePlace } from "./place.ts";

const server =
  'node -e \'require("http").createServer((q, r) => r.end()).listen(0, "127.0.0.1")\' >/dev/null 2>&1 & sleep 1';
const restMs = 30;

/** Milliseconds, of each turn in which nothing happened. */
export async function questions(turns: number): Promise<{ asked: number[]; spared: number[] }> {
  const place = makePlace("ebpf");
  const rewind = await place.open();
  const { environment } = rewind;
  const found = { asked: [] as number[], spared: [] as number[] };
  try {
    await environment.exec(server);
    const thread = rewind.thread("bench");
    const messages: string[] = [];
    for (let turn = 0; turn < turns; turn++) {
      messages.push(`message ${turn}`);
      await sleep(restMs);
      const begun = performance.now();
      const current = await thread.beginTurn({ messages });
      const { environment: halves } = await current.gate();
      const ms = performance.now() - begun;
      await current.durable;
      const asked = performance.now();
      const answer = await environment.changed?.(halves);
      const askedMs = performance.now() - asked;
      if (turn === 0 || answer !== "none") continue;
      found.spared.push(ms);
      found.asked.push(askedMs);
    }
    if (found.asked.length < turns / 2)
      throw new Error(`Of ${turns} turns only ${found.asked.length} were told to be without a change.`);
    return found;
  } finally {
    await rewind.close();
    place.remove();
  }
}
