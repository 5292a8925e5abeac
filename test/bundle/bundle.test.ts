// A thread leaves a store in one file and comes to life in another: files to the byte, the whole tree of checkpoints, lessons and effects.
import * as fs from "node:fs";
import { join } from "node:path";
import { importBundle, type Rewind } from "agentrewind";
import { describe, expect, test } from "vitest";
import { codeOf, endSession, makePlace, useRewind } from "../helpers/workspace.ts";
import { context, digest, everything, exported, makeExporter, makeTarget, sh } from "./scene.ts";

const effects = { mail: { class: "irreversible" } } as const;

const tree = (rewind: Rewind, thread = "t") =>
  rewind
    .thread(thread)
    .checkpoints({ all: true })
    // Numbers of rows are the store's own.
    .map(({ effects, ...rest }) => ({ ...rest, effects: effects.map(({ id, ...one }) => one), state: "durable" }));

describe("F-70, F-73: a whole thread", () => {
  test("comes to life in another store, with every state of its files, its conversation, lessons and effects", async () => {
    const exporter = await makeExporter();
    const { rewind, place, trees } = exporter;
    const result = await rewind.export({ to: join(place.base, "t.bundle") });
    expect(result).toMatchObject({ thread: "t", checkpoint: null, checkpoints: 4, problems: [] });
    expect(fs.statSync(result.file).mode & 0o777).toBe(0o600);
    expect(fs.statSync(result.file).size).toBe(result.bytes);
    expect(fs.readdirSync(place.base).sort()).toEqual(["store", "t.bundle", "workspace"]);

    const target = makeTarget();
    const made = await importBundle(result.file, { store: target.store, into: target.into("a") });
    expect(made).toEqual({
      ...{ workspace: target.into("a"), environment: "directory", thread: "t", checkpoint: "c3", checkpoints: 4 },
      ...{ processes: null, unlike: [], notRestored: [] },
    });
    expect(digest(made.workspace)).toEqual(digest(place.workspace));
    expect(digest(made.workspace)).toEqual(trees[1]);

    const arrived = await useRewind({ ...place, ...target, workspace: made.workspace }, { effects });
    const [here, there] = [arrived.thread("t"), rewind.thread("t")];
    expect(arrived.threads()).toEqual(["t"]);
    expect(tree(arrived)).toEqual(tree(rewind));
    expect(here.lessons().map(({ text, from, to }) => [text, from, to])).toEqual([["d was needed", "c2", "c1"]]);
    for (const id of ["c0", "c1", "c2", "c3"]) expect(await here.context(id)).toEqual(await there.context(id));
    expect(here.effects().map(({ id, ...one }) => one)).toEqual(there.effects().map(({ id, ...one }) => one));
    // What the conversation tells of goes along: only the mail of the state that was left is unknown to it.
    const again = await here.runTool({ tool: "mail", args: { n: 2 } }, () => "twice");
    expect(again.status).toBe("held");
    expect((await here.runTool({ tool: "mail", args: { n: 0 } }, () => "again")).status).toBe("ran");
    for (const index of [0, 2, 1]) {
      await here.rewind({ to: `c${index}` });
      expect(digest(made.workspace)).toEqual(trees[index]);
    }
    sh(made.workspace, "echo more > more");
    expect((await here.checkpoint({ context: context("m0") })).id).toBe("c4");
    expect((await there.checkpoint()).id).toBe("c4");
  });

  test("undo goes on where it was, and what was undone is not undone again", async () => {
    const exporter = await makeExporter();
    const { trees } = exporter;
    const target = makeTarget();
    const made = await importBundle(await exported(exporter), { store: target.store, into: target.into("a") });
    const arrived = await useRewind({ ...exporter.place, ...target, workspace: made.workspace });
    await arrived.thread("t").undo();
    expect(digest(made.workspace)).toEqual(trees[2]);
    expect(await codeOf(arrived.thread("t").undo())).toBe("NOTHING_TO_UNDO");
  });

  test("twice gives two workspaces that know nothing of each other; into one of them it is refused", async () => {
    const exporter = await makeExporter();
    const file = await exported(exporter);
    const target = makeTarget();
    const [one, two] = [target.into("one"), target.into("two")];
    for (const into of [one, two]) await importBundle(file, { store: target.store, into });
    const first = await useRewind({ ...exporter.place, ...target, workspace: one });
    await first.thread("t").rewind({ to: "c0" });
    await first.thread("t").checkpoint({ label: "only here" });
    const second = await useRewind({ ...exporter.place, ...target, workspace: two });
    expect(second.thread("t").head).toBe("c3");
    expect(digest(two)).toEqual(exporter.trees[1]);
    expect(digest(one)).toEqual(exporter.trees[0]);
    for (const into of [one, two])
      expect(await codeOf(importBundle(file, { store: target.store, into }))).toBe("FOLDER_NOT_EMPTY");
    fs.renameSync(two, target.into("three"));
    fs.mkdirSync(two);
    expect(await codeOf(importBundle(file, { store: target.store, into: two }))).toBe("FOLDER_NOT_EMPTY");
  });

  test("the store that it came from takes it as well", async () => {
    const exporter = await makeExporter();
    const made = await importBundle(await exported(exporter), {
      ...{ store: exporter.place.store, into: join(exporter.place.base, "again") },
    });
    expect(digest(made.workspace)).toEqual(exporter.trees[1]);
    const again = await useRewind({ ...exporter.place, workspace: made.workspace });
    await again.thread("t").rewind({ to: "c2" });
    expect(exporter.rewind.thread("t").head).toBe("c3");
    expect(await exporter.rewind.verify()).toEqual([]);
  });

  test("without a place it comes to a folder of its name in the current one, wherever it was", async () => {
    const exporter = await makeExporter();
    const file = await exported(exporter);
    const target = makeTarget();
    const here = process.cwd();
    process.chdir(target.base);
    try {
      const made = await importBundle(file, { store: target.store });
      expect(made.workspace).toBe(join(target.base, "workspace"));
      expect(digest(made.workspace)).toEqual(exporter.trees[1]);
      expect(await codeOf(importBundle(file, { store: target.store }))).toBe("FOLDER_NOT_EMPTY");
    } finally {
      process.chdir(here);
    }
  });

  test("what prune gave up and gc took is not in it; what is left is whole", async () => {
    const exporter = await makeExporter();
    for (const name of ["x", "y", "z"]) {
      fs.writeFileSync(join(exporter.place.workspace, name), name);
      await exporter.rewind.thread("t").checkpoint();
    }
    expect((await exporter.rewind.prune({ keepLast: 1 })).pruned.length).toBeGreaterThan(1);
    const target = makeTarget();
    const made = await importBundle(await exported(exporter), { store: target.store, into: target.into("a") });
    const arrived = await useRewind({ ...exporter.place, ...target, workspace: made.workspace });
    expect(tree(arrived)).toEqual(tree(exporter.rewind));
    expect(await arrived.gc()).toMatchObject({ postponed: [] });
    expect(await arrived.verify()).toEqual([]);
  });
});

describe("F-73: one checkpoint", () => {
  test("is the whole thread there, under its own id, and knows the lessons and effects", async () => {
    const exporter = await makeExporter();
    const file = await exported(exporter, "c2.bundle", "c2");
    const target = makeTarget();
    const made = await importBundle(file, { store: target.store, into: target.into("a") });
    expect(made).toMatchObject({ checkpoint: "c2", checkpoints: 1 });
    expect(digest(made.workspace)).toEqual(exporter.trees[2]);
    const thread = (await useRewind({ ...exporter.place, ...target, workspace: made.workspace })).thread("t");
    expect(thread.checkpoints({ all: true })).toMatchObject([{ id: "c2", parent: null, pruned: 2, label: "state 2" }]);
    expect((await thread.context("c2")).messages).toEqual(["m0", "m1", "m2"]);
    expect(thread.lessons().map((one) => one.text)).toEqual(["d was needed"]);
    expect(thread.effects().map((one) => one.result)).toEqual(
      exporter.rewind
        .thread("t")
        .effects()
        .map((one) => one.result),
    );
    expect((await thread.checkpoint()).id).toBe("c4");
    expect(await codeOf(thread.undo())).toBe("NOTHING_TO_UNDO");
    expect(await codeOf(exporter.rewind.export({ to: join(target.base, "x"), checkpoint: "c9" }))).toBe(
      "UNKNOWN_CHECKPOINT",
    );
  });
});

describe("F-73: branches", () => {
  test("a branch goes with what it came from; its source does not", async () => {
    const { rewind, place } = await makeExporter();
    const [branch] = await rewind.fork("c1", { thread: "t" });
    if (branch === undefined) throw new Error("no branch");
    fs.writeFileSync(join(branch.workspace, "branched"), "1");
    await branch.thread("t").checkpoint({ context: context("m0", "b") });
    const file = join(place.base, "b.bundle");
    await branch.export({ to: file });
    const target = makeTarget();
    const made = await importBundle(file, { store: target.store, into: target.into("a") });
    expect(digest(made.workspace)).toEqual(digest(branch.workspace));
    await branch.close();
    const arrived = await useRewind({ ...place, ...target, workspace: made.workspace });
    expect(arrived.threads()).toEqual(["t"]);
    const ids = arrived
      .thread("t")
      .checkpoints({ all: true })
      .map((one) => [one.id, one.parent]);
    expect(ids).toEqual([
      ["c0", null],
      ["c1", "c0"],
      ["c4", "c1"],
    ]);
    await arrived.thread("t").rewind({ to: "c0" });
  });

  test("a branch knows the effects that its conversation tells of, and those that it does not", async () => {
    const place = makePlace();
    const rewind = await useRewind(place, { effects });
    const act = async (one: Rewind, n: number) =>
      (await one.thread("t").runTool({ tool: "mail", args: { n } }, () => `sent ${n}`)).status;
    await rewind.thread("t").checkpoint({ context: context("m0") });
    expect(await act(rewind, 0)).toBe("ran");
    await rewind.thread("t").checkpoint({ context: context("m0", "m1") });
    const [branch] = await rewind.fork("c1", { thread: "t" });
    if (branch === undefined) throw new Error("no branch");
    expect(await act(rewind, 1)).toBe("ran");
    expect(await act(branch, 2)).toBe("ran");
    await branch.thread("t").checkpoint({ context: context("m0", "m1", "b") });
    expect(await act(rewind, 3)).toBe("ran");
    const file = join(place.base, "b.bundle");
    await branch.export({ to: file });
    const target = makeTarget();
    const made = await importBundle(file, { store: target.store, into: target.into("a") });
    const arrived = await useRewind({ ...place, ...target, workspace: made.workspace }, { effects });
    // As in the branch itself.
    for (const one of [branch, arrived]) {
      const outcomes: string[] = [];
      for (const n of [0, 1, 2, 3]) outcomes.push(await act(one, n));
      expect(outcomes).toEqual(["ran", "held", "ran", "held"]);
    }
    await branch.close();
  });

  test("of two checkpoints with one number the head's line has it, the other is in a thread beside it", async () => {
    const { rewind, place, trees } = await makeExporter();
    const [branch] = await rewind.fork("c1", { thread: "t" });
    if (branch === undefined) throw new Error("no branch");
    fs.writeFileSync(join(branch.workspace, "branched"), "1");
    await branch.thread("t").checkpoint({ label: "of the branch" });
    fs.writeFileSync(join(place.workspace, "own"), "1");
    await rewind.thread("t").checkpoint({ label: "own" });
    await branch.adopt();
    const target = makeTarget();
    const file = join(place.base, "both.bundle");
    await rewind.export({ to: file });
    const made = await importBundle(file, { store: target.store, into: target.into("a") });
    const arrived = await useRewind({ ...place, ...target, workspace: made.workspace });
    const thread = arrived.thread("t");
    expect(digest(made.workspace)).toEqual(digest(place.workspace));
    expect(thread.get("c4").label).toBe("of the branch");
    expect(arrived.threads()).toEqual(["t", "t~1"]);
    expect(arrived.thread("t~1").get("c4").label).toBe("own");
    await thread.rewind({ to: "c0" });
    expect(digest(made.workspace)).toEqual(trees[0]);
  });
});

describe("refused, with everything as it was", () => {
  test("a file that is there, a folder that is not, a place inside of the workspace, a thread without checkpoints", async () => {
    const { rewind, place } = await makeExporter();
    const file = join(place.base, "there");
    fs.writeFileSync(file, "mine");
    expect(await codeOf(rewind.export({ to: file }))).toBe("BAD_ARGUMENT");
    expect(fs.readFileSync(file, "utf8")).toBe("mine");
    for (const to of [join(place.base, "no/x"), place.base, join(place.workspace, "x"), join(place.workspace, "d/x")])
      expect(await codeOf(rewind.export({ to }))).toBe("BAD_ARGUMENT");
    expect(await codeOf(rewind.export({ to: join(place.base, "x"), thread: "none" }))).toBe("NO_THREAD");
    expect(await codeOf(rewind.export({} as never))).toBe("BAD_ARGUMENT");
    const empty = await useRewind(makePlace());
    expect(await codeOf(empty.export({ to: join(place.base, "x") }))).toBe("NO_THREAD");
    expect(fs.readdirSync(place.base).sort()).toEqual(["store", "there", "workspace"]);
  });

  test("what is damaged in the store is not exported as if it were whole", async () => {
    const exporter = await makeExporter();
    const { rewind, place } = exporter;
    await endSession(rewind);
    const packs = join(place.store, "packs");
    for (const name of fs.readdirSync(packs)) {
      const bytes = fs.readFileSync(join(packs, name));
      bytes.fill(0, Math.floor(bytes.length / 2), Math.floor(bytes.length / 2) + 4096);
      fs.writeFileSync(join(packs, name), bytes);
    }
    const again = await useRewind(place, { damaged: true });
    expect(await codeOf(again.export({ to: join(place.base, "x") }))).toBe("STORE_CORRUPT");
    expect(fs.readdirSync(place.base).sort()).toEqual(["store", "workspace"]);
  });

  test("places that cannot be a workspace, and files that are no bundle; no store is made for them", async () => {
    const exporter = await makeExporter();
    const file = await exported(exporter);
    const target = makeTarget();
    const { store, into } = target;
    const refuse = async (path: string, to: string | undefined, code: string): Promise<void> => {
      expect([
        path,
        to,
        await codeOf(importBundle(path, { store, ...(to === undefined ? {} : { into: to }) })),
      ]).toEqual([...[path, to, code]]);
    };
    await refuse(file, store, "STORE_INSIDE_WORKSPACE");
    await refuse(file, join(store, "w"), "STORE_INSIDE_WORKSPACE");
    await refuse(file, target.base, "STORE_INSIDE_WORKSPACE");
    await refuse(file, "/", "STORE_INSIDE_WORKSPACE");
    fs.writeFileSync(into("file"), "");
    await refuse(file, into("file"), "WORKSPACE_GONE");
    await refuse(into("none"), into("a"), "BAD_ARGUMENT");
    await refuse(target.base, into("a"), "BAD_ARGUMENT");
    sh(target.base, "mkfifo pipe");
    await refuse(into("pipe"), into("a"), "BAD_ARGUMENT");
    await refuse(into("file"), into("a"), "BUNDLE_DAMAGED");
    expect(await codeOf(importBundle(file, { store, processes: "none" as never }))).toBe("BAD_ARGUMENT");
    expect(everything(store)).toBe("");
    expect(fs.existsSync(into("a"))).toBe(false);
  });
});
