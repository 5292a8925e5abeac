// A process of its own that records one workspace with AgentRewind, so that its memory and its event loop are nobody else's. Driven over IPC.
import { monitorEventLoopDelay, performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { openRewind } from "agentrewind";
import { resolutionMs, watchCollections, watchOwnBlocks } from "./own-blocks.mjs";

const [workspace, store, modelMs, inspector] = process.argv.slice(2);
const peakMB = () => process.resourceUsage().maxRSS / 1024;
const context = { messages: [{ role: "user", content: "Make the tests pass." }] };

const rewind = await openRewind({ workspace, store, inspector });
const thread = rewind.thread("bench");
const { environment } = rewind;
let last;

/** V8 moves what a program loads at the first collections after its start, whoever causes them: an agent that runs for hours has that behind it. */
function collectStart() {
  setFlagsFromString("--expose-gc");
  runInNewContext("gc")();
}

async function untilDurable(id) {
  const end = Date.now() + 600_000;
  while (thread.get(id).state !== "durable") {
    if (Date.now() > end) throw new Error(`${id} did not become durable`);
    await sleep(2);
  }
}

const steps = {
  /** Nothing of ours runs: what the machine itself does to the loop. */
  async idle() {
    await sleep(500);
    return {};
  },
  async checkpoint(start) {
    last = await thread.checkpoint();
    const ms = performance.now() - start;
    await untilDurable(last.id);
    return { ms, durableMs: performance.now() - start };
  },
  async capture(start) {
    const { captured, durable } = environment.capture();
    await captured;
    const ms = performance.now() - start;
    await durable;
    return { ms, durableMs: performance.now() - start };
  },
  async turn(start) {
    const turn = await thread.beginTurn(context);
    await sleep(Number(modelMs));
    last = await turn.gate();
    const ms = performance.now() - start;
    await turn.durable;
    return { ms, durableMs: performance.now() - start, exposedMs: last.timings.exposedMs };
  },
  async rewind(start) {
    const result = await thread.rewind({ to: last.id });
    if (result.notRestored.length > 0) throw new Error(`not restored: ${JSON.stringify(result.notRestored[0])}`);
    return { ms: performance.now() - start };
  },
  async restore(start) {
    await environment.restore(last.environment);
    return { ms: performance.now() - start };
  },
};

async function measure(step) {
  const delay = monitorEventLoopDelay({ resolution: resolutionMs });
  delay.enable();
  const ownBlocks = watchOwnBlocks();
  const collections = watchCollections();
  // The first tick only starts the clock, and a block is seen by the tick behind it.
  await sleep(20);
  const result = await steps[step](performance.now());
  await sleep(20);
  delay.disable();
  return {
    ...result,
    blockMs: Math.max(0, delay.max / 1e6 - resolutionMs),
    ...ownBlocks(),
    ...collections(),
    peakMB: peakMB(),
  };
}

process.on("message", async (step) => {
  try {
    if (step === "end") {
      await rewind.close();
      process.disconnect();
    } else process.send({ ok: await measure(step) });
  } catch (error) {
    process.send({ error: error.stack });
  }
});
process.once("disconnect", () => process.exit());
collectStart();
process.send({ ok: { peakMB: peakMB() } });
