// Rules of docs/format.md that a session must hold: numbers, failed captures, the order of a rewind, staging, recovery, identity of workspaces.
import * as fs from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, test } from "vitest";
import { runSteps } from "../helpers/steps.ts";
import { codeOf, endSession, makePlace, type Place, useRewind } from "../helpers/workspace.ts";
import { context, digest, has, read, rows, sh, turn, twoTurns, write } from "./scene.ts";

const staging = (place: Place): string[] =>
  fs.readdirSync(place.workspace).filter((name) => name.startsWith(".agentrewind"));

const noChanges = { added: [], removed: [], changed: [], mode: [], type: [], renamed: [] };

/** c0 and c1, and work that no checkpoint holds; then a rewind to c0 in a process that is killed at `point`. */
async function killedRewind(point: string): Promise<{ place: Place; v0: string[]; v2: string[] }> {
  const place = makePlace();
  const first = await useRewind(place);
  const { v0 } = await twoTurns(first.thread("t"), place);
  await endSession(first);
  write(place, "unsaved.txt", "x");
  const v2 = digest(place);
  const ran = runSteps({ ...place, env: { AGENTREWIND_FAULT: point } }, [{ op: "open" }, { op: "rewind", to: "c0" }]);
  expect(ran.signal, point).toBe("SIGKILL");
  return { place, v0, v2 };
}

test("F-17: numbers are never reused: not after a rewind, a failed capture, or opening again", async () => {
  const place = makePlace();
  const first = await useRewind(place);
  const thread = first.thread("t");
  await twoTurns(thread, place);
  await thread.rewind({ to: "c0", delivery: "returned" });
  expect((await turn(thread, context("m0", "b"))).id).toBe("c2");
  const failed = await turn(thread, context("m0", "b", "c"), { signal: AbortSignal.abort() });
  expect(failed).toMatchObject({ id: "c3", state: "not-restorable" });
  await endSession(first);
  const again = (await useRewind(place)).thread("t");
  expect((await turn(again, context("m0", "b", "c"))).id).toBe("c4");
  const ids = again.checkpoints({ all: true }).map((one) => one.id);
  expect(ids).toEqual(["c0", "c1", "c2", "c3", "c4"]);
});

describe("F-18: a capture that failed", () => {
  test("is listed as not restorable with the reason, keeps its context, and the next turn is full", async () => {
    const place = makePlace();
    const thread = (await useRewind(place)).thread("t");
    await twoTurns(thread, place);
    write(place, "c.txt", "v2");
    const failed = await turn(thread, context("m0", "m1", "m2"), { signal: AbortSignal.abort(), tools: () => {} });
    expect(failed).toMatchObject({ id: "c2", state: "not-restorable", environment: { files: null } });
    expect(failed.reason).toMatch(/\w/);
    expect(thread.listText()).toContain(`c2 [turn 3] now (cannot be restored: ${failed.reason})`);
    expect((await thread.context("c2")).messages).toEqual(["m0", "m1", "m2"]);
    await expect(thread.rewind({ to: "c2" })).rejects.toMatchObject({
      code: "NOT_RESTORABLE",
      details: { checkpoint: "c2", nearest: "c1" },
    });

    write(place, "d.txt", "v3");
    const v3 = digest(place);
    const full = await turn(thread, context("m0", "m1", "m2", "m3"), { tools: () => {} });
    expect(full.state).toMatch(/captured|durable/);
    await thread.rewind({ to: "c0" });
    await thread.rewind({ to: full.id });
    expect(digest(place)).toEqual(v3);
    const contextOnly = await thread.rewind({ to: "c2", scope: "context" });
    expect(contextOnly.context.messages).toEqual(["m0", "m1", "m2"]);
    expect(digest(place)).toEqual(v3);
  });

  test("stops the turn with onCaptureFailure: stop, and can be taken again at the same boundary", async () => {
    const place = makePlace();
    write(place, "a.txt", "1");
    const thread = (await useRewind(place, { onCaptureFailure: "stop" })).thread("t");
    const begun = await thread.beginTurn(context("m0"), { anchor: "m0", signal: AbortSignal.abort() });
    expect(await codeOf(begun.gate())).toBe("CAPTURE_FAILED");
    expect(thread.get("c0").state).toBe("not-restorable");
    expect((await turn(thread, context("m0"), { anchor: "m0", tools: () => {} })).id).toBe("c1");
  });

  test("because the workspace vanished is listed, and a rewind makes the workspace again", async () => {
    const place = makePlace();
    const thread = (await useRewind(place)).thread("t");
    const { v1 } = await twoTurns(thread, place);
    fs.rmSync(place.workspace, { recursive: true });
    const failed = await turn(thread, context("m0", "m1", "m2"), { tools: () => {} });
    expect(failed.state).toBe("not-restorable");
    const result = await thread.rewind({ to: "c1" });
    expect(digest(place)).toEqual(v1);
    expect(result.restored.added).toContain("a.txt");
    write(place, "later.txt", "x");
    expect((await turn(thread, context("m0", "m1"))).changes?.added).toEqual(["later.txt"]);
  });
});

describe("F-22: the order of a rewind", () => {
  test("its steps come in the order of the format", async () => {
    const place = makePlace();
    const first = await useRewind(place);
    await twoTurns(first.thread("t"), place);
    await endSession(first);
    write(place, "unsaved.txt", "x");
    const log = join(place.base, "points");
    runSteps({ ...place, env: { AGENTREWIND_FAULT_LOG: log } }, [{ op: "open" }, { op: "rewind", to: "c0" }]);
    const points = fs.readFileSync(log, "utf8").trim().split("\n");
    const order = ["rewind.safety", "rewind.intent", "restore.planned", "restore.staged", "restore.removed-one"];
    order.push("restore.placed-one", "restore.applied", "restore.cleaned", "rewind.restored", "rewind.committed");
    expect(points.filter((point, index) => order.includes(point) && points.indexOf(point) === index)).toEqual(order);
  });

  test("before anything is overwritten the safety checkpoint is durable and the intent is open", async () => {
    for (const [point, intents] of [
      ["rewind.safety", []],
      ["restore.planned", ["open"]],
      ["rewind.restored", ["open"]],
      ["rewind.committed", ["done"]],
    ] as const) {
      const { place, v0, v2 } = await killedRewind(point);
      const safety = rows(place.store, "SELECT state, label FROM checkpoint WHERE kind = 'safety'");
      expect(safety, point).toEqual([{ state: "durable", label: null }]);
      expect(
        rows(place.store, "SELECT state FROM intent").map((row) => row.state),
        point,
      ).toEqual(intents);
      const restored = point === "rewind.restored" || point === "rewind.committed";
      expect(digest(place), point).toEqual(restored ? v0 : v2);
      expect(rows(place.store, "SELECT epoch FROM environment"), point).toEqual([
        { epoch: point === "rewind.committed" ? 1 : 0 },
      ]);
    }
  });
});

describe("F-23: the staging folder", () => {
  test("is never part of a snapshot, and removed", async () => {
    const { place, v0, v2 } = await killedRewind("restore.staged");
    expect(staging(place).length).toBe(1);
    const thread = (await useRewind(place)).thread("t");
    expect(staging(place)).toEqual([]);
    expect(digest(place)).toEqual(v0);
    // The folder moved the root's time, so the mix is kept (F-24): nothing else differs from what was left.
    expect(thread.get("c3").label).toContain("interrupted rewind");
    expect((await thread.diff("c2", "c3")).files).toEqual(noChanges);
    await thread.undo();
    expect(staging(place)).toEqual([]);
    expect(digest(place)).toEqual(v2);
    await thread.rewind({ to: "c3" });
    expect(staging(place)).toEqual([]);
  });

  test("has a name of its own: a folder of the person with a like name is content", async () => {
    const place = makePlace();
    const thread = (await useRewind(place)).thread("t");
    write(place, ".agentrewind-notes/mine.txt", "mine");
    await twoTurns(thread, place);
    fs.rmSync(join(place.workspace, ".agentrewind-notes"), { recursive: true });
    await thread.rewind({ to: "c0" });
    expect(read(place, ".agentrewind-notes/mine.txt")).toBe("mine");
  });
});

test("F-24: what is found after a killed restore is kept, with what a person did to it since", async () => {
  const { place, v0, v2 } = await killedRewind("restore.placed-one");
  write(place, "a.txt", "edited by hand in the mix");
  write(place, "hand.txt", "new by hand");
  const withoutStaging = (lines: string[]): string[] =>
    lines.filter((line) => !line.startsWith('".agentrewind-') && !line.startsWith('"" '));
  const found = withoutStaging(digest(place));
  const thread = (await useRewind(place)).thread("t");
  expect(digest(place), "the rewind is finished").toEqual(v0);
  expect(thread.head).toBe("c0");
  const kept = thread.checkpoints({ all: true }).filter((one) => one.label?.includes("interrupted rewind to c0"));
  expect(kept.map((one) => one.kind)).toEqual(["safety"]);
  await thread.rewind({ to: kept[0]?.id as string });
  expect(withoutStaging(digest(place))).toEqual(found);
  expect(read(place, "hand.txt")).toBe("new by hand");
  await thread.undo();
  await thread.undo();
  expect(digest(place)).toEqual(v2);
});

test("F-1: a store of a newer format is refused, and left as it is", async () => {
  const place = makePlace();
  const first = await useRewind(place);
  await twoTurns(first.thread("t"), place);
  await endSession(first);
  const catalog = join(place.store, "catalog.db");
  const setVersion = (version: number): number => {
    const sql = new Database(catalog);
    const before = sql.pragma("user_version", { simple: true }) as number;
    sql.pragma(`user_version = ${version}`);
    sql.close();
    return before;
  };
  const version = setVersion(99);
  const bytes = fs.readFileSync(catalog);
  expect(await codeOf(useRewind(place))).toBe("STORE_TOO_NEW");
  expect(fs.readFileSync(catalog).equals(bytes)).toBe(true);
  expect(setVersion(version)).toBe(99);
  expect((await useRewind(place)).thread("t").head).toBe("c1");
});

test("a second turn at the head's own boundary is the same checkpoint", async () => {
  const place = makePlace();
  const thread = (await useRewind(place)).thread("t");
  await twoTurns(thread, place);
  const retried = await thread.beginTurn(context("m0", "m1"), { anchor: "m1" });
  expect(retried.id).toBe("c1");
  expect((await retried.gate()).id).toBe("c1");
  expect((await retried.durable).id).toBe("c1");
  expect(thread.checkpoints({ all: true }).length).toBe(2);
  expect((await turn(thread, context("m0", "m1", "m2"), { anchor: "m2" })).id).toBe("c2");
});

describe("which workspace it is", () => {
  test("a moved one is found again with its threads", async () => {
    const place = makePlace();
    const first = await useRewind(place);
    const { v0 } = await twoTurns(first.thread("t"), place);
    await endSession(first);
    const moved = { ...place, workspace: join(place.base, "moved") };
    fs.renameSync(place.workspace, moved.workspace);
    const rewind = await useRewind(moved);
    expect(rewind.threads()).toEqual(["t"]);
    await rewind.thread("t").rewind({ to: "c0" });
    expect(digest(moved)).toEqual(v0);
    expect(has(place, "a.txt"), "nothing appears at the old path").toBe(false);
  });

  test("a copied one is new, and the first keeps its threads", async () => {
    const place = makePlace();
    const first = await useRewind(place);
    const { v1 } = await twoTurns(first.thread("t"), place);
    const copy = { ...place, workspace: join(place.base, "copy") };
    sh(place.base, "cp -a workspace copy");
    const second = await useRewind(copy);
    expect(second.threads()).toEqual([]);
    expect((await second.thread("t").checkpoint()).id).toBe("c0");
    write(copy, "a.txt", "in the copy");
    await second.thread("t").rewind({ to: "c0" });
    expect(digest(place)).toEqual(v1);
    expect(first.thread("t").head).toBe("c1");
  });
});
