// What a restore may not touch, through one name or another of a file: named before it is tried, never torn off in silence, and undo is exact.
import { once } from "node:events";
import * as fs from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Problem, RewindResult } from "agentrewind";
import { afterEach, describe, expect } from "vitest";
import { digestTree } from "../helpers/digest.ts";
import { setFlag } from "../helpers/inode.ts";
import { type StepResult, startSteps } from "../helpers/steps.ts";
import { endSession, makePlace, useRewind } from "../helpers/workspace.ts";
import { makeRandom, type Random } from "../power/log.ts";
import { onBothPaths, sh } from "./workload.ts";

const nobody = 65534;
const only = process.env.AGENTREWIND_SEED;
const seeds = only === undefined ? Array.from({ length: 20 }, (_, i) => i + 1) : [Number(only)];

type Told = Pick<RewindResult, "restored" | "notRestored">;
type Tree = readonly string[];

/** A rewind and its undo: what the tree was at each moment, and what was told. */
interface Course {
  /** At the checkpoint. */
  readonly before: Tree;
  /** What it could not capture. */
  readonly uncaptured: readonly Problem[];
  readonly now: Tree;
  readonly dry: Told;
  readonly real: Told;
  readonly rewound: Tree;
  readonly undo: Told;
  readonly undone: Tree;
}

type Change = (root: string) => void;

interface Case {
  readonly build: string;
  readonly change: string;
  /** Path to reason, of the rewind. */
  readonly named: Readonly<Record<string, string>>;
}

const show = (one: unknown): string => JSON.stringify(one);
const listed = ({ restored, notRestored }: Told): unknown => ({
  ...Object.fromEntries(Object.entries(restored).map(([kind, paths]) => [kind, paths.map(show).sort()])),
  notRestored: notRestored.map(show).sort(),
});

const isBelow = (path: string, problems: readonly Problem[]): boolean =>
  problems.some((one) => path === one.path || path.startsWith(`${one.path}/`));
const quoted = /"[^"]*"/g;

/** Lines of a digest but for what is named or lies below it. */
const without = (tree: Tree, problems: readonly Problem[]): Tree =>
  tree.filter((line) => !isBelow(JSON.parse(line.match(quoted)?.[0] as string), problems));

/** That a file has a name which was not captured is not known of it. */
const unlinked = (tree: Tree, uncaptured: readonly Problem[]): Tree =>
  tree.map((line) => {
    const [head, first] = line.split(" same inode as ");
    return first !== undefined && isBelow(JSON.parse(first), uncaptured) ? (head as string) : line;
  });

function expectHonest({ before, uncaptured, now, dry, real, rewound, undo, undone }: Course, about: string): void {
  expect(listed(dry), `${about}: the dry run tells what the real one does`).toEqual(listed(real));
  const named = real.notRestored;
  const known = (tree: Tree): Tree => unlinked(without(tree, [...named, ...uncaptured]), uncaptured);
  expect(known(rewound), `${about}: what is not named is as it was`).toEqual(known(before));
  expect(without(undone, named), `${about}: undo brings back what was there`).toEqual(without(now, named));
  expect(
    without(
      undo.notRestored.map(({ path }) => show(path)),
      named,
    ),
    `${about}: undo names no more`,
  ).toEqual([]);
}

/** The cases in one tree, each in a folder of its own. */
const each =
  (cases: Readonly<Record<string, Case>>, step: "build" | "change"): Change =>
  (root) =>
    void sh(
      root,
      Object.entries(cases)
        .map(([name, one]) => `(mkdir -p ${name}; cd ${name}; ${one[step]})`)
        .join("\n"),
    );

function expectCases(cases: Readonly<Record<string, Case>>, done: Course): void {
  for (const [name, { named }] of Object.entries(cases)) {
    const told = done.real.notRestored.filter(({ path }) => path.startsWith(`${name}/`));
    expect(Object.fromEntries(told.map(({ path, reason }) => [path.slice(name.length + 1), reason])), name).toEqual(
      named,
    );
  }
  expectHonest(done, "all");
  expect(done.undo.notRestored).toEqual([]);
  expect(done.undone).toEqual(done.now);
}

const unreadable = "cannot be read (EACCES); left as it is";
const separate = (other: string): string =>
  `was one file with ${other}, which stays as it is; now it is a file of its own`;

describe("as an ordinary user", () => {
  async function course(build: Change, change: Change, times: "ns" | "us"): Promise<Course> {
    const place = makePlace();
    const { base, workspace } = place;
    const own = `chown -hR ${nobody}:${nobody} ${base}`;
    const digest = (): Tree => digestTree(workspace, { times });
    build(workspace);
    sh(base, own);
    const before = digest();
    const env = { HOME: base, ...(process.env.AGENTREWIND_NATIVE ? { AGENTREWIND_NATIVE: "off" } : {}) };
    const pause = (n: number) => ({
      op: "sh",
      command: `touch ../at${n}; until [ -e ../go${n} ]; do sleep 0.01; done`,
    });
    const child = startSteps({ ...place, env, uid: nobody }, [
      { op: "open" },
      { op: "checkpoint" },
      pause(1),
      { op: "rewind", to: "c0", dryRun: true },
      { op: "rewind", to: "c0" },
      pause(2),
      { op: "undo" },
    ]);
    let output = "";
    child.stdout?.on("data", (bytes) => {
      output += bytes;
    });
    const ended = once(child, "close");
    const reached = async (n: number): Promise<void> => {
      while (!fs.existsSync(join(base, `at${n}`))) {
        expect(child.exitCode, output).toBe(null);
        await sleep(5);
      }
    };
    await reached(1);
    change(workspace);
    sh(base, own);
    const now = digest();
    fs.writeFileSync(join(base, "go1"), "");
    await reached(2);
    const rewound = digest();
    fs.writeFileSync(join(base, "go2"), "");
    await ended;
    const results = output
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as StepResult);
    for (const result of results) expect(result.message).toBeUndefined();
    const [made, dry, real, undo] = results.filter(({ op }) => /checkpoint|rewind|undo/.test(op)).map(({ ok }) => ok);
    return { before, uncaptured: made.problems, now, dry, real, rewound, undo, undone: digest() };
  }

  const unread: Readonly<Record<string, Case>> = {
    replaced: {
      build: "mkdir -p d/s e; echo 1 > d/s/f0; ln d/s/f0 e/l",
      change: "rm e/l; echo q > e/l; chmod 000 d/s/f0",
      named: { "d/s/f0": unreadable, "e/l": separate("replaced/d/s/f0") },
    },
    several: {
      build: "echo 1 > a; ln a b; ln a c",
      change: "rm b c; echo q > b; chmod 000 a",
      named: { a: unreadable, b: separate("several/a"), c: separate("several/a") },
    },
    group: {
      build: "mkdir -p d/s; echo 1 > d/s/k; ln d/s/k o",
      change: "echo 22 > o; chmod 000 o",
      named: { "d/s/k": unreadable, o: "is one file with group/d/s/k, which cannot be read; left as it is" },
    },
    joined: {
      build: "mkdir -p d/s; echo 1 > d/s/k; echo 2 > o",
      change: "ln -f d/s/k o; ln o n; chmod 000 o",
      named: {
        "d/s/k": unreadable,
        n: "is one file with joined/d/s/k, which cannot be read; left as it is",
        o: "is one file with joined/d/s/k, which cannot be read; left as it is",
      },
    },
    opened: {
      build: "echo 1 > a; ln a b; ln a c; chmod 000 a",
      change: "rm b; chmod 644 a; echo q > a",
      named: {
        a: "was not captured; left as it is",
        b: "is one file with opened/a, which was not captured; left as it is",
        c: "is one file with opened/a, which was not captured; left as it is",
      },
    },
  };

  onBothPaths("F-12: names of a file that cannot be read", { needs: ["root"] }, async (times) => {
    expectCases(unread, await course(each(unread, "build"), each(unread, "change"), times));
  });

  const unlisted = (mode: string): Readonly<Record<string, Case>> => {
    const hidden = {
      reason: `has names that cannot be seen, perhaps in first${mode}/p, which cannot be read; left as it is`,
    };
    const one = (name: string): Case => ({
      build: `mkdir p; echo 1 > ${name}; ln ${name} p/x; echo 1 > beside`,
      change: `echo 22 > ${name}; echo 2 > beside; chmod ${mode} p`,
      named: { p: unreadable, [name]: hidden.reason },
    });
    return {
      [`first${mode}`]: one("a"),
      [`second${mode}`]: one("q"),
      [`replaced${mode}`]: {
        build: "mkdir p; echo 1 > p/x; ln p/x q",
        change: `rm q; echo 2 > p/x; echo q > q; chmod ${mode} p`,
        named: { p: unreadable, q: separate(`replaced${mode}/p/x`) },
      },
    };
  };

  for (const mode of ["311", "000"]) {
    onBothPaths(`names in folders of mode ${mode}`, { needs: ["root"] }, async (times) => {
      const cases = unlisted(mode);
      expectCases(cases, await course(each(cases, "build"), each(cases, "change"), times));
    });
  }

  onBothPaths("random hard links and modes", { needs: ["root"] }, async (times) => {
    const { build, change } = randomTrees([0o000, 0o200, 0o311, 0o600, 0o755]);
    const done = await course(build, change, times);
    for (const name of trees) expectHonest(partOf(done, name), name);
  });
});

describe("immutable and append-only", () => {
  const flagged: string[] = [];
  const clear = (): void => {
    if (flagged.length > 0) setFlag("-i", ...flagged.splice(0));
  };
  afterEach(clear);

  async function course(build: Change, change: Change, flags: readonly string[], times: "ns" | "us"): Promise<Course> {
    const place = makePlace();
    const root = place.workspace;
    const digest = (): Tree => digestTree(root, { times });
    build(root);
    const rewind = await useRewind(place);
    const thread = rewind.thread("t");
    const { problems } = await thread.checkpoint();
    const before = digest();
    change(root);
    flagged.push(...flags.map((path) => join(root, path)).filter((path) => fs.existsSync(path)));
    setFlag("+i", ...flagged);
    const now = digest();
    const dry = await thread.rewind({ to: "c0", dryRun: true });
    expect(digest()).toEqual(now);
    const real = await thread.rewind({ to: "c0" });
    const rewound = digest();
    const undo = await thread.undo();
    const undone = digest();
    clear();
    await endSession(rewind);
    return { before, uncaptured: problems, now, dry, real, rewound, undo, undone };
  }

  const marked = "may not be changed: it or its folder is marked immutable or append-only";
  const cases: Readonly<Record<string, Case>> = {
    file: {
      build: "mkdir d; echo 1 > f; ln f d/other; ln f z; echo 1 > mode; echo 1 > beside",
      change: "rm z; echo z > z; echo 22 > f; chmod 600 mode; echo 2 > beside",
      named: { f: marked, "d/other": marked, z: separate("file/d/other"), mode: marked },
    },
    name: { build: "echo 1 > a; ln a b", change: "rm b", named: { b: separate("name/a") } },
    folder: {
      build: "mkdir -p d/in gone; for f in d/f d/gone d/in/f gone/f e; do echo 1 > $f; done; ln d/f g; ln e d/e",
      change:
        "echo 22 > d/f; rm d/gone; echo 1 > d/new; mkdir d/newer; echo 22 > d/in/f; chmod 600 e; rm -r gone; mkdir made; echo 1 > made/f",
      named: {
        "d/f": marked,
        "d/gone": marked,
        "d/new": marked,
        "d/newer": marked,
        d: marked,
        g: separate("folder/d/f"),
        made: marked,
      },
    },
    follows: {
      build: "mkdir d; echo 1 > a; ln a d/a; ln a z",
      change: "echo 22 > a",
      named: { a: `is one file with follows/d/a, which ${marked}`, "d/a": marked, z: separate("follows/a") },
    },
    occupied: {
      build: "echo 1 > a; ln a y; ln a z",
      change: "rm a y z; mkdir a; echo 1 > a/k",
      named: {
        a: "stays because it holds something that stays",
        "a/k": marked,
        y: separate("occupied/a"),
        z: separate("occupied/a"),
      },
    },
  };
  const flags = ["file/f", "file/mode", "name/a", "folder/d", "folder/made", "follows/d", "occupied/a/k"];

  onBothPaths("names of files that may not be changed, and in folders", { needs: ["immutable"] }, async (times) => {
    expectCases(cases, await course(each(cases, "build"), each(cases, "change"), flags, times));
  });

  onBothPaths("random hard links and flags", { needs: ["immutable"] }, async (times) => {
    const { build, change } = randomTrees([0o600, 0o755]);
    const flags = trees.flatMap((name, i) => [0, 1].map((n) => join(name, some(makeRandom(100 * i + n)))));
    const done = await course(build, change, flags, times);
    for (const name of trees) expectHonest(partOf(done, name), name);
  });
});

const trees = seeds.map((seed) => `seed${seed}`);
const paths = ["a", "d", "d/f", "d/s", "d/s/f", "e", "e/f", "z"];
const some = (random: Random): string => paths[random(paths.length)] as string;

/** Small trees with hard links, changed at random. */
function randomTrees(modes: readonly number[]): { readonly build: Change; readonly change: Change } {
  const start = "mkdir -p d/s e; echo 1 > d/s/f; ln d/s/f a; ln d/s/f z; echo 2 > d/f; ln d/f e/f";
  const randoms = new Map(trees.map((name, i) => [name, makeRandom(seeds[i] as number)]));
  const mutate = (root: string, count: number): void => {
    for (const [name, random] of randoms) for (let i = 0; i < count; i++) step(join(root, name), random, modes);
  };
  return {
    build(root) {
      sh(root, trees.map((name) => `(mkdir ${name}; cd ${name}; ${start})`).join("\n"));
      mutate(root, 3);
    },
    change: (root) => mutate(root, 6),
  };
}

/** Whatever cannot be done is not done. */
function step(root: string, random: Random, modes: readonly number[]): void {
  const [path, other] = [join(root, some(random)), join(root, some(random))];
  const write = (): void => fs.writeFileSync(path, `${random(100)}`);
  const change = (): void => fs.chmodSync(path, modes[random(modes.length)] as number);
  const steps = [
    write,
    () => [fs.rmSync(path), write()],
    () => fs.linkSync(path, other),
    () => [fs.rmSync(other), fs.linkSync(path, other)],
    () => fs.rmSync(path, { recursive: true }),
    () => fs.mkdirSync(path),
    () => fs.renameSync(path, other),
    change,
    change,
  ];
  try {
    (steps[random(steps.length)] as () => void)();
  } catch {}
}

function partOf(done: Course, folder: string): Course {
  const lines = (tree: Tree): Tree => tree.filter((line) => line.startsWith(`"${folder}/`));
  const below = (path: string): boolean => path.startsWith(`${folder}/`);
  const told = ({ restored, notRestored }: Told): Told => ({
    restored: Object.fromEntries(
      Object.entries(restored).map(([kind, list]) => [
        kind,
        (list as (string | { from: string })[]).filter((one) => below(typeof one === "string" ? one : one.from)),
      ]),
    ) as unknown as Told["restored"],
    notRestored: notRestored.filter(({ path }) => below(path)),
  });
  const { before, uncaptured, now, dry, real, rewound, undo, undone } = done;
  return {
    before: lines(before),
    uncaptured: uncaptured.filter(({ path }) => below(path)),
    now: lines(now),
    dry: told(dry),
    real: told(real),
    rewound: lines(rewound),
    undo: told(undo),
    undone: lines(undone),
  };
}
