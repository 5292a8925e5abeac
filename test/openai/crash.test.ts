// A loop that is killed anywhere, and started again as it was: it ends where it would have ended, with one lesson and nothing of what was taken back.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { libraryEntry, openaiFile } from "../helpers/library.ts";
import { allText, mainScript, occurrences, openScene, type Scene } from "../langchain/harness.ts";

const program = join(import.meta.dirname, "../fixtures/openai-loop.mjs");

let scene: Scene;
beforeEach(async () => {
  scene = await openScene(mainScript(), { exclude: ["runs.log"] });
  await scene.rewind.close();
});
afterEach(async () => scene.close());

async function run(env: Record<string, string> = {}, deadly = ""): Promise<number | string | null> {
  const child = spawn(
    process.execPath,
    [program, libraryEntry, openaiFile, scene.workspace, scene.store, scene.server.baseUrl, deadly],
    { stdio: ["ignore", "inherit", "inherit"], env: { ...process.env, ...env } },
  );
  const [code, signal] = (await once(child, "exit")) as [number | null, string | null];
  return signal ?? code;
}

async function expectDone(): Promise<void> {
  expect(await run()).toBe(0);
  expect(scene.files().filter((name) => name !== "runs.log")).toEqual(["better.txt", "good.txt"]);
  const last = allText(scene.server.requests.at(-1) as never);
  expect(last).toContain("wrote good.txt");
  expect(last).toContain("wrote better.txt");
  expect(last).not.toContain("wrote bad.txt");
  expect(occurrences(last, "bad.txt was wrong")).toBe(1);
  await scene.reopen();
  expect(scene.rewind.thread("t1").lessons()).toHaveLength(1);
}

describe("killed at", () => {
  it.each([
    "checkpoint.before-commit:1",
    "checkpoint.committed:3",
    "durable.committed:2",
    "rewind.safety",
    "rewind.intent",
    "restore.staged",
    "restore.applied",
    "rewind.restored",
    "rewind.committed",
    "checkpoint.before-commit:6",
    "checkpoint.committed:6",
    "objects.committed:9",
  ])("%s", async (fault) => {
    expect(await run({ AGENTREWIND_FAULT: fault })).toBe("SIGKILL");
    await expectDone();
  });
});

it.each(["good.txt", "bad.txt", "better.txt"])(
  "killed in its tool, at %s: that call runs again, and no other",
  async (deadly) => {
    expect(await run({}, deadly)).toBe("SIGKILL");
    await expectDone();
    const runs = readFileSync(join(scene.workspace, "runs.log"), "utf8").trim().split("\n");
    expect(runs).toEqual(
      ["good.txt", "bad.txt", "better.txt"].flatMap((name) => (name === deadly ? [name, name] : [name])),
    );
  },
);
