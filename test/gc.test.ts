// prune and gc: what stays, what goes, what the disk gets back; beside writers, killed, and on a full disk.

import { type ChildProcess, execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import * as fs from "node:fs";
import { join } from "node:path";
import type { Rewind } from "agentrewind";
import { describe, expect, test } from "vitest";
import { lacking } from "./capabilities.ts";
import { digestTree } from "./helpers/digest.ts";
import { runSteps, startSteps } from "./helpers/steps.ts";
import { codeOf, endSession, makePlace, type Place, useRewind } from "./helpers/workspace.ts";
import { context, rows, turn, write } from "./invariants/scene.ts";

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
      ended(startSteps(at, [{ op: "open" }, { op: "churn", rounds: 40, seed }])),
    );
    const collectors = [0, 1].map(() => ended(startSteps(place, [{ op: "gcLoop", until }])));
    const churned = await Promise.all(writers);
    fs.writeFileSync(until, "");
    const collected = await Promise.all(collectors);
    for (const lines of churned) expect(lines.at(-1), lines.join("\n")).toBe('{"op":"churn","ok":[]}');
    // Of two that come at once one is refused, and the writers prune as well: nobody's share is certain.
    const taken = collected.map((lines) => {
      const { ok } = JSON.parse(lines.at(-1) as string);
      expect(ok, lines.join("\n")).toBeDefined();
      return ok.objects as number;
    });
    expect((taken[0] as number) + (taken[1] as number)).toBeGreaterThan(0);
    for (const { workspace } of workspaces) await endSession(await useRewind({ ...place, workspace }));
  });
});

describe("what stays", () => {
  test("F-37: checkpoints that hold no files count for nothing: the newest that do are kept", async () => {
    const place = makePlace();
    const rewind = await useRewind(place);
    const thread = rewind.thread("t");
    for (let i = 0; i < 3; i++) {
      write(place, "f", `${i}`);
      await thread.checkpoint();
    }
    for (let i = 0; i < 3; i++) {
      const failed = await thread.beginTurn(context(`m${i}`), { signal: AbortSignal.abort() });
      expect((await failed.gate()).state).toBe("not-restorable");
    }
    expect((await rewind.prune({ keepLast: 1 })).pruned.map((one) => one.id)).toEqual(["c0", "c1", "c3", "c4"]);
    expect(ids(rewind)).toEqual(["c2", "c5"]);
    await rewind.prune({ keepLast: 0 });
    expect(ids(rewind)).toEqual(["c2", "c5"]);
    write(place, "f", "lost");
    await thread.rewind({ to: "c2" });
    expect(fs.readFileSync(join(place.workspace, "f"), "utf8")).toBe("2");
  });

  test("F-37: labels, heads, what an undo needs, and where kept lines part; the tree closes over the rest", async () => {
    const place = makePlace();
    const rewind = await useRewind(place);
    const thread = rewind.thread("t");
    for (let i = 0; i < 12; i++) {
      write(place, "f", `${i}`);
      write(place, `only-${i}`, "x");
      await turn(thread, context(`m${i}`), { anchor: `m${i}`, tools: () => {} });
    }
    thread.label("green", "c2");
    const left = digest(place);
    // The line of c12 and c13 parts from the first at c5.
    await thread.rewind({ to: "c5", lesson: "not that way", delivery: "returned" });
    for (const n of ["b0", "b1"]) {
      write(place, "f", n);
      await turn(thread, context(n), { anchor: n, tools: () => {} });
    }
    expect(ids(rewind)).toHaveLength(14);
    const planned = await rewind.prune({ keepLast: 1, dryRun: true });
    expect(ids(rewind), "a dry run changes nothing").toHaveLength(14);
    const { pruned, kept } = await rewind.prune({ keepLast: 1 });
    expect(pruned).toEqual(planned.pruned);
    expect(kept).toBe(4);
    // c11 is what the rewind left.
    expect(ids(rewind)).toEqual(["c2", "c5", "c11", "c13"]);
    const shape = thread.checkpoints({ all: true }).map(({ id, parent, pruned: between }) => [id, parent, between]);
    expect(shape).toEqual([
      ["c2", null, 2],
      ["c5", "c2", 2],
      ["c11", "c5", 5],
      ["c13", "c5", 1],
    ]);
    expect(thread.get("c5").changes?.added, "told against the parent that it has now").toEqual([
      "only-3",
      "only-4",
      "only-5",
    ]);
    expect(thread.listText()).toContain("(2 between c2 and c5: pruned, cannot be returned to)");
    expect(thread.lessons()).toMatchObject([{ text: "not that way", from: "c11", to: "c5" }]);
    await thread.undo();
    expect(digest(place)).toEqual(left);
    expect((await thread.rewind({ to: "c2" })).context.messages).toEqual(["m2"]);

    await rewind.prune({ keepLast: 0, keepWithin: "1d" });
    expect(ids(rewind), "what is young stays, whatever its number").toHaveLength(4);
    expect(await codeOf(rewind.prune({}))).toBe("BAD_ARGUMENT");
    expect(await codeOf(rewind.prune({ keepWithin: "soon" }))).toBe("BAD_ARGUMENT");
    expect(await codeOf(rewind.prune({ keepLast: 1, threads: ["other"] }))).toBe("NO_THREAD");
  });

  test("a rewind whose left state was pruned cannot be undone, and says so", async () => {
    const place = makePlace();
    const rewind = await useRewind(place);
    const thread = rewind.thread("t");
    await turns(rewind, place, 0, 3, 10);
    await thread.rewind({ to: "c0", delivery: "returned", key: "one" });
    await turns(rewind, place, 4, 3, 10);
    await thread.rewind({ to: "c0", delivery: "returned", key: "two" });
    await rewind.prune({ keepLast: 0 });
    await thread.undo();
    expect(await codeOf(thread.undo())).toBe("NOTHING_TO_UNDO");
    expect(await codeOf(thread.rewind({ to: "c0", key: "one" }))).toBe("UNKNOWN_CHECKPOINT");
  });

  test("a person's changes in a pruned stretch are not taken for the agent's, nor the agent's for a person's", async () => {
    const place = makePlace();
    const rewind = await useRewind(place);
    const thread = rewind.thread("t");
    await turn(thread, context("m0"));
    await turn(thread, context("m0", "m1"), { tools: () => write(place, "agents", "1") });
    await turn(thread, context("m0", "m1", "m2"));
    thread.label("start", "c0");
    await rewind.prune({ keepLast: 1 });
    expect(ids(rewind)).toEqual(["c0", "c2"]);
    const back = await thread.rewind({ to: "c0", external: "keep" });
    expect(back.external).toEqual([]);
    expect(back.restored.removed).toEqual(["agents"]);
  });

  test("F-33: a file that no checkpoint held when gc ran is stored again by the next one", async () => {
    const place = makePlace();
    const rewind = await useRewind(place);
    const thread = rewind.thread("t");
    write(place, "f", "1");
    await thread.checkpoint({ context: context("m0") });
    write(place, "g", "seen by a capture alone");
    await new Promise((resolve) => setTimeout(resolve, 50));
    await rewind.environment.capture().captured;
    expect((await rewind.gc()).objects).toBeGreaterThan(0);
    await thread.checkpoint({ context: context("m0", "m1") });
    expect(await rewind.verify()).toEqual([]);
    fs.rmSync(join(place.workspace, "g"));
    await thread.rewind({ to: "c1" });
    expect(fs.readFileSync(join(place.workspace, "g"), "utf8")).toBe("seen by a capture alone");
  });

  test("F-34: the checkpoints of every workspace of the store count", async () => {
    const place = makePlace();
    const other = { ...place, workspace: join(place.base, "other") };
    fs.mkdirSync(other.workspace);
    const [one, two] = [await useRewind(place), await useRewind(other)];
    write(other, "f", "the other's".repeat(1000));
    await two.thread("t").checkpoint({ context: context("other") });
    await turns(one, place, 0, 4);
    await one.prune({ keepLast: 1 });
    fs.rmSync(join(other.workspace, "f"));
    expect((await two.thread("t").rewind({ to: "c0" })).context.messages).toEqual(["other"]);
    expect(fs.readFileSync(join(other.workspace, "f"), "utf8")).toBe("the other's".repeat(1000));
  });
});

describe("many objects", () => {
  const long = process.env.AGENTREWIND_LONG === "1";
  const count = long ? 1_000_000 : 50_000;
  /** Less than half of the pack: it is rewritten. */
  const kept = (count * 2) / 5;
  const messages = (from: number, to: number): string[] => Array.from({ length: to - from }, (_, i) => `m${from + i}`);
  const objects = (place: Place): number => rows(place.store, "SELECT count(*) AS n FROM object")[0]?.n as number;
  const catalogBytes = (place: Place): number => fs.statSync(join(place.store, "catalog.db")).size;

  test(`F-33, F-36, F-38: ${count}, of which two of five stay`, { timeout: 3_600_000 }, async () => {
    const place = makePlace();
    const rewind = await useRewind(place);
    const thread = rewind.thread("t");
    await thread.checkpoint({ context: { messages: messages(0, kept) }, label: "kept" });
    await thread.checkpoint({ context: { messages: messages(kept, count) } });
    await thread.checkpoint({ context: context("last") });
    await endSession(rewind);
    const before = { objects: objects(place), packs: packBytes(place), catalog: catalogBytes(place) };
    const { results } = runSteps(place, [
      { op: "open" },
      { op: "memory" },
      { op: "prune", keepLast: 1 },
      { op: "memory" },
      { op: "close" },
    ]);
    const [, opened, pruned, done] = results.map((one) => one.ok);
    const grown = done.peakBytes - opened.peakBytes;
    console.info(`${before.objects} objects: prune took ${Math.round(grown / 2 ** 20)} MiB at most`);
    expect(grown, "it is measured").toBeGreaterThan(0);
    expect(grown).toBeLessThan(48 * 2 ** 20 + 100 * before.objects);
    expect(pruned.gc).toMatchObject({ packs: { deleted: 0, rewritten: 1 }, postponed: [] });
    expect(pruned.gc.objects).toBeGreaterThanOrEqual(count - kept);
    expect(objects(place)).toBe(before.objects - pruned.gc.objects);
    expect(objects(place)).toBeGreaterThan(kept);
    expect(packBytes(place)).toBeLessThan(before.packs / 2);
    expect(catalogBytes(place)).toBeLessThan(before.catalog * 0.8);

    const again = await useRewind(place);
    expect(await again.gc(), "a second gc finds nothing").toMatchObject({ objects: 0, bytes: 0, catalog: 0 });
    const found = (await again.thread("t").context("c0")).messages;
    expect(found.length).toBe(kept);
    expect(found.filter((message, i) => message !== `m${i}`)).toEqual([]);
  });
});

describe("a full disk", () => {
  const canMount = !lacking("tmpfs");

  test.skipIf(!canMount)(
    `F-36: prune and gc give room back, and nothing is lost${canMount ? "" : " (needs root and mount)"}`,
    async () => {
      const place = makePlace();
      const small = join(place.base, "small");
      fs.mkdirSync(small);
      execFileSync("mount", ["-t", "tmpfs", "-o", "size=16m", "tmpfs", small]);
      try {
        const at = { ...place, store: join(small, "store") };
        const rewind = await useRewind(at);
        const thread = rewind.thread("t");
        write(place, "kept", randomBytes(2_000_000).toString("latin1"));
        await thread.checkpoint({ context: context("m0"), label: "kept" });
        const tree = digest(place);
        for (let i = 0; i < 3; i++) {
          write(place, "big", randomBytes(1_000_000).toString("latin1"));
          await thread.checkpoint({ context: context(`m${i}`) });
        }
        fs.rmSync(join(place.workspace, "big"));
        await thread.checkpoint({ context: context("last") });
        await endSession(rewind);
        fill(small);
        const again = await openSoon(at);
        const before = packBytes(at);
        const { kept, gc } = await again.prune({ keepLast: 1 });
        expect(kept).toBe(2);
        expect(gc?.objects).toBeGreaterThan(0);
        expect(await again.verify()).toEqual([]);
        // Rewriting needs room: either it was there, or it is told, and the next gc does it.
        if (packBytes(at) === before) expect(gc?.postponed.join()).toContain("no room");
        fs.rmSync(join(small, "filler"));
        await again.gc();
        expect(packBytes(at)).toBeLessThan(before - 3_000_000);
        await again.thread("t").rewind({ to: "c0" });
        expect(digest(place)).toEqual(tree);
        await endSession(again);
      } finally {
        execFileSync("umount", ["-l", small]);
      }
    },
  );

  function fill(folder: string): void {
    const fd = fs.openSync(join(folder, "filler"), "w");
    try {
      for (;;) fs.writeSync(fd, Buffer.alloc(4096, 1));
    } catch (error) {
      expect((error as NodeJS.ErrnoException).code).toBe("ENOSPC");
    } finally {
      fs.closeSync(fd);
    }
  }

  /** As the command does it: the reserve first. */
  async function openSoon(at: Place): Promise<Rewind> {
    fs.rmSync(join(at.store, "reserve"));
    return useRewind(at);
  }
});
