// prune and gc: what stays, what goes, what the disk gets back; beside writers, killed, and on a full disk.

import type { ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import * as fs from "node:fs";
import { join } from "node:path";
import type { Rewind } from "agentrewind";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Built, buildLibrary } from "./helpers/build.ts";
import { digestTree } from "./helpers/digest.ts";
import { startSteps } from "./helpers/steps.ts";
import { codeOf, endSession, makePlace, type Place, useRewind } from "./helpers/workspace.ts";
import { context, rows, turn, write } from "./invariants/scene.ts";

let built: Built;
beforeAll(() => {
  built = buildLibrary();
});
afterAll(() => built.remove());

/** The lines that a process printed until it ended. */
const ended = (child: ChildProcess): Promise<string[]> =>
  new Promise((resolve) => {
    let output = "";
    child.stdout?.on("data", (data: Buffer) => {
      output += data;
    });
    child.once("close", () => resolve(output.trim().split("\n")));
  });

const packs = (place: Place): string[] => fs.readdirSync(join(place.store, "packs"));
const packBytes = (place: Place): number =>
  packs(place)
    .map((name) => fs.statSync(join(place.store, "packs", name)).size)
    .reduce((sum, size) => sum + size, 0);
const digest = (place: Place): string[] => digestTree(place.workspace);
const ids = (rewind: Rewind, thread = "t"): string[] =>
  rewind
    .thread(thread)
    .checkpoints({ all: true })
    .map((one) => one.id);

/** Turns that each replace `big` by other bytes; returns the trees. */
async function turns(rewind: Rewind, place: Place, from: number, count: number, size = 10_000): Promise<string[][]> {
  const trees: string[][] = [];
  for (let i = from; i < from + count; i++) {
    write(place, "big", randomBytes(size).toString("base64"));
    write(place, `d${i % 7}/f`, `${i}`);
    trees[i] = digest(place);
    const messages = Array.from({ length: i + 1 }, (_, n) => `m${n}`);
    await turn(rewind.thread("t"), context(...messages), { anchor: `m${i}`, tools: () => {} });
  }
  return trees;
}

describe("prune", () => {
  test("F-37: 200 turns pruned to 20: kept points load and rewind, rows are bounded, the disk gets its room back", async () => {
    const place = makePlace();
    const rewind = await useRewind(place);
    const trees = await turns(rewind, place, 0, 200);
    const before = packBytes(place);
    const { pruned, kept, gc } = await rewind.prune({ keepLast: 20 });
    expect(kept).toBe(20);
    expect(pruned.length).toBe(180);
    expect(pruned[0]).toEqual({ thread: "t", id: "c0" });
    expect(gc?.objects).toBeGreaterThan(180);
    expect(packBytes(place)).toBeLessThan(before / 5);
    expect(gc?.bytes).toBe(before - packBytes(place));
    for (const table of ["checkpoint", "manifest"]) {
      expect(rows(place.store, `SELECT count(*) AS n FROM ${table}`)[0]?.n).toBeLessThan(45);
    }
    expect(ids(rewind)).toEqual(Array.from({ length: 20 }, (_, i) => `c${180 + i}`));
    expect(await rewind.verify()).toEqual([]);

    const thread = rewind.thread("t");
    expect(thread.get("c180")).toMatchObject({ parent: null, pruned: 180 });
    expect((await thread.context("c185")).messages.length).toBe(186);
    const back = await thread.rewind({ to: "c185" });
    expect(digest(place)).toEqual(trees[185]);
    expect(back.context.messages.length).toBe(186);
    expect(await codeOf(thread.rewind({ to: "c5" }))).toBe("UNKNOWN_CHECKPOINT");
    await turns(rewind, place, 186, 1);
    expect(ids(rewind).at(-1), "numbers are not reused").toBe("c200");
    await thread.undo();
    expect(digest(place)).toEqual(trees[199]);
  });
});

describe("beside others", () => {
  test("F-32, F-33: gc beside writers that find again what it is about to delete", { timeout: 300_000 }, async () => {
    const place = makePlace();
    const until = join(place.base, "stop");
    const workspaces = ["one", "two"].map((name) => {
      const workspace = join(place.base, name);
      fs.mkdirSync(workspace);
      return { workspace, store: place.store };
    });
    const writers = workspaces.map((at, seed) =>
      ended(startSteps(built, at, [{ op: "open" }, { op: "churn", rounds: 40, seed }])),
    );
    const collectors = [0, 1].map(() => ended(startSteps(built, place, [{ op: "gcLoop", until }])));
    const churned = await Promise.all(writers);
    fs.writeFileSync(until, "");
    const collected = await Promise.all(collectors);
    for (const lines of churned) expect(lines.at(-1), lines.join("\n")).toBe('{"op":"churn","ok":[]}');
    for (const lines of collected) {
      const { ok } = JSON.parse(lines.at(-1) as string);
      expect(ok, lines.join("\n")).toBeDefined();
      expect(ok.objects).toBeGreaterThan(0);
    }
    for (const { workspace } of workspaces) await endSession(await useRewind({ ...place, workspace }));
  });
});
