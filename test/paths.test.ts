// Rewind by path: only what is named goes back; the rest of the files and the conversation stay.
import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import { join } from "node:path";
import type { Rewind, RewindResult, Thread } from "agentrewind";
import { describe, expect, test } from "vitest";
import { digestTree } from "./helpers/digest.ts";
import { codeOf, makePlace, type Place, useRewind } from "./helpers/workspace.ts";

const sh = (place: Place, command: string): string =>
  execFileSync("bash", ["--norc", "-c", command], { cwd: place.workspace, encoding: "utf8", stdio: "pipe" });
const context = (...messages: string[]) => ({ messages });
const digest = (place: Place): string[] => digestTree(place.workspace);
const isAt = (line: string, paths: readonly string[]): boolean =>
  paths.some((path) => line.startsWith(`"${path}"`) || line.startsWith(`"${path}/`));

interface Scene {
  readonly place: Place;
  readonly rewind: Rewind;
  readonly thread: Thread;
  readonly then: string[];
  readonly now: string[];
}

/** c0 before and c1 after `change`; the workspace is as c1. */
async function makeScene(first: string, change: string): Promise<Scene> {
  const place = makePlace();
  const rewind = await useRewind(place);
  const thread = rewind.thread("t");
  sh(place, first);
  const then = digest(place);
  await thread.checkpoint({ context: context("m0") });
  sh(place, change);
  const now = digest(place);
  await thread.checkpoint({ context: context("m0", "m1") });
  return { place, rewind, thread, then, now };
}

/** What is named is as it was, everything else is as it is; undo returns exactly. */
async function expectOnly(scene: Scene, paths: readonly string[], named = paths): Promise<RewindResult> {
  const { place, thread, then, now } = scene;
  const result = await thread.rewind({ to: "c0", paths: [...named] });
  const wanted = [...then.filter((line) => isAt(line, paths)), ...now.filter((line) => !isAt(line, paths))];
  expect(digest(place).sort()).toEqual(wanted.sort());
  expect(result).toMatchObject({ scope: "environment", notRestored: [] });
  expect(result.context.messages).toEqual(["m0", "m1"]);
  await thread.undo();
  expect(digest(place)).toEqual(now);
  await thread.undo().then(
    () => expect.unreachable("there is one rewind to undo"),
    (error) => expect(error.code).toBe("NOTHING_TO_UNDO"),
  );
  return result;
}

const first = `mkdir -p src/deep lib gone/in; echo 1 > src/a.ts; echo 1 > src/b.ts; echo 1 > src/deep/c.ts; echo 1 > lib/x; echo 1 > gone/in/f
  ln -s src/a.ts link; echo 1 > top; chmod 640 top; touch -d '2020-01-02 03:04:05.123456789' src/a.ts src lib top gone/in gone`;
const change = `echo 2 > src/a.ts; echo 2 > src/b.ts; rm -r src/deep gone; echo 2 > lib/x; rm lib/x; mkdir lib/x; echo 2 > lib/x/y; echo 2 > new
  mkdir -p added/in; echo 2 > added/in/f; rm link; mkdir link; echo 2 > link/in; chmod 600 top`;

describe("only what is named goes back", () => {
  test.each([
    ["a file", ["src/a.ts"], undefined],
    ["a folder with all below it", ["src"], ["./src/"]],
    ["what was deleted, with the folders that lead to it", ["gone"], undefined],
    ["what was not there at the checkpoint is removed", ["new", "added"], undefined],
    ["kinds that were exchanged", ["lib/x", "link"], undefined],
    ["metadata alone", ["top"], undefined],
    ["several at once, some of them equal in both states", ["src/a.ts", "lib", "top", "new"], undefined],
  ])("%s", async (_, paths, named) => {
    await expectOnly(await makeScene(first, change), paths, named);
  });

  test("a file in a folder that is gone: the folder is made again, and no more of it", async () => {
    const scene = await makeScene(
      "mkdir -p d/e; chmod 711 d; echo 1 > d/e/f; echo 1 > d/g; touch -d 2020-01-01 d/e d .",
      "rm -r d",
    );
    await scene.thread.rewind({ to: "c0", paths: ["d/e/f"] });
    expect(sh(scene.place, "find . | sort; stat -c '%a %Y' d d/e")).toBe(
      `.\n./d\n./d/e\n./d/e/f\n711 ${Date.parse("2020-01-01") / 1000}\n755 ${Date.parse("2020-01-01") / 1000}\n`,
    );
    await scene.thread.undo();
    expect(digest(scene.place)).toEqual(scene.now);
  });

  test('"." is all of the files, with the conversation as it is', async () => {
    const { place, thread, then } = await makeScene(first, change);
    const result = await thread.rewind({ to: "c0", paths: ["."] });
    expect(digest(place)).toEqual(then);
    expect(result.context.messages).toEqual(["m0", "m1"]);
    expect(result.message).toContain("all of them");
  });

  test("F-14: names that are shown in quotes", async () => {
    const scene = await makeScene(
      `mkdir $'d\\n1'; echo 1 > $'d\\n1/f'; echo 1 > $'\\xff'; echo 1 > '"q"'; echo 1 > other`,
      `echo 2 > $'d\\n1/f'; echo 2 > $'\\xff'; echo 2 > '"q"'; echo 2 > other`,
    );
    await scene.thread.rewind({ to: "c0", paths: ['"d\\n1"', '"\\xff"', '"\\"q\\""'] });
    expect(sh(scene.place, `cat $'d\\n1/f' $'\\xff' '"q"' other`)).toBe("1\n1\n1\n2\n");
  });

  test("hard links: named together they are one file again, one alone becomes a file of its own and says so", async () => {
    const scene = await makeScene("echo 1 > a; ln a b; ln a c", "echo 2 > a");
    await expectOnly(scene, ["a", "b", "c"]);
    for (const [named, others] of [
      ["a", "b c"],
      ["c", "a b"],
    ] as const) {
      const { notRestored } = await scene.thread.rewind({ to: "c0", paths: [named] });
      expect(sh(scene.place, `cat ${named} ${others}`)).toBe("1\n2\n2\n");
      expect(sh(scene.place, `stat -c %h ${named} ${others}`)).toBe("1\n2\n2\n");
      expect(notRestored.map((one) => one.path)).toContain(named);
      expect(notRestored[0]?.reason).toContain("file of its own");
      await scene.thread.undo();
      expect(digest(scene.place)).toEqual(scene.now);
    }
  });

  test("metadata of a name goes back without the file's other names", async () => {
    for (const [first, change] of [
      ["echo 1 > a; ln a b; chmod 644 a", "chmod 600 a"],
      ["echo 1 > a; echo 1 > b; chmod 644 a b", "ln -f a b; chmod 600 a"],
      ["echo 1 > a; chmod 644 a", "ln a b; chmod 600 a"],
    ] as const) {
      const scene = await makeScene(first, change);
      const { notRestored } = await scene.thread.rewind({ to: "c0", paths: ["a"] });
      expect(sh(scene.place, "stat -c %n:%a:%h a b")).toBe("a:644:1\nb:600:1\n");
      expect(notRestored.map((one) => one.path)).toEqual(first.includes("ln") ? ["a"] : []);
      await scene.thread.undo();
      expect(digest(scene.place)).toEqual(scene.now);
    }
  });

  test("a lost name of a file that is what it was is linked to it again", async () => {
    const scene = await makeScene("echo 1 > a; ln a b; touch -d 2020-01-01 .", "rm b");
    const { notRestored } = await scene.thread.rewind({ to: "c0", paths: ["b"] });
    expect(notRestored).toEqual([]);
    expect(sh(scene.place, "stat -c %h a b")).toBe("2\n2\n");
  });

  test.each([
    ["a link to a folder", "ln -s other d"],
    ["a link that leads nowhere", "ln -s gone d"],
    ["a file", "echo 2 > d"],
    ["a name of another file", "ln other/f d"],
  ])("a folder above that is %s now gives way to the folder, and undo brings it back", async (_, make) => {
    const { place, thread, now } = await makeScene(
      "mkdir -p d/e other; chmod 711 d; for f in d/e/f d/e/g d/h other/f; do echo 1 > $f; done; touch -d 2020-01-01 d/e d",
      `rm -r d; echo 2 > other/f; ${make}`,
    );
    const plan = await thread.rewind({ to: "c0", paths: ["d/e/f"], dryRun: true });
    const { restored, notRestored } = await thread.rewind({ to: "c0", paths: ["d/e/f"] });
    expect(plan.restored).toEqual(restored);
    expect(restored).toMatchObject({ added: ["d/e", "d/e/f"], removed: [], changed: [] });
    // A name that the folder takes leaves its file to the next one.
    expect(restored.type).toEqual(make.startsWith("ln other") ? ["d", "other/f"] : ["d"]);
    expect(notRestored).toEqual([]);
    const then = Date.parse("2020-01-01") / 1000;
    expect(sh(place, "find . | sort; stat -c '%F %a %Y' d d/e; cat d/e/f other/f")).toBe(
      `.\n./d\n./d/e\n./d/e/f\n./other\n./other/f\ndirectory 711 ${then}\ndirectory 755 ${then}\n1\n2\n`,
    );
    await thread.undo();
    expect(digest(place)).toEqual(now);
  });

  test("a folder that gives or gets a name keeps its own times", async () => {
    const scene = await makeScene(
      "mkdir d e; echo 1 > a; ln a d/b; ln a e/c; touch -d 2020-01-01 d e",
      "rm d/b; echo 2 > a",
    );
    sh(scene.place, "touch -d 2021-01-01 d e");
    await scene.thread.rewind({ to: "c0", paths: ["d/b", "e/c"] });
    expect(sh(scene.place, "cat a d/b e/c")).toBe("2\n1\n1\n");
    expect(sh(scene.place, "stat -c %Y d e | uniq")).toBe(`${Date.parse("2021-01-01") / 1000}\n`);
  });
});

describe("what is recorded and told", () => {
  test("F-31: a checkpoint that says that its halves come from different moments; undo; redo", async () => {
    const { place, thread, now } = await makeScene(first, change);
    fs.writeFileSync(join(place.workspace, "person"), "unsaved");
    const before = digest(place);
    const result = await thread.rewind({ to: "c0", paths: ["src/a.ts"] });
    expect(result.left).toMatchObject({ id: "c2", kind: "safety" });
    expect(result.checkpoint).toMatchObject({
      id: "c3",
      kind: "partial",
      parent: "c2",
      head: true,
      partial: { from: "c0", paths: ["src/a.ts"] },
    });
    expect(result.checkpoint.changes).toMatchObject({ changed: ["src/a.ts"], added: [], removed: [], mode: [] });
    expect(result.paths).toEqual(["src/a.ts"]);
    expect(result.restored.changed).toEqual(["src/a.ts"]);
    expect(thread.head).toBe("c3");
    const after = digest(place);
    const nobody = { external: [], conflicts: [] };
    expect(await thread.undo({ dryRun: true })).toMatchObject(nobody);
    expect(await thread.undo()).toMatchObject(nobody);
    expect(digest(place)).toEqual(before);
    expect(thread.head).toBe("c2");
    await thread.rewind({ to: "c3" });
    expect(digest(place)).toEqual(after);
    await thread.rewind({ to: "c1" });
    expect(digest(place)).toEqual(now);
  });

  test("the next context says so, also to an adapter that drives the thread", async () => {
    const { place, thread } = await makeScene(first, change);
    await (await thread.beginTurn(context("m0", "m1", "m2"), { anchor: "m2" })).gate();
    const { message } = await thread.rewind({ to: "c0", paths: ["src/a.ts"] });
    expect(message).toContain("Some files are back as they were at c0: src/a.ts.");
    expect(message).toContain("different moments");
    const aligned = await thread.align([{ anchor: "m2", tool: false }]);
    expect(aligned.status).toBe("deliver");
    if (aligned.status !== "deliver") return;
    expect(aligned.results.map((one) => [one.scope, one.message])).toEqual([["environment", message]]);
    expect(fs.readFileSync(join(place.workspace, "src/a.ts"), "utf8")).toBe("1\n");
  });

  test("the same request again is the same rewind", async () => {
    const { place, thread } = await makeScene(first, change);
    const one = await thread.rewind({ to: "c0", paths: ["src"], key: "k" });
    const two = await thread.rewind({ to: "c0", paths: ["src"], key: "k" });
    expect(two.checkpoint.id).toBe(one.checkpoint.id);
    expect(two.paths).toEqual(["src"]);
    const after = digest(place);
    expect(thread.checkpoints({ all: true }).map((row) => row.id)).toEqual(["c0", "c1", "c2"]);
    expect(digest(place)).toEqual(after);
  });

  test("another thread's work elsewhere does not stand in the way", async () => {
    const place = makePlace();
    const rewind = await useRewind(place);
    const thread = rewind.thread("t");
    sh(place, first);
    await rewind.thread("other").checkpoint({ context: context() });
    await thread.checkpoint({ context: context("m0") });
    fs.writeFileSync(join(place.workspace, "theirs"), "1");
    await rewind.thread("other").checkpoint({ context: context("o") });
    sh(place, change);
    await thread.checkpoint({ context: context("m0", "m1") });
    expect(await codeOf(thread.rewind({ to: "c0", paths: ["theirs"] }))).toBe("SHARED_ENVIRONMENT");
    await thread.rewind({ to: "c0", paths: ["src/a.ts"] });
    expect(fs.readFileSync(join(place.workspace, "theirs"), "utf8")).toBe("1");
  });

  test("what a person took back by path is the person's when the agent rewinds", async () => {
    const place = makePlace();
    const thread = (await useRewind(place)).thread("t");
    sh(place, "echo 1 > a; echo 1 > b");
    await (await thread.beginTurn(context("m0"), { anchor: "m0" })).gate({ tools: false });
    sh(place, "echo 2 > a");
    await (await thread.beginTurn(context("m0", "m1"), { anchor: "m1" })).gate({ tools: true });
    sh(place, "echo 2 > b");
    await (await thread.beginTurn(context("m0", "m1", "m2"), { anchor: "m2" })).gate({ tools: false });
    await thread.rewind({ to: "c0", paths: ["a"] });
    const result = await thread.rewind({ to: "c1", by: "agent", lesson: "l", external: "keep" });
    expect(result.external).toContain("a");
    expect(sh(place, "cat a b")).toBe("1\n1\n");
  });
});

describe("refusals leave everything as it was", () => {
  test.each([
    ["a path that neither state has", ["src/a.ts", "no/such"], "BAD_ARGUMENT", "no/such"],
    ["no path at all", [], "BAD_ARGUMENT", "No path"],
    ["an empty path", [""], "BAD_ARGUMENT", "empty"],
    ["a path that leads out", ["src/../../x"], "PATH_OUTSIDE", "src/../../x"],
    ["an absolute path", ["/etc/passwd"], "PATH_OUTSIDE", "/etc/passwd"],
  ])("%s", async (_, paths, code, named) => {
    const { place, thread, now } = await makeScene(first, change);
    for (const dryRun of [false, true]) {
      await expect(thread.rewind({ to: "c0", paths, dryRun })).rejects.toMatchObject({
        code,
        message: expect.stringContaining(named),
      });
    }
    expect(digest(place)).toEqual(now);
    expect(thread.checkpoints({ all: true }).map((one) => one.id)).toEqual(["c0", "c1"]);
  });

  test("paths with the conversation", async () => {
    const { thread } = await makeScene(first, change);
    expect(await codeOf(thread.rewind({ to: "c0", paths: ["src"], scope: "both" }))).toBe("BAD_ARGUMENT");
  });
});

describe("a dry run says what would be done, and does nothing", () => {
  test("of paths, of everything and of undo", async () => {
    const { place, thread, now } = await makeScene(first, change);
    const some = await thread.rewind({ to: "c0", paths: ["src/a.ts", "new"], dryRun: true });
    expect(some.restored).toMatchObject({ changed: ["src/a.ts"], removed: ["new"], added: [] });
    expect(some).toMatchObject({ left: null, paths: ["src/a.ts", "new"], scope: "environment" });
    const all = await thread.rewind({ to: "c0", dryRun: true });
    expect(all.restored.removed).toContain("new");
    expect(digest(place)).toEqual(now);
    await thread.rewind({ to: "c0" });
    const back = await thread.undo({ dryRun: true });
    expect(back.restored.added).toContain("new");
    expect(back.checkpoint.id).toBe("c1");
    expect(thread.head).toBe("c0");
    await thread.undo();
    expect(digest(place)).toEqual(now);
    expect(await codeOf(thread.undo({ dryRun: true }))).toBe("NOTHING_TO_UNDO");
  });

  test("of a name of a file: the names that it leaves are listed as well", async () => {
    const { thread } = await makeScene("mkdir a z; echo 1 > a/T; ln a/T z/b; ln a/T z/c", "echo 2 > a/T");
    for (const [path, type, changed] of [
      ["a/T", ["z/b"], ["a/T", "z/c"]],
      ["z/b", ["z/b"], []],
    ] as const) {
      const dry = await thread.rewind({ to: "c0", paths: [path], dryRun: true });
      const real = await thread.rewind({ to: "c0", paths: [path] });
      expect(dry.restored).toEqual(real.restored);
      expect(dry.notRestored).toEqual(real.notRestored);
      expect(real.restored).toMatchObject({ type, changed });
      await thread.undo();
    }
  });

  test("what is external and in conflict is named before", async () => {
    const place = makePlace();
    const thread = (await useRewind(place)).thread("t");
    sh(place, "echo 1 > a; echo 1 > b");
    await (await thread.beginTurn(context("m0"), { anchor: "m0" })).gate({ tools: true });
    sh(place, "echo 2 > a");
    await (await thread.beginTurn(context("m0", "m1"), { anchor: "m1" })).gate({ tools: false });
    sh(place, "echo 3 > a; echo 3 > b");
    const plan = await thread.rewind({ to: "c0", dryRun: true });
    expect(plan.external).toEqual(["b"]);
    expect(plan.conflicts).toEqual(["a"]);
    expect(sh(place, "cat a b")).toBe("3\n3\n");
  });
});
