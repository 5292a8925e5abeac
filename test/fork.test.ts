// Branches: forked from a checkpoint, independent, adopted or abandoned; killed at every step; refused with everything as it was.
import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import { join } from "node:path";
import type { Branch, Rewind } from "agentrewind";
import { afterEach, describe, expect, onTestFinished, test } from "vitest";
import { type FaultPoint, faultPoints } from "../src/faults.ts";
import { lacking } from "./capabilities.ts";
import { digestTree } from "./helpers/digest.ts";
import { mountNew } from "./helpers/file-system.ts";
import { runSteps, type Step } from "./helpers/steps.ts";
import { codeOf, endSession, makePlace, type Place, useRewind } from "./helpers/workspace.ts";

const sh = (cwd: string, command: string): string =>
  execFileSync("bash", ["--norc", "-c", command], { cwd, encoding: "utf8", stdio: "pipe" });
const context = (...messages: string[]) => ({ messages });
const read = (folder: string, name: string): string => fs.readFileSync(join(folder, name), "utf8");
const write = (folder: string, name: string, text: string): void => fs.writeFileSync(join(folder, name), text);

const open: Branch[] = [];
afterEach(async () => {
  for (const branch of open.splice(0)) await branch.close();
});

async function fork(rewind: Rewind, id: string, options: Parameters<Rewind["fork"]>[1]): Promise<Branch[]> {
  const branches = await rewind.fork(id, options);
  open.push(...branches);
  return branches;
}

interface Scene {
  readonly place: Place;
  readonly rewind: Rewind;
  readonly trees: readonly [string[], string[]];
}

const states = [
  `mkdir -p d/sub empty; echo 1 > a; ln a d/hard; ln -s a l; echo 1 > d/sub/g; mkfifo p; echo 1 > shut; chmod 400 shut; chmod 711 d/sub
   truncate -s 3M sparse; printf x | dd of=sparse bs=1 seek=2000000 conv=notrunc 2>/dev/null; head -c 600000 /dev/urandom > big
   printf 1 > $'line\\nend'; touch -d '2020-01-02 03:04:05.123456789' a d/sub/g d/sub; touch -d '2019-01-01 00:00:00.5' .`,
  "echo 2 > a; rm l; echo 2 > new; rm -r empty",
] as const;

const small = ["echo 1 > a; mkdir d; echo 1 > d/f; ln a d/hard", "echo 2 > a; rm -r d; echo 2 > new"] as const;

/** c0 and c1 of thread "t1", whose head is c1; the workspace is as c1. */
async function makeScene([first, second]: readonly [string, string] = states, parent?: string): Promise<Scene> {
  const place = makePlace(parent);
  const rewind = await useRewind(place);
  const thread = rewind.thread("t1");
  sh(place.workspace, first);
  const v0 = digestTree(place.workspace);
  await thread.checkpoint({ context: context("m0") });
  sh(place.workspace, second);
  const v1 = digestTree(place.workspace);
  await thread.checkpoint({ context: context("m0", "m1") });
  return { place, rewind, trees: [v0, v1] };
}

const ids = (rewind: Rewind, all = false): string[] =>
  rewind
    .thread("t1")
    .checkpoints({ all })
    .map((one) => one.id);

describe("fork", () => {
  for (const kind of ["btrfs", "xfs"] as const) {
    test.skipIf(lacking(kind))(`where the file system can, copies share their contents: ${kind}`, async () => {
      const mounted = mountNew(kind);
      onTestFinished(() => mounted.end());
      const { rewind, trees } = await makeScene(states, mounted.folder);
      const branches = await fork(rewind, "c0", { thread: "t1", count: 3 });
      for (const branch of branches) {
        expect(digestTree(branch.workspace)).toEqual(trees[0]);
        expect(sh(branch.workspace, "filefrag -v big")).toContain("shared");
      }
      for (const [index, branch] of branches.entries()) write(branch.workspace, "big", `${index}`);
      expect(branches.map((branch) => read(branch.workspace, "big"))).toEqual(["0", "1", "2"]);
    });
  }

  test("F-28: N equal folders, and the workspace stays as it is", async () => {
    const { place, rewind, trees } = await makeScene();
    const branches = await fork(rewind, "c0", { thread: "t1", count: 4 });
    expect(branches.map((one) => one.id)).toEqual(["b1", "b2", "b3", "b4"]);
    for (const branch of branches) {
      expect(digestTree(branch.workspace)).toEqual(trees[0]);
      expect(branch.notRestored).toEqual([]);
      expect(branch.source).toEqual({ workspace: place.workspace, thread: "t1", checkpoint: "c0" });
      expect(branch.workspace.startsWith(`${place.store}-branches/`)).toBe(true);
      expect(sh(branch.workspace, "stat -c %b sparse").trim()).toBe(sh(place.workspace, "stat -c %b sparse").trim());
    }
    expect(digestTree(place.workspace)).toEqual(trees[1]);
    expect(rewind.branches().map((one) => [one.id, one.state])).toEqual([
      ["b1", "open"],
      ["b2", "open"],
      ["b3", "open"],
      ["b4", "open"],
    ]);
    expect(fs.readdirSync(join(branches[0]?.workspace as string, "..")).sort()).toEqual(["b1", "b2", "b3", "b4"]);
  });

  test("F-28: what is written in one is seen in no other, nor in the source", async () => {
    const { place, rewind, trees } = await makeScene();
    const [one, two] = (await fork(rewind, "c0", { count: 2 })) as [Branch, Branch];
    sh(one.workspace, "echo mine >> a; echo mine > mine; rm -r d; printf y | dd of=big bs=1 conv=notrunc 2>/dev/null");
    expect(digestTree(two.workspace)).toEqual(trees[0]);
    expect(digestTree(place.workspace)).toEqual(trees[1]);
    write(place.workspace, "a", "the source's");
    expect(digestTree(two.workspace)).toEqual(trees[0]);
  });

  test("F-17, F-27: ids before are inherited, new ones count on, and mean the same", async () => {
    const { rewind, trees } = await makeScene();
    const [one, two] = (await fork(rewind, "c0", { thread: "t1", count: 2 })) as [Branch, Branch];
    const thread = one.thread("t1");
    expect(thread.head).toBe("c0");
    expect((await thread.context("c0")).messages).toEqual(["m0"]);
    write(one.workspace, "a", "in one");
    const made = await thread.checkpoint({ context: context("m0", "b") });
    expect(made).toMatchObject({ id: "c2", parent: "c0", branch: "b1", thread: "t1", active: true, head: true });
    expect(made.changes?.changed).toContain("a");
    expect(ids(one)).toEqual(["c0", "c2"]);
    expect((await two.thread("t1").checkpoint()).id).toBe("c2");
    expect(ids(rewind)).toEqual(["c0", "c1"]);
    expect(ids(rewind, true)).toEqual(["c0", "c1", "b1/c2", "b2/c2"]);
    expect(await codeOf(Promise.resolve().then(() => thread.get("c1")))).toBe("UNKNOWN_CHECKPOINT");
    const back = await thread.rewind({ to: "c0", lesson: "not so" });
    expect(back.context.messages).toEqual(["m0"]);
    expect(digestTree(one.workspace)).toEqual(trees[0]);
    await thread.undo();
    expect(read(one.workspace, "a")).toBe("in one");
    expect((await thread.diff("c0", "c2")).files.changed).toContain("a");
  });

  test("lessons and turns go on in a branch", async () => {
    const { rewind } = await makeScene();
    await rewind.thread("t1").rewind({ to: "c0", lesson: "known before" });
    const [branch] = (await fork(rewind, "c0", {})) as [Branch];
    await rewind.thread("t1").rewind({ to: "c0", lesson: "learned later" });
    const thread = branch.thread("t1");
    expect(thread.lessons().map((one) => one.text)).toEqual(["known before"]);
    const turn = await thread.beginTurn(context("m0", "b"), { anchor: "m" });
    await turn.gate();
    write(branch.workspace, "a", "changed");
    await thread.checkpoint();
    const { message } = await thread.rewind({ to: "c0", lesson: "of the branch" });
    expect(message).toContain("1. of the branch");
    expect(message).toContain("2. known before");
    expect(
      rewind
        .thread("t1")
        .lessons()
        .map((one) => one.text),
    ).toEqual(["learned later", "known before"]);
  });

  test("into a folder, or its numbered subfolders; opened again by its id and by its path", async () => {
    const { place, rewind, trees } = await makeScene();
    const into = join(place.base, "made", "one");
    const [branch] = (await fork(rewind, "c0", { into })) as [Branch];
    expect(branch.workspace).toBe(into);
    const many = join(place.base, "many");
    const others = await fork(rewind, "c1", { into: many, count: 2 });
    expect(others.map((one) => one.workspace)).toEqual([join(many, "1"), join(many, "2")]);
    expect(digestTree(join(many, "2"))).toEqual(trees[1]);
    await branch.close();
    const again = await rewind.branch("b1");
    expect(again.thread("t1").head).toBe("c0");
    expect(await again.verify()).toEqual([]);
    await again.close();
    const plain = await useRewind({ ...place, workspace: into });
    expect(plain.threads()).toEqual(["t1"]);
    expect(await codeOf(rewind.branch("b1"))).toBe("ENVIRONMENT_BUSY");
  });

  test("a branch can be forked again", async () => {
    const { rewind } = await makeScene();
    const [branch] = (await fork(rewind, "c0", {})) as [Branch];
    write(branch.workspace, "a", "in the branch");
    await branch.thread("t1").checkpoint();
    const [inner] = (await fork(branch, "c2", {})) as [Branch];
    expect(read(inner.workspace, "a")).toBe("in the branch");
    expect(ids(inner)).toEqual(["c0", "c2"]);
    write(inner.workspace, "a", "in the inner one");
    await inner.adopt();
    expect(read(branch.workspace, "a")).toBe("in the inner one");
    expect(ids(branch)).toEqual(["c0", "c2", "c3"]);
    await branch.adopt();
    expect(ids(rewind)).toEqual(["c0", "c2", "c3"]);
    expect(await rewind.verify()).toEqual([]);
  });
});

describe("adopt", () => {
  test("F-29: files and conversation become the source's, and undo returns exactly", async () => {
    const { place, rewind, trees } = await makeScene();
    const thread = rewind.thread("t1");
    const [branch] = (await fork(rewind, "c0", { thread: "t1" })) as [Branch];
    write(branch.workspace, "a", "better");
    await branch.thread("t1").checkpoint({ context: context("m0", "branch 1") });
    write(branch.workspace, "late", "not yet a checkpoint");
    const wanted = digestTree(branch.workspace);
    write(place.workspace, "person", "unsaved");
    const before = digestTree(place.workspace);
    const result = await branch.adopt();
    expect(digestTree(place.workspace)).toEqual(wanted);
    expect(result.context.messages).toEqual(["m0", "branch 1"]);
    expect(result.message).toContain("the end of branch b1");
    expect(result.restored.removed).toContain("person");
    expect(fs.existsSync(branch.workspace)).toBe(false);
    expect(ids(rewind)).toEqual(["c0", "c2", "c3"]);
    expect(result.left?.id).toBe("c4");
    expect(rewind.branches()[0]).toMatchObject({ id: "b1", state: "adopted", folder: null });
    expect((await thread.checkpoint()).id).toBe("c5");
    expect(await rewind.verify()).toEqual([]);
    expect(await codeOf(branch.adopt())).toBe("BRANCH_ENDED");
    await thread.rewind({ to: "c0" });
    expect(digestTree(place.workspace)).toEqual(trees[0]);
    await thread.undo();
    await thread.undo();
    expect(digestTree(place.workspace)).toEqual(before);
    expect((await thread.context(thread.head as string)).messages).toEqual(["m0", "m1"]);
  });

  test("F-27: the same number in the source and in the branch: the line of the head decides", async () => {
    const { place, rewind } = await makeScene();
    const thread = rewind.thread("t1");
    const [branch] = (await fork(rewind, "c1", {})) as [Branch];
    write(place.workspace, "a", "the source's c2");
    await thread.checkpoint({ context: context("source") });
    write(branch.workspace, "a", "the branch's c2");
    await branch.thread("t1").checkpoint({ context: context("branch") });
    await branch.adopt();
    expect(thread.get("c2").branch).toBe("b1");
    expect((await thread.context("c2")).messages).toEqual(["branch"]);
    expect(ids(rewind, true)).toEqual(["c0", "c1", "b0/c2", "c2"]);
    await thread.rewind({ to: "b0/c2" });
    expect(read(place.workspace, "a")).toBe("the source's c2");
    expect((await thread.context("c2")).messages).toEqual(["source"]);
    expect((await thread.context("b1/c2")).messages).toEqual(["branch"]);
    expect((await thread.checkpoint()).id).toBe("c3");
  });

  test("another thread's turns in the source are not taken back", async () => {
    const { place, rewind } = await makeScene();
    const [branch] = (await fork(rewind, "c1", { thread: "t1" })) as [Branch];
    write(branch.workspace, "a", "x");
    write(place.workspace, "b", "other");
    await rewind.thread("other").checkpoint({ context: context("o") });
    const before = digestTree(place.workspace);
    expect(await codeOf(branch.adopt())).toBe("SHARED_ENVIRONMENT");
    expect(digestTree(place.workspace)).toEqual(before);
    expect(rewind.branches()[0]?.state).toBe("open");
    expect(read(branch.workspace, "a")).toBe("x");
  });

  test("an adapter that drives the source is given the branch's conversation at its next turn", async () => {
    const { place, rewind } = await makeScene();
    const thread = rewind.thread("t1");
    await (await thread.beginTurn(context("m0", "m1", "m2"), { anchor: "m2" })).gate();
    const [branch] = (await fork(rewind, "c2", {})) as [Branch];
    write(branch.workspace, "a", "x");
    await branch.thread("t1").checkpoint({ context: context("m0", "m1", "m2", "b") });
    await branch.adopt();
    const aligned = await thread.align([{ anchor: "m2", tool: false }]);
    expect(aligned.status).toBe("deliver");
    if (aligned.status !== "deliver") return;
    expect(aligned.results.map((one) => one.context.messages)).toEqual([["m0", "m1", "m2", "b"]]);
    expect(read(place.workspace, "a")).toBe("x");
  });
});

describe("abandon", () => {
  test("F-30: the folder goes, the checkpoints stay in the tree and can be returned to", async () => {
    const { place, rewind } = await makeScene();
    const thread = rewind.thread("t1");
    const [branch] = (await fork(rewind, "c0", {})) as [Branch];
    sh(branch.workspace, "mkdir -p shut/in; echo 1 > shut/in/f; chmod 0 shut; echo tried > a");
    await branch.thread("t1").checkpoint({ context: context("m0", "tried") });
    await branch.abandon();
    expect(fs.existsSync(branch.workspace)).toBe(false);
    expect(ids(rewind)).toEqual(["c0", "c1"]);
    const listed = thread.checkpoints({ all: true }).find((one) => one.branch === "b1");
    expect(listed).toMatchObject({ id: "b1/c2", parent: "c0", active: false });
    expect(thread.listText()).not.toContain("b1");
    expect(await codeOf(rewind.branch("b1"))).toBe("BRANCH_ENDED");
    expect(await codeOf(useRewind({ ...place, workspace: branch.workspace }))).toBe("WORKSPACE_GONE");
    await thread.rewind({ to: "b1/c2" });
    expect(read(place.workspace, "a")).toBe("tried\n");
    expect(ids(rewind)).toEqual(["c0", "c2"]);
    expect((await thread.checkpoint()).id).toBe("c3");
  });

  test("a folder that somebody else put in its place is left alone", async () => {
    const { place, rewind } = await makeScene();
    const [branch] = (await fork(rewind, "c0", { into: join(place.base, "b") })) as [Branch];
    fs.renameSync(branch.workspace, join(place.base, "moved"));
    fs.mkdirSync(branch.workspace);
    write(branch.workspace, "precious", "1");
    await branch.abandon();
    expect(read(branch.workspace, "precious")).toBe("1");
    expect(rewind.branches()[0]?.state).toBe("abandoned");
  });
});

describe("refusals leave everything as it was", () => {
  test.each([
    ["an unknown checkpoint", "c9", {}, "UNKNOWN_CHECKPOINT"],
    ["no id", "what", {}, "BAD_CHECKPOINT"],
    ["an unknown thread", "c0", { thread: "nobody" }, "NO_THREAD"],
    ["no branches", "c0", { count: 0 }, "BAD_ARGUMENT"],
    ["half a branch", "c0", { count: 1.5 }, "BAD_ARGUMENT"],
    ["a folder without a name", "c0", { into: "" }, "BAD_ARGUMENT"],
  ])("%s", async (_, id, options, code) => {
    const { rewind } = await makeScene();
    expect(await codeOf(rewind.fork(id, options))).toBe(code);
    expect(rewind.branches()).toEqual([]);
  });

  test("places that cannot be", async () => {
    const { place, rewind, trees } = await makeScene();
    const full = join(place.base, "full");
    fs.mkdirSync(join(full, "2"), { recursive: true });
    write(join(full, "2"), "f", "1");
    write(place.base, "file", "1");
    expect(await codeOf(rewind.fork("c0", { into: join(place.workspace, "in") }))).toBe("BRANCH_INSIDE_WORKSPACE");
    expect(await codeOf(rewind.fork("c0", { into: join(place.store, "in") }))).toBe("STORE_INSIDE_WORKSPACE");
    expect(await codeOf(rewind.fork("c0", { into: full }))).toBe("FOLDER_NOT_EMPTY");
    expect(await codeOf(rewind.fork("c0", { into: full, count: 3 }))).toBe("FOLDER_NOT_EMPTY");
    expect(await codeOf(rewind.fork("c0", { into: join(place.base, "file") }))).toBe("FOLDER_NOT_EMPTY");
    expect(await codeOf(rewind.branch("b1"))).toBe("UNKNOWN_BRANCH");
    expect(fs.readdirSync(full)).toEqual(["2"]);
    expect(digestTree(place.workspace)).toEqual(trees[1]);
    expect(rewind.branches()).toEqual([]);
  });

  test("two forks at once into one folder: one of them gets it", async () => {
    const { place, rewind, trees } = await makeScene();
    const into = join(place.base, "wanted");
    const results = await Promise.allSettled([fork(rewind, "c0", { into }), fork(rewind, "c1", { into })]);
    const won = results.findIndex((one) => one.status === "fulfilled");
    const lost = results.find((one) => one.status === "rejected");
    expect(lost).toMatchObject({ reason: { code: "FOLDER_NOT_EMPTY" } });
    expect(digestTree(into)).toEqual(trees[won]);
    expect(rewind.branches().length).toBe(1);
    expect(fs.readdirSync(place.base).sort()).toEqual(["store", "wanted", "workspace"]);
  });

  test("an object that is missing", async () => {
    const place = makePlace();
    const rewind = await useRewind(place, { damaged: true });
    write(place.workspace, "a", "only here");
    await rewind.thread("t1").checkpoint();
    for (const name of fs.readdirSync(join(place.store, "packs"))) {
      const file = join(place.store, "packs", name);
      const at = fs.readFileSync(file).indexOf("only here");
      const fd = fs.openSync(file, "r+");
      fs.writeSync(fd, "lost", at);
      fs.closeSync(fd);
    }
    expect(await codeOf(rewind.fork("c0", { count: 2, into: join(place.base, "x") }))).toBe("STORE_CORRUPT");
    expect(fs.existsSync(join(place.base, "x"))).toBe(false);
    expect(rewind.branches()).toEqual([]);
  });

  const noMount = lacking("tmpfs");
  test.skipIf(noMount)("a disk that is full", async () => {
    const { place, rewind } = await makeScene();
    const disk = join(place.base, "disk");
    fs.mkdirSync(disk);
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=1m", "none", disk]);
    try {
      expect(await codeOf(rewind.fork("c0", { count: 3, into: join(disk, "x") }))).toBe("DISK_FULL");
      expect(fs.readdirSync(disk)).toEqual([]);
      expect(rewind.branches()).toEqual([]);
      expect(ids(rewind)).toEqual(["c0", "c1"]);
    } finally {
      execFileSync("umount", [disk]);
    }
  });
});

describe("F-28, F-29, F-30: killed at every step", () => {
  const hit = new Set<string>();

  const into = (place: Place): string => join(place.base, "b");
  const forkPoints = [
    "fork.journaled",
    "restore.staged-one:2",
    "restore.cleaned:2",
    "fork.made",
    "fork.placed-one",
    "fork.placed-one:2",
    "fork.committed",
  ];
  const scenarios: readonly {
    readonly name: string;
    readonly points: readonly string[];
    readonly steps: (place: Place) => Step[];
    readonly after: (scene: Scene, rewind: Rewind) => Promise<void>;
  }[] = [
    {
      name: "fork",
      points: forkPoints,
      steps: (place) => [{ op: "open" }, { op: "fork", id: "c0", count: 2, into: into(place) }, { op: "close" }],
      async after({ place, trees }, rewind) {
        const made = rewind.branches();
        expect([0, 2]).toContain(made.length);
        expect(fs.readdirSync(place.base).sort()).toEqual([...(made.length === 0 ? [] : ["b"]), "store", "workspace"]);
        if (made.length > 0) expect(fs.readdirSync(into(place)).sort()).toEqual(["1", "2"]);
        for (const one of made) expect(digestTree(one.folder as string)).toEqual(trees[0]);
        expect(digestTree(place.workspace)).toEqual(trees[1]);
        const again = join(place.base, "again");
        const [first] = await fork(rewind, "c0", { count: 2, into: made.length === 0 ? into(place) : again });
        expect(digestTree(first?.workspace as string)).toEqual(trees[0]);
      },
    },
    {
      name: "fork into a folder below new ones",
      points: forkPoints.filter((point) => !point.endsWith(":2")),
      steps: (place) => [{ op: "open" }, { op: "fork", id: "c0", into: join(into(place), "in/it") }, { op: "close" }],
      async after({ place, trees }, rewind) {
        const [one] = rewind.branches();
        expect(fs.existsSync(into(place))).toBe(one !== undefined);
        if (one === undefined) return;
        expect(fs.readdirSync(join(into(place), "in"))).toEqual(["it"]);
        expect(digestTree(one.folder as string)).toEqual(trees[0]);
      },
    },
    {
      name: "adopt",
      points: [
        "checkpoint.committed",
        "rewind.safety",
        "rewind.intent",
        "rewind.restored",
        "rewind.committed",
        "branch.ended",
        "branch.removed",
      ],
      steps: (place) => [
        { op: "open" },
        { op: "fork", id: "c0", into: into(place) },
        { op: "write", path: join(into(place), "a"), text: "better" },
        { op: "adopt" },
        { op: "close" },
      ],
      async after({ place, trees }, rewind) {
        const [branch] = rewind.branches();
        const now = digestTree(place.workspace);
        if (branch?.state === "adopted") {
          expect(read(place.workspace, "a")).toBe("better");
          expect(fs.existsSync(into(place))).toBe(false);
          expect(ids(rewind)).toEqual(["c0", "c2"]);
          await rewind.thread("t1").undo();
        } else if (branch !== undefined) {
          expect(now).toEqual(trees[1]);
          expect(ids(rewind)).toEqual(["c0", "c1"]);
          await (await rewind.branch(branch.id)).adopt();
          await rewind.thread("t1").undo();
        }
        expect(digestTree(place.workspace)).toEqual(trees[1]);
      },
    },
    {
      name: "abandon",
      points: ["checkpoint.committed", "branch.ended", "branch.removed"],
      steps: (place) => [
        { op: "open" },
        { op: "fork", id: "c0", into: into(place) },
        { op: "write", path: join(into(place), "a"), text: "tried" },
        { op: "abandon" },
        { op: "close" },
      ],
      async after({ place, trees }, rewind) {
        const [branch] = rewind.branches();
        if (branch?.state === "open") await (await rewind.branch(branch.id)).abandon();
        expect(fs.existsSync(into(place))).toBe(false);
        if (branch !== undefined) expect(ids(rewind, true)).toContain("b1/c2");
        expect(digestTree(place.workspace)).toEqual(trees[1]);
      },
    },
  ];

  test.each(scenarios)("$name", { timeout: 600_000 }, async ({ points, steps, after }) => {
    for (const point of points) {
      const scene = await makeScene(small);
      await endSession(scene.rewind);
      const { signal } = runSteps({ ...scene.place, env: { AGENTREWIND_FAULT: point } }, steps(scene.place));
      expect(signal, point).toBe("SIGKILL");
      hit.add(point.replace(/:.*/, ""));
      const rewind = await useRewind(scene.place);
      expect(await rewind.verify(), point).toEqual([]);
      await after(scene, rewind);
      for (const branch of open.splice(0)) await branch.close();
      await endSession(rewind);
    }
  });

  test("every point of a branch's life is reached", () => {
    const own = (Object.keys(faultPoints) as FaultPoint[]).filter((point) => /^(fork|branch)\./.test(point));
    expect(own.filter((point) => !hit.has(point))).toEqual([]);
  });
});
