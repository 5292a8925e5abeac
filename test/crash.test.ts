// SIGKILL at every step of checkpoint, rewind, undo, prune and recovery; several that open at once.

import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import { join } from "node:path";
import type { Rewind } from "agentrewind";
import Database from "better-sqlite3";
import { describe, expect, test } from "vitest";
import { type FaultPoint, faultPoints } from "../src/faults.ts";
import { digestTree } from "./helpers/digest.ts";
import { runSteps, type Step, startSteps } from "./helpers/steps.ts";
import { codeOf, endSession, makePlace, type Place, useRewind } from "./helpers/workspace.ts";

const sh = (cwd: string, command: string): string =>
  execFileSync("bash", ["--norc", "-c", command], { cwd, encoding: "utf8", stdio: "pipe" });
const long = process.env.AGENTREWIND_LONG === "1";
const digest = (place: Place): string[] => digestTree(place.workspace);

/** Three states that differ in every way that a restore treats differently. */
const states: readonly ((at: (name: string) => string) => void)[] = [
  (at) => {
    for (const name of ["d/sub", "gone"]) fs.mkdirSync(at(name), { recursive: true });
    for (const name of ["a", "b", "d/f", "d/sub/g", "gone/x"]) fs.writeFileSync(at(name), "1\n");
    fs.writeFileSync(at("same"), "same\n", { mode: 0o600 });
    fs.symlinkSync("a", at("l"));
    fs.linkSync(at("a"), at("d/hard"));
    fs.writeFileSync(at("big"), Buffer.alloc(300_000));
    execFileSync("mkfifo", [at("p")]);
  },
  (at) => {
    for (const name of ["b", "l"]) fs.rmSync(at(name));
    fs.mkdirSync(at("b"));
    for (const name of ["a", "b/in", "new"]) fs.writeFileSync(at(name), "2\n");
    fs.chmodSync(at("same"), 0o644);
    fs.rmSync(at("gone"), { recursive: true });
    fs.symlinkSync("b", at("l"));
    fs.chmodSync(at("d"), 0o700);
  },
  (at) => {
    fs.rmSync(at("b"), { recursive: true });
    fs.rmSync(at("p"));
    fs.mkdirSync(at("deep/er"), { recursive: true });
    for (const name of ["d/f", "deep/er/x"]) fs.writeFileSync(at(name), "3\n");
    fs.appendFileSync(at("big"), "3\n");
    fs.linkSync(at("new"), at("new2"));
    fs.utimesSync(at("d/sub"), new Date(), new Date());
    fs.chmodSync(at("d/sub"), 0o711);
  },
];

interface Scene {
  readonly place: Place;
  /** Tree digests of v0, v1 and v2. */
  readonly trees: readonly [string[], string[], string[]];
}

const context = (...messages: string[]) => ({ messages });

/** c0 is v0, c1 is v1, and v2 lies in the workspace. */
async function makeScene(): Promise<Scene> {
  const place = makePlace();
  const rewind = await useRewind(place);
  const thread = rewind.thread("t");
  states[0]?.((name) => join(place.workspace, name));
  const v0 = digest(place);
  await thread.checkpoint({ context: context("m0") });
  states[1]?.((name) => join(place.workspace, name));
  const v1 = digest(place);
  await thread.checkpoint({ context: context("m0", "m1") });
  states[2]?.((name) => join(place.workspace, name));
  const v2 = digest(place);
  await endSession(rewind);
  return { place, trees: [v0, v1, v2] };
}

interface Scenario {
  readonly name: string;
  /** Brings the scene to where the killed steps begin. */
  readonly before?: (scene: Scene) => Promise<void>;
  readonly steps: readonly Step[];
  /** The points that this scenario is about; the others are another's. Default: all that it reaches. */
  readonly points?: RegExp;
  /** How many occurrences of one point are tried; without AGENTREWIND_LONG only the first and the last of these. */
  readonly occurrences?: number;
  /** The workspace was opened again: the state is old or new, and a retry reaches the new one. */
  readonly after: (scene: Scene, rewind: Rewind) => Promise<void>;
}

const rewindStep: Step = { op: "rewind", to: "c0", lesson: "learned", key: "call-1" };

async function afterRewind({ place, trees }: Scene, rewind: Rewind): Promise<void> {
  const thread = rewind.thread("t");
  expect(["c0", "c1"]).toContain(thread.head);
  expect(digest(place)).toEqual(thread.head === "c0" ? trees[0] : trees[2]);
  expect(thread.lessons().length).toBe(thread.head === "c0" ? 1 : 0);
  const again = await thread.rewind({ to: "c0", lesson: "learned", key: "call-1" });
  expect(again.context).toEqual({ ...context("m0"), channels: {} });
  expect(again.message).toContain("learned");
  expect(digest(place)).toEqual(trees[0]);
  expect(thread.lessons().map((one) => one.text)).toEqual(["learned"]);
  const undone = await thread.undo();
  expect(digest(place)).toEqual(trees[2]);
  expect(undone.context.messages).toEqual(["m0", "m1"]);
}

/** What lay in the workspace when pruning began. */
const unpruned = new Map<string, string[]>();

/** Another workspace's pack, more than half of which is alive: what a dry run stored, no checkpoint needs. */
async function leaveDeadRange(place: Place): Promise<void> {
  const other = { ...place, workspace: join(place.base, "other") };
  fs.mkdirSync(other.workspace);
  const rewind = await useRewind(other);
  sh(other.workspace, "head -c 1500000 /dev/urandom > alive");
  await rewind.thread("t").checkpoint({ context: context("m0") });
  sh(other.workspace, "head -c 1400000 /dev/urandom > dead");
  await rewind.thread("t").rewind({ to: "c0", dryRun: true });
  await endSession(rewind);
}

const pruning: Pick<Scenario, "before" | "after"> = {
  async before({ place }) {
    const rewind = await useRewind(place);
    const thread = rewind.thread("t");
    thread.label("kept", "c0");
    // Many names: told as the checkpoint's changes they take pages of the catalog, which gc gives back.
    sh(place.workspace, "head -c 1000000 /dev/urandom > junk; mkdir many; touch many/a-rather-long-name-{1..400}");
    await thread.checkpoint({ context: context("m0", "junk") });
    sh(place.workspace, "rm -r junk many; echo 4 > four");
    await thread.checkpoint({ context: context("m0", "m1", "m3") });
    unpruned.set(place.base, digest(place));
    await endSession(rewind);
    await leaveDeadRange(place);
    // As a run leaves them that was killed between a file and its row, or while it wrote its stat cache.
    fs.writeFileSync(join(place.store, "packs", "0123456789abcdef.pack"), "ARWPACK1");
    fs.writeFileSync(join(place.store, "cache", "e0123456789ab.tree.new"), "half");
  },
  async after({ place, trees }, rewind) {
    const thread = rewind.thread("t");
    const { gc } = await rewind.prune({ keepLast: 1 });
    expect(gc?.postponed).toEqual([]);
    const ids = thread.checkpoints({ all: true }).map((one) => one.id);
    expect(ids.filter((id) => id !== "c4")).toEqual(["c0", "c3"].filter((id) => ids.includes(id)));
    const packs = fs.readdirSync(join(place.store, "packs"));
    const rows = new Database(join(place.store, "catalog.db"), { readonly: true });
    expect(new Set(packs)).toEqual(new Set(rows.prepare("SELECT name FROM pack").pluck().all()));
    expect(rows.prepare("SELECT count(*) FROM object WHERE condemned = 1").pluck().get()).toBe(0);
    rows.close();
    const blocks = packs.map((name) => fs.statSync(join(place.store, "packs", name)).blocks).reduce((a, b) => a + b);
    expect(blocks * 512).toBeLessThan(2_000_000);
    expect(fs.readdirSync(join(place.store, "cache")).filter((name) => name.endsWith(".new"))).toEqual([]);
    const tree = unpruned.get(place.base);
    expect(digest(place)).toEqual(tree);
    const back = await thread.rewind({ to: "c0" });
    expect(digest(place)).toEqual(trees[0]);
    expect(back.context.messages).toEqual(["m0"]);
    await thread.undo();
    expect(digest(place)).toEqual(tree);
  },
};

const scenarios: readonly Scenario[] = [
  {
    name: "F-36, F-37: prune with its gc",
    steps: [{ op: "open" }, { op: "prune", keepLast: 1 }, { op: "turn", context: context("m4") }, { op: "close" }],
    points: /^(prune|gc|pack)\./,
    occurrences: 2,
    ...pruning,
  },
  {
    name: "checkpoint",
    steps: [{ op: "open" }, { op: "turn", context: context("m0", "m1", "m2"), durable: true }, { op: "close" }],
    async after({ place, trees }, rewind) {
      const thread = rewind.thread("t");
      expect(digest(place)).toEqual(trees[2]);
      const ids = thread.checkpoints().map((one) => one.id);
      const made = ids.length === 3;
      expect(ids).toEqual(made ? ["c0", "c1", "c2"] : ["c0", "c1"]);
      const next = await thread.checkpoint({ context: context("m0", "m1", "m2") });
      if (made) expect(next.id).toBe("c3");
      await thread.rewind({ to: "c0" });
      expect(digest(place)).toEqual(trees[0]);
      for (const id of made ? ["c2", next.id] : [next.id]) {
        const back = await thread.rewind({ to: id });
        expect(digest(place)).toEqual(trees[2]);
        expect(back.context.messages).toEqual(["m0", "m1", "m2"]);
      }
    },
  },
  { name: "rewind", steps: [{ op: "open" }, rewindStep, { op: "close" }], after: afterRewind },
  {
    name: "undo",
    async before({ place }) {
      const rewind = await useRewind(place);
      await rewind.thread("t").rewind({ to: "c0" });
      await endSession(rewind);
    },
    steps: [{ op: "open" }, { op: "undo" }, { op: "close" }],
    async after({ place, trees }, rewind) {
      const thread = rewind.thread("t");
      if (thread.head === "c0") {
        expect(digest(place)).toEqual(trees[0]);
        await thread.undo();
      }
      expect(digest(place)).toEqual(trees[2]);
      expect((await thread.context(thread.head as string)).messages).toEqual(["m0", "m1"]);
      expect(await codeOf(thread.undo())).toBe("NOTHING_TO_UNDO");
    },
  },
  ...(["rewind.intent", "restore.placed-one:2", "rewind.restored"] as const).map((killedAt) => ({
    name: `recovery of a rewind killed at ${killedAt}`,
    async before({ place }: Scene) {
      const { signal } = runSteps({ ...place, env: { AGENTREWIND_FAULT: killedAt } }, [{ op: "open" }, rewindStep]);
      expect(signal).toBe("SIGKILL");
    },
    steps: [{ op: "open" }, { op: "close" }],
    occurrences: killedAt === "rewind.intent" ? 3 : 1,
    async after(scene: Scene, rewind: Rewind) {
      expect(rewind.thread("t").head, "an intent is finished, not forgotten").toBe("c0");
      await afterRewind(scene, rewind);
    },
  })),
];

describe("F-16, F-20 to F-24: killed at every step", () => {
  const hit = new Set<string>();

  for (const scenario of scenarios) {
    test(scenario.name, { timeout: 300_000 }, async () => {
      const counted = await makeScene();
      await scenario.before?.(counted);
      const log = join(counted.place.base, "points");
      const whole = runSteps({ ...counted.place, env: { AGENTREWIND_FAULT_LOG: log } }, scenario.steps);
      for (const result of whole.results) expect(result.error, result.message).toBeUndefined();
      const counts = new Map<string, number>();
      for (const point of fs.readFileSync(log, "utf8").trim().split("\n"))
        if (scenario.points?.test(point) !== false) counts.set(point, (counts.get(point) ?? 0) + 1);
      const opened = await useRewind(counted.place);
      await scenario.after(counted, opened);
      await endSession(opened);

      for (const [point, count] of counts) {
        const last = Math.min(count, scenario.occurrences ?? 3);
        for (let nth = 1; nth <= last; nth++) {
          if (!long && nth > 1 && nth < last) continue;
          const at = `${point}:${nth}`;
          const scene = await makeScene();
          await scenario.before?.(scene);
          const ran = runSteps({ ...scene.place, env: { AGENTREWIND_FAULT: at } }, scenario.steps);
          // gc works in slices of time: how many there are is the machine's speed.
          if (point.startsWith("gc.") && nth > 1 && ran.signal === null) break;
          expect(ran.signal, `${at} was reached`).toBe("SIGKILL");
          hit.add(point);
          try {
            // Opened at once: the dead holder's lock is free (F-26).
            const rewind = await useRewind(scene.place);
            expect(await rewind.verify()).toEqual([]);
            expect(fs.readdirSync(scene.place.workspace).filter((name) => name.startsWith(".agentrewind"))).toEqual([]);
            await scenario.after(scene, rewind);
            await endSession(rewind);
          } catch (error) {
            (error as Error).message = `killed at ${at}: ${(error as Error).message}`;
            throw error;
          }
        }
      }
    });
  }

  test("every fault point was hit", () => {
    // Those of branches are reached in test/fork.test.ts, those of effects and checks in test/effects/crash.test.ts,
    // those of layers in test/sandbox/layers-crash.test.ts, those of apply in test/sandbox/apply.test.ts,
    // those of a sandbox's life in test/sandbox/crash.test.ts, those of bundles in test/bundle/crash.test.ts and test/sandbox/bundle.test.ts.
    const own = (Object.keys(faultPoints) as FaultPoint[]).filter(
      (point) => !/^(fork|branch|effect|verify|layers|apply|life|image|sandbox|export|import)\./.test(point),
    );
    const never = own.filter((point) => !hit.has(point));
    expect(never).toEqual([]);
  });
});

describe("two processes open one workspace at once", () => {
  test("F-26: exactly one wins, the others are told", async () => {
    for (let round = 0; round < 5; round++) {
      const place = makePlace();
      const start: Step = { op: "at", time: Date.now() + 1500 };
      const children = Array.from({ length: 4 }, () => startSteps(place, [start, { op: "open" }, { op: "hold" }]));
      const first = await Promise.all(
        children.map(
          (child) =>
            new Promise<string>((resolve) => {
              let output = "";
              child.stdout?.on("data", (data: Buffer) => {
                output += data;
                const lines = output.split("\n");
                if (lines.length > 2) resolve(lines[1] as string);
              });
            }),
        ),
      );
      const ended = children.map((child) => new Promise((resolve) => child.once("exit", resolve)));
      for (const child of children) child.kill("SIGKILL");
      await Promise.all(ended);
      const results = first.map((line) => JSON.parse(line) as { ok?: unknown; error?: string });
      expect(results.filter((one) => one.ok !== undefined).length, first.join()).toBe(1);
      expect(results.filter((one) => one.error === "ENVIRONMENT_BUSY").length, first.join()).toBe(3);
    }
  });
});

test("a new catalog can be opened by several at the same moment", async () => {
  const place = makePlace();
  const steps: Step[] = [{ op: "openCatalogs", folder: place.base, time: Date.now() + 1500, count: 150, everyMs: 12 }];
  const children = Array.from({ length: 4 }, () => startSteps(place, steps));
  const outputs = children.map(
    (child) =>
      new Promise<string>((resolve) => {
        let output = "";
        child.stdout?.on("data", (data: Buffer) => {
          output += data;
        });
        child.once("close", () => resolve(output.trim()));
      }),
  );
  for (const output of await Promise.all(outputs)) expect(output).toBe('{"op":"openCatalogs","ok":{"count":150}}');
});
