// SIGKILL at every step of an export and an import, and at any moment: nothing that looks whole, nothing half in a store, and the same call goes through after it.
import { once } from "node:events";
import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { importBundle } from "agentrewind";
import Database from "better-sqlite3";
import { beforeAll, describe, expect, test } from "vitest";
import { type FaultPoint, faultPoints } from "../../src/faults.ts";
import { runSteps, type Step, startSteps } from "../helpers/steps.ts";
import { endSession, useRewind } from "../helpers/workspace.ts";
import { context, digest, exported, makeExporter, makeTarget, sh } from "./scene.ts";

/** How often a point that is passed again and again is tried. */
const occurrences = 2;
const hit = new Set<string>();

function pointsOf(log: string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const point of fs.readFileSync(log, "utf8").trim().split("\n")) counts.set(point, (counts.get(point) ?? 0) + 1);
  return counts;
}

/** How many workspaces a store has; it may have been killed before its catalog had tables. */
function parts(store: string): number {
  if (!fs.existsSync(join(store, "catalog.db"))) return 0;
  const sql = new Database(join(store, "catalog.db"));
  try {
    const isMade = sql.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'workspace'").get() !== undefined;
    return isMade ? (sql.prepare("SELECT count(*) FROM workspace").pluck().get() as number) : 0;
  } finally {
    sql.close();
  }
}

describe("F-72: an import that is killed", () => {
  let file: string;
  let tree: string[];
  beforeAll(async () => {
    const exporter = await makeExporter();
    const kept = fs.mkdtempSync(join(tmpdir(), "agentrewind-bundle-"));
    file = join(kept, "t.bundle");
    fs.copyFileSync(await exported(exporter), file);
    tree = exporter.trees[1] as string[];
    await endSession(exporter.rewind);
    return () => fs.rmSync(kept, { recursive: true });
  });

  /** Nothing of it is there, or all; then it is done again, and all is there once. */
  async function expectWhole(target: ReturnType<typeof makeTarget>): Promise<void> {
    const into = target.into("a");
    const place = { base: "", workspace: into, store: target.store };
    const known = parts(target.store);
    if (known === 0) {
      const made = await importBundle(file, { store: target.store, into });
      expect(made).toMatchObject({ checkpoint: "c3", notRestored: [] });
    }
    expect(parts(target.store)).toBe(1);
    expect(fs.readdirSync(target.base).sort()).toEqual(["a", "store", "workspace"]);
    expect(fs.readdirSync(join(target.store, "imports"))).toEqual(known === 0 ? [] : expect.anything());
    expect(digest(into)).toEqual(tree);
    const rewind = await useRewind(place);
    expect(await rewind.verify()).toEqual([]);
    expect((await rewind.gc()).postponed).toEqual([]);
    await rewind.thread("t").rewind({ to: "c0" });
    await endSession(rewind);
    // What the killed one noted goes with the next.
    const next = await importBundle(file, { store: target.store, into: target.into("next") });
    expect(next.checkpoint).toBe("c3");
    expect(fs.readdirSync(join(target.store, "imports"))).toEqual([]);
    expect(digest(into).length).toBeGreaterThan(0);
  }

  test("at every step of it", async () => {
    const steps = (into: string): Step[] => [{ op: "import", file, into }];
    const counted = makeTarget();
    const log = join(counted.base, "points");
    const whole = runSteps(
      { workspace: "", store: counted.store, env: { AGENTREWIND_FAULT_LOG: log } },
      steps(counted.into("a")),
    );
    expect(whole.results[0]?.error, whole.results[0]?.message).toBeUndefined();
    for (const [point, count] of pointsOf(log)) {
      for (let nth = 1; nth <= Math.min(count, occurrences); nth++) {
        const target = makeTarget();
        const at = `${point}:${nth}`;
        const ran = runSteps(
          { workspace: "", store: target.store, env: { AGENTREWIND_FAULT: at } },
          steps(target.into("a")),
        );
        expect([at, ran.signal]).toEqual([at, "SIGKILL"]);
        hit.add(point);
        try {
          await expectWhole(target);
        } catch (error) {
          (error as Error).message = `killed at ${at}: ${(error as Error).message}`;
          throw error;
        }
      }
    }
  });

  test("at any moment", async () => {
    const rounds = process.env.AGENTREWIND_LONG === "1" ? 100 : 6;
    for (let round = 0; round < rounds; round++) {
      const target = makeTarget();
      const child = startSteps({ workspace: "", store: target.store }, [
        { op: "import", file, into: target.into("a") },
        { op: "hold" },
      ]);
      const said = once(child.stdout as NodeJS.ReadableStream, "data");
      await Promise.race([said, sleep(300 + Math.random() * 300)]);
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
      await expectWhole(target);
    }
  });

  test("leaves one that runs alone", async () => {
    const target = makeTarget();
    const files = Array.from({ length: 3 }, (_, index) => target.into(`w${index}`));
    const made = await Promise.all(files.map((into) => importBundle(file, { store: target.store, into })));
    expect(made.map((one) => one.workspace)).toEqual(files);
    for (const workspace of files) {
      expect(digest(workspace)).toEqual(tree);
      await endSession(await useRewind({ base: "", workspace, store: target.store }));
    }
  });
});

describe("F-70: an export that is killed", () => {
  test("at every step of it leaves no bundle, or a whole one; and the agent's files are as they were", async () => {
    for (const point of ["export.written", "export.placed"] as const) {
      const exporter = await makeExporter();
      await endSession(exporter.rewind);
      const { place } = exporter;
      const before = digest(place.workspace);
      const to = join(place.base, "t.bundle");
      const ran = runSteps({ ...place, env: { AGENTREWIND_FAULT: point } }, [{ op: "open" }, { op: "export", to }]);
      expect([point, ran.signal]).toEqual([point, "SIGKILL"]);
      hit.add(point);
      expect(fs.existsSync(to)).toBe(point === "export.placed");
      expect(digest(place.workspace)).toEqual(before);
      const target = makeTarget();
      const again = join(place.base, "again.bundle");
      const rewind = await useRewind(place);
      await rewind.export({ to: again });
      for (const file of point === "export.placed" ? [to, again] : [again]) {
        const { workspace } = await importBundle(file, { store: target.store, into: target.into(file.slice(-8)) });
        expect(digest(workspace)).toEqual(exporter.trees[1]);
      }
    }
  });

  test("beside a turn that goes on, it holds a moment", async () => {
    const exporter = await makeExporter();
    const { rewind, place } = exporter;
    const thread = rewind.thread("t");
    sh(place.workspace, "head -c 20000000 /dev/urandom > large");
    await thread.checkpoint({ context: context("m0", "large") });
    const head = thread.head as string;
    const to = join(place.base, "t.bundle");
    const work = rewind.export({ to });
    for (let n = 0; n < 5; n++) {
      fs.writeFileSync(join(place.workspace, "meanwhile"), `${n}`);
      await thread.checkpoint({ context: context("m0", `${n}`) });
    }
    await rewind.prune({ keepLast: 1 });
    expect((await work).checkpoints).toBe(5);
    const target = makeTarget();
    const made = await importBundle(to, { store: target.store, into: target.into("a") });
    expect(made.checkpoint).toBe(head);
    const arrived = await useRewind({ ...place, ...target, workspace: made.workspace });
    expect(await arrived.verify()).toEqual([]);
  });
});

test("every fault point of bundles of directories was hit", () => {
  const own = (Object.keys(faultPoints) as FaultPoint[]).filter((point) => /^(export|import)\./.test(point));
  const ofSandboxes = ["import.state-landed", "import.images-landed"];
  expect(own.filter((point) => !hit.has(point) && !ofSandboxes.includes(point))).toEqual([]);
});
