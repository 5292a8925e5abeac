// SIGKILL at every step of checkpoint, rewind, undo and recovery; a full disk; two writers at once.

import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import * as fs from "node:fs";
import { join } from "node:path";
import type { Rewind } from "agentrewind";
import Database from "better-sqlite3";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type FaultPoint, faultPoints } from "../src/faults.ts";
import { lacking } from "./capabilities.ts";
import { type Built, buildLibrary } from "./helpers/build.ts";
import { digestTree } from "./helpers/digest.ts";
import { runSteps, type Step, startSteps } from "./helpers/steps.ts";
import { codeOf, endSession, makePlace, type Place, useRewind } from "./helpers/workspace.ts";

let built: Built;
beforeAll(() => {
  built = buildLibrary();
});
afterAll(() => built.remove());

const sh = (cwd: string, command: string): string =>
  execFileSync("bash", ["--norc", "-c", command], { cwd, encoding: "utf8", stdio: "pipe" });
const digest = (place: Place): string[] => digestTree(place.workspace);

/** Three states that differ in every way that a restore treats differently. */
const states = [
  `mkdir -p d/sub gone; echo 1 > a; echo 1 > b; echo same > same; echo 1 > d/f; echo 1 > d/sub/g; ln -s a l; ln a d/hard
   chmod 600 same; echo 1 > gone/x; mkfifo p; head -c 300000 /dev/zero > big`,
  "echo 2 > a; rm b; mkdir b; echo 2 > b/in; chmod 644 same; rm -r gone; ln -sf b l; echo 2 > new; chmod 700 d",
  "echo 3 > d/f; rm -r b; rm p; mkdir -p deep/er; echo 3 > deep/er/x; echo 3 >> big; ln new new2; touch d/sub; chmod 711 d/sub",
] as const;

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
  sh(place.workspace, states[0]);
  const v0 = digest(place);
  await thread.checkpoint({ context: context("m0") });
  sh(place.workspace, states[1]);
  const v1 = digest(place);
  await thread.checkpoint({ context: context("m0", "m1") });
  sh(place.workspace, states[2]);
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
  /** How many occurrences of one point are tried. */
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
      const { signal } = runSteps(built, { ...place, env: { AGENTREWIND_FAULT: killedAt } }, [
        { op: "open" },
        rewindStep,
      ]);
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
      const whole = runSteps(built, { ...counted.place, env: { AGENTREWIND_FAULT_LOG: log } }, scenario.steps);
      for (const result of whole.results) expect(result.error, result.message).toBeUndefined();
      const counts = new Map<string, number>();
      for (const point of fs.readFileSync(log, "utf8").trim().split("\n"))
        if (scenario.points?.test(point) !== false) counts.set(point, (counts.get(point) ?? 0) + 1);
      const opened = await useRewind(counted.place);
      await scenario.after(counted, opened);
      await endSession(opened);

      for (const [point, count] of counts) {
        for (let nth = 1; nth <= Math.min(count, scenario.occurrences ?? 3); nth++) {
          const at = `${point}:${nth}`;
          const scene = await makeScene();
          await scenario.before?.(scene);
          const ran = runSteps(built, { ...scene.place, env: { AGENTREWIND_FAULT: at } }, scenario.steps);
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
    // Those of branches are reached in test/fork.test.ts.
    const own = (Object.keys(faultPoints) as FaultPoint[]).filter((point) => !/^(fork|branch)\./.test(point));
    const never = own.filter((point) => !hit.has(point));
    expect(never).toEqual([]);
  });
});

describe("two processes open one workspace at once", () => {
  test("F-26: exactly one wins, the others are told", async () => {
    for (let round = 0; round < 5; round++) {
      const place = makePlace();
      const start: Step = { op: "at", time: Date.now() + 1500 };
      const children = Array.from({ length: 4 }, () =>
        startSteps(built, place, [start, { op: "open" }, { op: "hold" }]),
      );
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
  const children = Array.from({ length: 4 }, () => startSteps(built, place, steps));
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

describe("a full disk", () => {
  const mounts: string[] = [];
  const mountSmall = (place: Place, size: string): string => {
    const small = join(place.base, "small");
    fs.mkdirSync(small);
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${size}`, "tmpfs", small]);
    mounts.push(small);
    return small;
  };
  const fill = (folder: string): string => {
    const file = join(folder, "filler");
    const fd = fs.openSync(file, "w");
    try {
      for (const size of [1 << 16, 4096]) {
        try {
          for (;;) fs.writeSync(fd, Buffer.alloc(size, 1));
        } catch (error) {
          expect((error as NodeJS.ErrnoException).code).toBe("ENOSPC");
        }
      }
    } finally {
      fs.closeSync(fd);
    }
    return file;
  };
  const canMount = !lacking("tmpfs");
  const when = test.skipIf(!canMount);
  const title = canMount ? "" : " (needs root and mount)";

  async function within(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } finally {
      for (const small of mounts.splice(0)) execFileSync("umount", ["-l", small]);
    }
  }

  when(`of the store: a checkpoint fails, the next one succeeds${title}`, () =>
    within(async () => {
      const place = { ...makePlace() };
      const store = join(mountSmall(place, "8m"), "store");
      sh(place.workspace, "echo 1 > f");
      const rewind = await useRewind(place, { store });
      const thread = rewind.thread("t");
      await thread.checkpoint({ context: context("m0") });
      const v0 = digest(place);
      sh(place.workspace, "echo 2 > f; head -c 1000000 /dev/urandom > g");
      const v1 = digest(place);
      const filler = fill(join(place.base, "small"));
      const failed = await thread.checkpoint({ context: context("m0", "m1") }).then(
        (made) => `${made.state}: ${made.reason}`,
        (error: { code: string }) => error.code,
      );
      expect(failed).toMatch(/^DISK_FULL$|^not-restorable: No space left/);
      expect(digest(place)).toEqual(v1);
      fs.rmSync(filler);
      expect(await rewind.verify()).toEqual([]);
      const good = await thread.checkpoint({ context: context("m0", "m1") });
      expect(good.state).toBe("captured");
      await thread.rewind({ to: "c0" });
      expect(digest(place)).toEqual(v0);
      await thread.rewind({ to: good.id });
      expect(digest(place)).toEqual(v1);
      await endSession(rewind);
    }),
  );

  const attempts: readonly {
    name: string;
    prepare?: (rewind: Rewind) => Promise<unknown>;
    run: (rewind: Rewind) => Promise<unknown>;
  }[] = [
    {
      name: "checkpoint",
      run: async (rewind) => {
        const made = await rewind.thread("t").checkpoint({ context: context("m0", "y".repeat(50_000)) });
        if (made.state === "not-restorable") throw Object.assign(new Error(made.reason ?? ""), { code: "DISK_FULL" });
      },
    },
    { name: "rewind", run: (rewind) => rewind.thread("t").rewind({ to: "c0", lesson: "z".repeat(900) }) },
    {
      name: "undo",
      prepare: (rewind) => rewind.thread("t").rewind({ to: "c0" }),
      run: (rewind) => rewind.thread("t").undo(),
    },
    {
      name: "prune with its gc",
      async prepare(rewind) {
        const thread = rewind.thread("t");
        thread.label("kept", "c0");
        const junk = join(rewind.workspace, "junk");
        fs.writeFileSync(junk, randomBytes(500_000));
        await thread.checkpoint({ context: context("m0", "junk") });
        fs.rmSync(junk);
        await thread.checkpoint({ context: context("m0", "m1") });
      },
      async run(rewind) {
        const { gc } = await rewind.prune({ keepLast: 1 });
        if (gc?.postponed.join().includes("no room")) throw Object.assign(new Error(), { code: "DISK_FULL" });
      },
    },
  ];
  for (const { name, prepare, run } of attempts) {
    // SQLite's own writes fail here too, each at some fill.
    when(`F-6, F-16, F-22, F-36: of the store, full at every point of a ${name}${title}`, { timeout: 1_200_000 }, () =>
      within(async () => {
        const place = makePlace();
        const small = mountSmall(place, "24m");
        const store = join(small, "store");
        sh(place.workspace, "echo 1 > f; seq 9000 > g; mkdir d; echo 1 > d/x");
        const rewind = await useRewind(place, { store });
        const thread = rewind.thread("t");
        await thread.checkpoint({ context: context("m0") });
        const v0 = digest(place);
        let failures = 0;
        for (let free = 0, whole = 0; whole < 2; free += process.env.AGENTREWIND_LONG === "1" ? 4 : 32) {
          sh(
            place.workspace,
            `echo ${free} > f; seq ${free} 20000 > g; rm -rf d; mkdir e 2>/dev/null; echo ${free} > e/y`,
          );
          const edited = digest(place);
          await prepare?.(rewind);
          const before = digest(place);
          // What is kept back for gc would spare it from failing.
          fs.rmSync(join(store, "reserve"), { force: true });
          const filler = fill(small);
          fs.truncateSync(filler, fs.statSync(filler).size - free * 1024);
          const code = await run(rewind).then(
            () => undefined,
            (error: { code: string }) => error.code,
          );
          fs.rmSync(filler);
          const at = `with ${free} KiB free`;
          const wanted = { rewind: v0, undo: edited }[name] ?? before;
          expect([undefined, "DISK_FULL", "RESTORE_FAILED"], at).toContain(code);
          expect(await rewind.verify(), at).toEqual([]);
          if (code === undefined) whole++;
          else {
            failures++;
            // What could not even be put back was finished by the first that came after it.
            const finished = code === "RESTORE_FAILED" && digest(place).join() === wanted.join();
            if (!finished) {
              expect(digest(place), at).toEqual(before);
              await run(rewind);
            }
          }
          expect(digest(place), at).toEqual(wanted);
        }
        expect(failures).toBeGreaterThan(0);
        await thread.rewind({ to: "c0" });
        expect(digest(place)).toEqual(v0);
        await endSession(rewind);
      }),
    );
  }

  when(`of the store: a rewind whose present state cannot be kept is refused${title}`, () =>
    within(async () => {
      const place = makePlace();
      const store = join(mountSmall(place, "8m"), "store");
      sh(place.workspace, "echo 1 > f");
      const rewind = await useRewind(place, { store });
      const thread = rewind.thread("t");
      await thread.checkpoint({ context: context("m0") });
      const v0 = digest(place);
      sh(place.workspace, "echo 2 > f; head -c 3000000 /dev/urandom > g");
      const v1 = digest(place);
      const filler = fill(join(place.base, "small"));
      expect(await codeOf(thread.rewind({ to: "c0" }))).toBe("DISK_FULL");
      expect(digest(place)).toEqual(v1);
      expect(thread.head).toBe("c0");
      fs.rmSync(filler);
      await thread.rewind({ to: "c0" });
      expect(digest(place)).toEqual(v0);
      await thread.undo();
      expect(digest(place)).toEqual(v1);
      await endSession(rewind);
    }),
  );

  when(`of the workspace: a rewind fails before it touches anything${title}`, () =>
    within(async () => {
      const place = makePlace();
      const small = mountSmall(place, "8m");
      const workspace = join(small, "workspace");
      fs.mkdirSync(workspace);
      sh(workspace, "echo 1 > f; head -c 2000000 /dev/urandom > g; mkdir d; echo 1 > d/x");
      const rewind = await useRewind(place, { workspace });
      const thread = rewind.thread("t");
      const v0 = digestTree(workspace);
      await thread.checkpoint({ context: context("m0") });
      sh(workspace, "echo 2 > f; rm -r g d; mkdir e");
      const v1 = digestTree(workspace);
      const filler = fill(small);
      expect(await codeOf(thread.rewind({ to: "c0" }))).toBe("DISK_FULL");
      expect(digestTree(workspace)).toEqual(v1);
      expect(thread.head).toBe("c0");
      expect(await rewind.verify()).toEqual([]);
      fs.rmSync(filler);
      await thread.rewind({ to: "c0" });
      expect(digestTree(workspace)).toEqual(v0);
      await endSession(rewind);
    }),
  );

  when(`F-24: a killed rewind that a full disk keeps from being finished is finished later${title}`, () =>
    within(async () => {
      const place = makePlace();
      const small = mountSmall(place, "8m");
      const workspace = join(small, "workspace");
      fs.mkdirSync(workspace);
      sh(workspace, "echo 1 > f; head -c 2000000 /dev/urandom > g");
      const rewind = await useRewind(place, { workspace });
      const v0 = digestTree(workspace);
      await rewind.thread("t").checkpoint({ context: context("m0") });
      sh(workspace, "rm g; echo 2 > f");
      const v1 = digestTree(workspace);
      await rewind.thread("t").checkpoint({ context: context("m0", "m1") });
      await endSession(rewind);
      const ran = runSteps(built, { workspace, store: place.store, env: { AGENTREWIND_FAULT: "rewind.intent" } }, [
        { op: "open" },
        { op: "rewind", to: "c0" },
      ]);
      expect(ran.signal).toBe("SIGKILL");
      const filler = fill(small);
      const again = await useRewind(place, { workspace });
      expect(again.thread("t").head, "undone").toBe("c1");
      expect(digestTree(workspace)).toEqual(v1);
      fs.rmSync(filler);
      await again.thread("t").rewind({ to: "c0" });
      expect(digestTree(workspace)).toEqual(v0);
      await endSession(again);
    }),
  );
});
