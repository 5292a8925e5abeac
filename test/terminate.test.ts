// SIGTERM to a process with an open workspace: what is recorded reaches the disk first, then the process ends as the signal ends it.
import { type ChildProcess, execFileSync } from "node:child_process";
import { once } from "node:events";
import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { lacking } from "./capabilities.ts";
import { type Step, type StepResult, startSteps } from "./helpers/steps.ts";
import { codeOf, endSession, makePlace, type Place, useRewind } from "./helpers/workspace.ts";

let folder: string;
interface Running {
  readonly place: Place;
  readonly child: ChildProcess;
  /** Lets everything reach the disk. */
  release(): void;
}

/** A pair is captured, and the disk does not take it. */
async function withUnsavedPair(onTerminate: object | undefined, ...before: Step[]): Promise<Running> {
  const place = makePlace();
  fs.writeFileSync(join(place.workspace, "f"), "1");
  const slow = join(place.base, "slow");
  const child = startSteps(
    {
      ...place,
      env: { LD_PRELOAD: join(folder, "slow-sync.so"), SLOW_SYNC: slow },
      ...(onTerminate === undefined ? {} : { options: { onTerminate } }),
    },
    [
      { op: "open" },
      ...before,
      { op: "write", path: slow, text: "" },
      { op: "turn", context: { messages: ["m0"] } },
      { op: "hold" },
    ],
  );
  for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream })) {
    const { op, error, message } = JSON.parse(line) as StepResult;
    if (error !== undefined) throw new Error(message);
    if (op === "holding") break;
  }
  return { place, child, release: () => fs.rmSync(slow) };
}

const end = async (child: ChildProcess): Promise<unknown[]> => once(child, "exit");

async function stateOf(place: Place): Promise<string | undefined> {
  const rewind = await useRewind(place);
  const state = rewind.thread("t").checkpoints()[0]?.state;
  await endSession(rewind);
  return state;
}

describe.skipIf(lacking("compiler"))("SIGTERM", () => {
  beforeAll(() => {
    folder = fs.mkdtempSync(join(tmpdir(), "agentrewind-slow-"));
    const source = join(import.meta.dirname, "fixtures/slow-sync.c");
    execFileSync("cc", ["-shared", "-fPIC", "-O1", "-o", join(folder, "slow-sync.so"), source]);
  });
  afterAll(() => fs.rmSync(folder, { recursive: true }));

  test("ends the process once the pair is on disk, and as the signal does", async () => {
    const { place, child, release } = await withUnsavedPair({ deadlineMs: 60_000 });
    const ended = end(child);
    child.kill("SIGTERM");
    await sleep(300);
    expect([child.exitCode, child.signalCode]).toEqual([null, null]);
    release();
    expect(await ended).toEqual([null, "SIGTERM"]);
    expect(await stateOf(place)).toBe("durable");
  });

  test("without the option ends it at once, the pair not on disk", async () => {
    const { place, child } = await withUnsavedPair(undefined);
    child.kill("SIGTERM");
    expect(await end(child)).toEqual([null, "SIGTERM"]);
    expect(await stateOf(place)).toBe("captured");
  });

  test("ends it at the deadline, whatever the disk does", async () => {
    const { place, child } = await withUnsavedPair({ deadlineMs: 200 });
    child.kill("SIGTERM");
    expect(await end(child)).toEqual([null, "SIGTERM"]);
    expect(await stateOf(place)).toBe("captured");
  });

  test("that comes a second time ends it at once", async () => {
    const { place, child } = await withUnsavedPair({ deadlineMs: 600_000 });
    child.kill("SIGTERM");
    await sleep(300);
    expect([child.exitCode, child.signalCode]).toEqual([null, null]);
    child.kill("SIGTERM");
    expect(await end(child)).toEqual([null, "SIGTERM"]);
    expect(await stateOf(place)).toBe("captured");
  });

  test("to a program that listens itself leaves the end to it, and durable() tells when", async () => {
    const { place, child, release } = await withUnsavedPair({ deadlineMs: 100 }, { op: "listen", exitCode: 7 });
    const ended = end(child);
    child.kill("SIGTERM");
    await sleep(500);
    expect([child.exitCode, child.signalCode]).toEqual([null, null]);
    release();
    expect(await ended).toEqual([7, null]);
    expect(await stateOf(place)).toBe("durable");
  });
});

test("a workspace that was closed listens no more", async () => {
  const before = process.listenerCount("SIGTERM");
  const one = await useRewind(makePlace(), { onTerminate: { deadlineMs: 100 } });
  const other = await useRewind(makePlace(), { onTerminate: { deadlineMs: 100 } });
  expect(process.listenerCount("SIGTERM")).toBe(before + 1);
  await endSession(one);
  expect(process.listenerCount("SIGTERM")).toBe(before + 1);
  await endSession(other);
  expect(process.listenerCount("SIGTERM")).toBe(before);
});

test("a deadline that no timer takes is refused", async () => {
  for (const deadlineMs of [-1, 2 ** 31, 0.5])
    expect(await codeOf(useRewind(makePlace(), { onTerminate: { deadlineMs } }))).toBe("BAD_ARGUMENT");
});
