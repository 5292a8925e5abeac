// prune and gc of a store of many objects: time, memory, the longest block of the event loop, also of a session beside it. `node bench-mettle/perf/gc.mjs [OBJECTS]`
import { fork } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { openRewind } from "agentrewind";
import { watchOwnBlocks } from "./own-blocks.mjs";

const [given = "1000000", role, base] = process.argv.slice(2);
const objects = Number(given);
/** Of them 2 of 5 stay: less than half of a pack lives, so that it is rewritten. */
const kept = Math.floor((objects * 2) / 5);
const messages = (from, to) => Array.from({ length: to - from }, (_, i) => `message ${from + i}`);
const open = (name) => openRewind({ workspace: join(base, name), store: join(base, "store") });

const roles = {
  async fill() {
    const rewind = await open("workspace");
    const thread = rewind.thread("t");
    await thread.checkpoint({ context: { messages: messages(0, kept) }, label: "kept" });
    await thread.checkpoint({ context: { messages: messages(kept, objects) } });
    await thread.checkpoint({ context: { messages: ["last"] } });
    await rewind.close();
    return {};
  },
  async prune() {
    const rewind = await open("workspace");
    await sleep(50);
    const peakBeforeMB = process.resourceUsage().maxRSS / 1024;
    const idle = watchOwnBlocks();
    await sleep(2000);
    const { ownBlockMs: idleBlockMs } = idle();
    const stop = watchOwnBlocks();
    await sleep(50);
    const start = performance.now();
    const { gc } = await rewind.prune({ keepLast: 1 });
    const seconds = (performance.now() - start) / 1000;
    await sleep(50);
    const { ownBlockMs } = stop();
    const peakMB = process.resourceUsage().maxRSS / 1024;
    await rewind.close();
    return { seconds, ownBlockMs, idleBlockMs, peakBeforeMB, peakMB, gc };
  },
  /** Another workspace of the same store, at work until it is told to stop. */
  async beside() {
    const rewind = await open("beside");
    const thread = rewind.thread("t");
    await thread.checkpoint();
    process.send({ ready: true });
    let told = false;
    process.once("message", () => {
      told = true;
    });
    const stop = watchOwnBlocks();
    let slowestMs = 0;
    let turns = 0;
    for (; !told; turns++) {
      await sleep(20);
      const start = performance.now();
      await thread.checkpoint({ context: { messages: [`turn ${turns}`] } });
      slowestMs = Math.max(slowestMs, performance.now() - start);
    }
    const { ownBlockMs } = stop();
    await rewind.close();
    return { turns, slowestMs, ownBlockMs };
  },
};

function start(name, folder) {
  const child = fork(fileURLToPath(import.meta.url), [given, name, folder]);
  const next = () => new Promise((resolve) => child.once("message", resolve));
  const ended = new Promise((resolve, reject) =>
    child.once("exit", (code) => (code === 0 ? resolve() : reject(new Error(`${name} ended with ${code}`)))),
  );
  return { child, next, ended };
}

async function run(name, folder) {
  const { next, ended } = start(name, folder);
  const [result] = await Promise.all([next(), ended]);
  return result;
}

if (role !== undefined) {
  process.send(await roles[role]());
  process.disconnect();
} else {
  const folder = mkdtempSync(join(tmpdir(), "agentrewind-gc-"));
  try {
    for (const name of ["workspace", "beside"]) mkdirSync(join(folder, name));
    const size = (name) => statSync(join(folder, "store", name), { throwIfNoEntry: false })?.size ?? 0;
    const sizes = () => ({
      catalog: size("catalog.db"),
      packs: readdirSync(join(folder, "store", "packs")).reduce((sum, name) => sum + size(join("packs", name)), 0),
    });
    await run("fill", folder);
    const before = sizes();
    const other = start("beside", folder);
    await other.next();
    const pruned = await run("prune", folder);
    const besides = other.next();
    other.child.send("stop");
    const beside = await besides;
    await other.ended;
    console.log(JSON.stringify({ objects, ...pruned, beside, before, after: sizes() }, null, 2));
  } finally {
    rmSync(folder, { recursive: true });
  }
}
