// A loop that is killed anywhere, and started again as it was: it ends where it would have ended, with one lesson and nothing of what was taken back.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { openRewind } from "agentrewind";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { lacking } from "../capabilities.ts";
import { libraryEntry, openaiFile } from "../helpers/library.ts";
import { allText, mainScript, occurrences, openScene, type Scene } from "../langchain/harness.ts";
import { needed } from "../sandbox/machine.ts";

const program = join(import.meta.dirname, "../fixtures/openai-loop.mjs");

let scene: Scene;
beforeEach(async () => {
  scene = await openScene(mainScript(), { exclude: ["runs.log"] });
  await scene.rewind.close();
});
afterEach(async () => scene.close());

async function run(env: Record<string, string> = {}, deadly = "", kind = "directory"): Promise<number | string | null> {
  const child = spawn(
    process.execPath,
    [program, libraryEntry, openaiFile, scene.workspace, scene.store, scene.server.baseUrl, deadly, kind],
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

describe.skipIf(lacking(...needed))("in a sandbox, whose state goes with its owner", () => {
  it.each([
    { fault: "checkpoint.before-commit:2", twice: ["good.txt"] },
    { fault: "checkpoint.committed:2", twice: [] },
    { fault: "checkpoint.before-commit:3", twice: ["bad.txt"] },
    { fault: "rewind.safety", twice: [] },
    { fault: "rewind.intent", twice: [] },
    { fault: "rewind.restored", twice: [] },
    { fault: "rewind.committed", twice: [] },
  ])(
    "killed at $fault: a recorded tool runs again where no pair holds what it did, and no other",
    async ({ fault, twice }) => {
      expect(await run({ AGENTREWIND_FAULT: fault }, "", "sandbox")).toBe("SIGKILL");
      expect(await run({}, "", "sandbox")).toBe(0);
      const runs = readFileSync(join(dirname(scene.store), "runs.log"), "utf8")
        .trim()
        .split("\n");
      expect(runs).toEqual(
        ["good.txt", "bad.txt", "better.txt"].flatMap((name) => (twice.includes(name) ? [name, name] : [name])),
      );
      const { workspace, store } = scene;
      scene.rewind = await openRewind({ workspace, store, environment: "sandbox", sandbox: { network: "own" } });
      const { stdout } = await scene.rewind.environment.exec("ls; cat seen.txt; echo $seen");
      expect(stdout.trim().split("\n")).toEqual([
        "better.txt",
        "good.txt",
        "seen.txt",
        "good.txt better.txt",
        "good.txt better.txt",
      ]);
    },
  );
});
