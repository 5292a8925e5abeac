// Turns, checkpoints on their way to the disk and rewinds of workspaces that share an engine.
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { openRewind, type Rewind } from "agentrewind";
import { afterEach, expect, test } from "vitest";
import { EngineProcess } from "../helpers/engine-process.ts";
import { codeOf, endSession, makePlace, type Place, useRewind } from "../helpers/workspace.ts";

const ended: (() => void)[] = [];
afterEach(() => {
  for (const end of ended.splice(0)) end();
});

function on(name: string, listener: (message: never) => void): void {
  const heard = listener as (message: unknown) => void;
  subscribe(`agentrewind:${name}`, heard);
  ended.push(() => void unsubscribe(`agentrewind:${name}`, heard));
}

const deviceOf = (path: string): string => statSync(path, { bigint: true }).dev.toString();

/** A workspace whose store's engine is another process, in which a job of each kind runs until it is ended. */
async function beside(...kinds: ("capture" | "persist")[]) {
  const place = makePlace();
  // The store is made by the first who opens it.
  await (await openRewind({ workspace: place.workspace, store: place.store })).close();
  const holder = new EngineProcess({ folder: join(place.store, "locks"), perDevice: 1 });
  await holder.until({ role: "grants" });
  const device = deviceOf(place.workspace);
  for (const kind of kinds) {
    holder.run(kind, { kind, device });
    await holder.until({ granted: kind });
  }
  let asks = (): void => {};
  const asked = new Promise<void>((resolve) => {
    asks = resolve;
  });
  on("engine", ({ role }: { role: string }) => {
    if (role === "asks") asks();
  });
  const rewind = await useRewind(place);
  await asked;
  return { place, holder, rewind, thread: rewind.thread("t") };
}

test("eight workspaces of one process never have more than two captures at once, and all get theirs", async () => {
  const { base, store } = makePlace();
  let now = 0;
  let most = 0;
  on("capture:start", () => {
    most = Math.max(most, ++now);
  });
  on("capture:end", () => void now--);
  const two = { perDevice: 2, all: 2 };
  const rewinds: Rewind[] = [];
  for (let n = 0; n < 8; n++) {
    const place: Place = { base, store, workspace: join(makePlace().base, "workspace") };
    for (let file = 0; file < 50; file++) writeFileSync(join(place.workspace, `f${file}`), `${n} ${file}`);
    rewinds.push(await useRewind(place, { engine: { capture: two } }));
  }
  for (let round = 0; round < 3; round++) {
    const turns = await Promise.all(
      rewinds.map((rewind) => rewind.thread("t").beginTurn({ messages: [`${round}`] }, { anchor: `${round}` })),
    );
    const made = await Promise.all(turns.map((turn) => turn.gate()));
    expect(made.map(({ state }) => state)).not.toContain("not-restorable");
  }
  expect(most).toBe(2);
});

test("what a capture waits for others is told, and counts as exposed where the reply waits for it", async () => {
  const { holder, thread } = await beside("capture");
  const heard: string[] = [];
  on("job:promoted", ({ job }: { job: string }) => void heard.push(`${job} promoted`));
  on(
    "job:granted",
    ({ job, promoted }: { job: string; promoted: boolean }) =>
      void heard.push(`${job} granted${promoted ? " first" : ""}`),
  );
  on("capture:start", () => void heard.push("capture begins"));
  const turn = await thread.beginTurn({ messages: ["0"] });
  await sleep(50);
  expect(heard).toEqual([]);
  const start = performance.now();
  const gate = turn.gate({ tools: false });
  await expect.poll(() => heard, { interval: 5 }).toEqual(["capture promoted"]);
  await sleep(50);
  const waited = performance.now() - start;
  await holder.end("capture");
  const { timings, state } = await gate;
  expect(state).toBe("captured");
  expect(timings.exposedMs).toBeGreaterThanOrEqual(waited);
  expect(heard.slice(0, 3)).toEqual(["capture promoted", "capture granted first", "capture begins"]);
});

test("a turn waits until what was captured before it is on its way to the disk, and pays for that", async () => {
  const { holder, thread } = await beside("persist");
  let captures = 0;
  on("capture:start", () => void captures++);
  const first = await thread.beginTurn({ messages: ["0"] }, { anchor: "0" });
  expect((await first.gate()).state).toBe("captured");
  const second = await thread.beginTurn({ messages: ["0", "1"] }, { anchor: "1" });
  const start = performance.now();
  const gate = second.gate({ tools: false });
  await sleep(100);
  expect(captures).toBe(1);
  expect(thread.get("c0").state).toBe("captured");
  const waited = performance.now() - start;
  await holder.end("persist");
  const { timings } = await gate;
  expect(timings.exposedMs).toBeGreaterThanOrEqual(waited);
  expect((await first.durable).state).toBe("durable");
  expect((await second.durable).state).toBe("durable");
});

test("a rewind waits for nobody", async () => {
  const { place, holder, thread } = await beside();
  writeFileSync(join(place.workspace, "f"), "1");
  await thread.checkpoint();
  writeFileSync(join(place.workspace, "f"), "2");
  const device = deviceOf(place.workspace);
  for (const kind of ["capture", "persist"] as const) {
    holder.run(kind, { kind, device });
    await holder.until({ granted: kind });
  }
  const { restored, left } = await thread.rewind({ to: "c0" });
  expect(restored.changed).toEqual(["f"]);
  expect(left?.kind).toBe("safety");
});

test("a capture that a rewind has to wait for comes first", async () => {
  const { place, holder, thread } = await beside();
  await thread.checkpoint();
  holder.run("a0", { device: deviceOf(place.workspace) });
  await holder.until({ granted: "a0" });
  const promoted: string[] = [];
  on("job:promoted", ({ job }: { job: string }) => void promoted.push(job));
  const turn = await thread.beginTurn({ messages: ["0"] });
  await sleep(50);
  expect(promoted).toEqual([]);
  const rewound = thread.rewind({ to: "c0" });
  await expect.poll(() => promoted, { interval: 5 }).toEqual(["capture"]);
  await holder.end("a0");
  expect((await rewound).checkpoint.id).toBe("c0");
  expect(await codeOf(turn.gate())).toBe("STALE_EPOCH");
});

test("a capture that is given up before its turn is listed as not restorable, and the turn goes on", async () => {
  const { holder, thread } = await beside("capture");
  const control = new AbortController();
  const turn = await thread.beginTurn({ messages: ["0"] }, { signal: control.signal });
  const gate = turn.gate({ tools: false });
  await sleep(50);
  control.abort();
  const { state, reason } = await gate;
  expect(state).toBe("not-restorable");
  expect(reason).toMatch(/before its turn came/);
  await holder.end("capture");
});

test("closing waits for what waits for its turn", async () => {
  const { place, holder, thread, rewind } = await beside("persist");
  await thread.checkpoint();
  const closed = endSession(rewind);
  await sleep(50);
  await holder.end("persist");
  await closed;
  const again = await useRewind(place);
  expect(again.thread("t").get("c0").state).toBe("durable");
});

test("limits that are none are refused", async () => {
  const { workspace, store } = makePlace();
  const open = (engine: object): Promise<Rewind> => openRewind({ workspace, store, engine });
  expect(await codeOf(open({ capture: { perDevice: 0 } }))).toBe("BAD_ARGUMENT");
  expect(await codeOf(open({ waiting: -1 }))).toBe("BAD_ARGUMENT");
  expect(await codeOf(open({ captures: 2 }))).toBe("BAD_ARGUMENT");
});
