// Every change of a file fails once around an effect and a compensation, and the store's disk is full at every fill: nothing is done twice or unseen.
import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import { join } from "node:path";
import type { OpenOptions, Rewind } from "agentrewind";
import { expect, test } from "vitest";
import { armWriteFault } from "../../src/write-faults.ts";
import { lacking } from "../capabilities.ts";
import { endSession, makePlace, type Place, useRewind } from "../helpers/workspace.ts";
import { context, turn } from "../invariants/scene.ts";

const failures = ["DISK_FULL", "WRITE_FAILED", "RESTORE_FAILED"];
const codeOf = (error: unknown): string => (error as { code?: string }).code ?? String(error);

interface World {
  readonly done: string[];
  readonly options: Partial<OpenOptions>;
}

const makeWorld = (): World => {
  const done: string[] = [];
  return {
    done,
    options: {
      effects: {
        send_mail: { class: "irreversible" },
        book: { class: "compensable", compensate: ({ room }) => done.push(`cancel ${room}`) },
      },
      compensate: "always",
    },
  };
};

/** Calls it; a failure must leave it either not done and free to be made, or done once and held. */
async function tryCall(rewind: Rewind, { done }: World, to: string): Promise<string | undefined> {
  const thread = rewind.thread("t");
  const call = () => thread.runTool({ tool: "send_mail", args: { to }, callId: to }, () => void done.push(to));
  const times = () => done.filter((one) => one === to).length;
  let failure: string | undefined;
  try {
    await call();
  } catch (error) {
    failure = codeOf(error);
    expect(failures).toContain(failure);
  }
  if (failure === undefined) expect(times()).toBe(1);
  const before = times();
  return failure === undefined ? undefined : `${failure} ${before}`;
}

/** Behind a failure, with room again. */
async function callAgain(rewind: Rewind, { done }: World, to: string): Promise<void> {
  const times = () => done.filter((one) => one === to).length;
  const before = times();
  const again = await rewind
    .thread("t")
    .runTool({ tool: "send_mail", args: { to }, callId: to }, () => void done.push(to));
  if (again.status === "held") expect(again.message).toContain("not known whether this is done already");
  expect(times(), "never twice").toBeLessThanOrEqual(1);
  // Free to be made, known to be done, or held as not known: never done again.
  expect(again.status).toBe(
    before === 0 ? (times() === 1 ? "ran" : "held") : again.status === "replayed" ? "replayed" : "held",
  );
}

/** What the call ended with as each change from its begin on fails; with `durable`, no change of its turn's checkpoint is left to make. */
async function failEveryChange(durable: boolean): Promise<string[]> {
  const world = makeWorld();
  const place = makePlace();
  let rewind = await useRewind(place, world.options);
  const failed: string[] = [];
  const kinds = ["ENOSPC", "EIO"];
  for (let nth = 1, reached = true; reached; nth++) {
    await turn(rewind.thread("t"), context("m0", `m${nth}`), { tools: () => {} });
    const begun = await rewind.thread("t").beginTurn(context("m0", `m${nth}`, "next"));
    await (durable ? begun.durable : begun.gate());
    armWriteFault(`${kinds[nth % 2]}:${nth}`);
    const failure = await tryCall(rewind, world, `mail ${nth}`);
    reached = armWriteFault(undefined);
    if (failure !== undefined) failed.push(failure);
    await begun.durable.catch(() => {});
    await endSession(rewind);
    rewind = await useRewind(place, world.options);
    if (failure !== undefined) await callAgain(rewind, world, `mail ${nth}`);
  }
  return failed;
}

test("F-44: every change of a file fails once around an effect", async () => {
  const failed = await failEveryChange(true);
  expect(
    failed.some((one) => one.endsWith("0")),
    "before the call",
  ).toBe(true);
  expect(
    failed.some((one) => one.endsWith("1")),
    "behind the call",
  ).toBe(true);
});

test("F-44: every change of a file fails once around an effect, while its turn's checkpoint becomes durable", async () => {
  expect(await failEveryChange(false)).not.toEqual([]);
});

test("F-42, F-43: every change of a file fails once in a rewind that makes up for an effect and is checked", async () => {
  for (const verify of [undefined, "test -e kept"]) {
    let failedOnce = false;
    for (let nth = 1, reached = true; reached; nth += verify === undefined ? 1 : 2) {
      const world = makeWorld();
      const place = makePlace();
      const rewind = await useRewind(place, world.options);
      const thread = rewind.thread("t");
      fs.writeFileSync(join(place.workspace, "kept"), "v0");
      await turn(thread, context("m0"), { tools: () => {} });
      await thread.runTool({ tool: "book", args: { room: "A" }, callId: "1" }, () => "ok");
      await turn(thread, context("m0", "m1"), { tools: () => fs.writeFileSync(join(place.workspace, "new"), "v1") });
      const request = { to: "c0", lesson: "l", key: "k", ...(verify === undefined ? {} : { verify }) };
      armWriteFault(`ENOSPC:${nth}`);
      const failure = await thread.rewind(request).then(
        () => undefined,
        (error: unknown) => codeOf(error),
      );
      reached = armWriteFault(undefined);
      if (failure !== undefined) {
        failedOnce = true;
        expect(failures).toContain(failure);
        await thread.rewind(request);
      }
      expect(world.done, `at change ${nth}`).toEqual(["cancel A"]);
      expect(thread.effects()).toMatchObject([{ state: expect.stringMatching(/^(un)?compensated$/) }]);
      expect(fs.readdirSync(place.workspace)).toEqual(["kept"]);
      await endSession(rewind);
    }
    expect(failedOnce).toBe(true);
  }
});

const canMount = !lacking("tmpfs");

test.skipIf(!canMount)(
  `F-44: the store's disk is full at every fill${canMount ? "" : " (needs root and mount)"}`,
  async () => {
    const place = makePlace();
    const small = join(place.base, "small");
    fs.mkdirSync(small);
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=12m", "tmpfs", small]);
    try {
      await callAtEveryFill(place, small);
    } finally {
      execFileSync("umount", ["-l", small]);
    }
  },
);

async function callAtEveryFill(place: Place, small: string): Promise<void> {
  const world = makeWorld();
  const rewind = await useRewind(place, { ...world.options, store: join(small, "store") });
  await turn(rewind.thread("t"), context("m0"), { tools: () => {} });
  const filler = join(small, "filler");
  const outcomes = new Set<string>();
  // From full to the last byte up to room for all of it.
  for (let free = 0; free <= 400 && !outcomes.has("done"); free += 8) {
    fillBut(filler, small, free * 1024);
    const to = `mail ${free}`;
    const failure = await tryCall(rewind, world, to);
    fs.rmSync(filler);
    outcomes.add(failure ?? "done");
    if (failure !== undefined) await callAgain(rewind, world, to);
  }
  expect(outcomes).toContain("done");
  expect([...outcomes].some((one) => one.startsWith("DISK_FULL"))).toBe(true);
  await endSession(rewind);
}

function fillBut(file: string, folder: string, free: number): void {
  const { bavail, bsize } = fs.statfsSync(folder);
  const size = bavail * bsize - free;
  const fd = fs.openSync(file, "w");
  try {
    for (let at = 0; at < size; at += 65_536) fs.writeSync(fd, Buffer.alloc(Math.min(65_536, size - at), 1));
  } finally {
    fs.closeSync(fd);
  }
}
