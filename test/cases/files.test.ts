// Inputs that broke other tools that rewind, driven as a user does: through the public API, the command, and git.
import { type SpawnSyncReturns, spawnSync } from "node:child_process";
import * as fs from "node:fs";
import { join } from "node:path";
import type { Thread } from "agentrewind";
import { describe, expect, test } from "vitest";
import { digestTree } from "../helpers/digest.ts";
import { commandFile } from "../helpers/library.ts";
import { runSteps } from "../helpers/steps.ts";
import { endSession, makePlace, type Place, useRewind } from "../helpers/workspace.ts";
import { context, did, digest, read, sh, turn, write } from "../invariants/scene.ts";

const git = "git -c user.name=t -c user.email=t@example.com";

/** The command, as a process of its own. */
function cli(place: Place, args: readonly string[], env: Record<string, string> = {}): SpawnSyncReturns<string> {
  return spawnSync(process.execPath, [commandFile, ...args], {
    cwd: place.workspace,
    encoding: "utf8",
    env: { PATH: process.env.PATH, HOME: place.base, XDG_STATE_HOME: join(place.base, "state"), ...env },
  });
}

function command(place: Place, ...args: string[]): string {
  const ran = cli(place, args);
  expect(ran.status, ran.stderr).toBe(0);
  return ran.stdout;
}

describe("what no tool call names", () => {
  test("case 1: what the shell deletes, moves or overwrites comes back, committed in git or unknown to it", async () => {
    const place = makePlace();
    sh(
      place.workspace,
      `git init -q .; echo 1 > committed; echo 1 > moved; git add .; ${git} commit -qm one; echo 1 > unknown; echo 1 > cut`,
    );
    const rewind = await useRewind(place);
    const thread = rewind.thread("t");
    const before = digest(place);
    await turn(thread, context("m0"), { tools: () => {} });
    await rewind.environment.exec(
      "rm committed unknown; mv moved away; : > cut; find . -name 'none' -delete; git rm -q --cached moved",
    );
    await turn(thread, context("m0", "m1"));
    await thread.rewind({ to: "c0" });
    expect(digest(place)).toEqual(before);
  });

  test("case 3: what a child agent without a thread of its own did in the parent's turn goes back with it", async () => {
    const place = makePlace();
    const rewind = await useRewind(place);
    const parent = rewind.thread("parent");
    write(place, "x.txt", "v0");
    await turn(parent, context("task"), {
      tools: () => void runChildAgent(place, "echo v1 > x.txt; mkdir made; echo 1 > made/by-child"),
    });
    await turn(parent, context("task", "done"), { activity: did("task", "child") });
    expect(read(place, "x.txt")).toBe("v1\n");
    await parent.rewind({ to: "c0" });
    expect(read(place, "x.txt")).toBe("v0");
    expect(fs.existsSync(join(place.workspace, "made"))).toBe(false);
  });

  test("case 3: the work of a child agent with a thread of its own is never silently left behind", async () => {
    const place = makePlace();
    const rewind = await useRewind(place);
    const [parent, child] = [rewind.thread("parent"), rewind.thread("child")];
    write(place, "x.txt", "v0");
    await turn(parent, context("task"), { tools: () => {} });
    await turn(child, context("subtask"), { tools: () => write(place, "x.txt", "the child's") });
    await turn(parent, context("task", "done"), { tools: () => {} });
    const before = digest(place);
    await expect(parent.rewind({ to: "c0" })).rejects.toMatchObject({
      code: "SHARED_ENVIRONMENT",
      details: { threads: ["child"], checkpoints: ["child/c0"] },
    });
    expect(digest(place)).toEqual(before);
    await expect(parent.rewind({ to: "c0", dryRun: true }), "asked before, it says the same").rejects.toMatchObject({
      code: "SHARED_ENVIRONMENT",
    });
  });

  /** A process that works in the workspace and knows nothing of us. */
  function runChildAgent(place: Place, script: string): void {
    expect(spawnSync("bash", ["--norc", "-c", script], { cwd: place.workspace }).status).toBe(0);
  }

  test("case 4: what a tool wrote before it was cancelled goes back, children and all", async () => {
    const place = makePlace();
    const rewind = await useRewind(place);
    const thread = rewind.thread("t");
    write(place, "kept", "1");
    const before = digest(place);
    await turn(thread, context("m0"), { tools: () => {} });
    const stop = new AbortController();
    const running = rewind.environment.exec(
      "echo partial > new.txt; echo 2 > kept; (sleep 600; echo late > late.txt) & sleep 600",
      {
        signal: stop.signal,
      },
    );
    while (!fs.existsSync(join(place.workspace, "new.txt")) || read(place, "kept") !== "2\n")
      await new Promise((resolve) => setTimeout(resolve, 10));
    stop.abort();
    expect((await running).signal).toBe("SIGKILL");
    // The turn is never closed: nothing but the files tells that something was done.
    await thread.rewind({ to: "c0" });
    expect(digest(place)).toEqual(before);
    await thread.undo();
    expect(read(place, "new.txt")).toBe("partial\n");
  });

  test("case 5: a file that is first seen between two edits has the state of its own moment", async () => {
    const place = makePlace();
    const thread = (await useRewind(place)).thread("t");
    await turn(thread, context("m0"), { tools: () => write(place, "r.txt", "v1") });
    await turn(thread, context("m0", "m1"), { tools: () => write(place, "r.txt", "v2") });
    await turn(thread, context("m0", "m1", "m2"));
    await thread.rewind({ to: "c1" });
    expect(read(place, "r.txt")).toBe("v1");
    await thread.rewind({ to: "c0" });
    expect(fs.existsSync(join(place.workspace, "r.txt"))).toBe(false);
    await thread.rewind({ to: "c2" });
    expect(read(place, "r.txt")).toBe("v2");
  });

  test("case 7: edit, then delete: each step is taken back by itself, also the deletion of a folder", async () => {
    const place = makePlace();
    const thread = (await useRewind(place)).thread("t");
    write(place, "f", "v1");
    write(place, "d/in", "v1");
    const steps = [
      () => write(place, "f", "v2"),
      () => sh(place.workspace, "rm -r f d"),
      () => write(place, "f", "v3"),
      () => sh(place.workspace, "rm f; mkdir f; echo 1 > f/in"),
    ];
    const states: string[][] = [];
    for (const [i, step] of steps.entries()) {
      states.push(digest(place));
      await turn(thread, context(...Array.from({ length: i + 1 }, (_, k) => `m${k}`)), { tools: () => void step() });
    }
    for (const i of [3, 2, 1, 0]) {
      await thread.rewind({ to: `c${i}` });
      expect(digest(place), `before step ${i}`).toEqual(states[i]);
    }
  });
});

describe("without a user interface, without git", () => {
  test("case 6: checkpoints that a program made through the library are there for the command", async () => {
    const place = makePlace();
    const store = join(place.base, "state", "agentrewind");
    write(place, "f", "v0");
    const rewind = await useRewind({ ...place, store });
    await turn(rewind.thread("headless"), context("do it"), {
      anchor: "message-1",
      tools: () => write(place, "f", "v1"),
    });
    await endSession(rewind);
    expect(command(place, "list")).toContain("c0");
    command(place, "rewind", "c0");
    expect(read(place, "f")).toBe("v0");
    command(place, "undo");
    expect(read(place, "f")).toBe("v1");
  });

  test("case 9: a plain folder on a machine without git", () => {
    const place = makePlace();
    const bare = join(place.base, "bin");
    fs.mkdirSync(bare);
    write(place, "f", "v0");
    const env = { PATH: bare };
    const before = digest(place);
    expect(cli(place, ["checkpoint"], env).status).toBe(0);
    write(place, "f", "v1");
    write(place, "d/new", "1");
    const back = cli(place, ["rewind", "c0"], env);
    expect(back.status, back.stderr).toBe(0);
    expect(digest(place)).toEqual(before);
  });

  test("case 38: no git is ever started, so no hook, filter, signing or prompt of it either", async () => {
    const place = makePlace();
    const fake = join(place.base, "bin");
    fs.mkdirSync(fake);
    sh(
      place.workspace,
      `git init -q .; echo '* filter=x text=auto' > .gitattributes; printf 'a\\r\\n' > f; git config filter.x.clean 'false'; git config commit.gpgsign true
      printf '#!/bin/sh\\nexit 1\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit`,
    );
    for (const name of ["git", "gpg", "ssh", "sh", "bash"]) {
      fs.writeFileSync(join(fake, name), `#!/bin/sh\necho ${name} >> ${place.base}/called\nexit 1\n`, { mode: 0o755 });
    }
    const env = { PATH: `${fake}:${process.env.PATH}` };
    const before = digest(place);
    expect(cli(place, ["checkpoint"], env).status).toBe(0);
    fs.writeFileSync(join(place.workspace, "f"), "b\n");
    for (const args of [
      ["diff", "c0"],
      ["rewind", "c0"],
    ])
      expect(cli(place, args, env).status, args[0]).toBe(0);
    expect(digest(place)).toEqual(before);
    expect(fs.existsSync(join(place.base, "called"))).toBe(false);
  });

  test("case 39: a repository in the workspace gets no refs and no objects, and fetches and collects as before", async () => {
    const place = makePlace();
    sh(place.workspace, `git init -q .; echo 1 > f; git add f; ${git} commit -qm one`);
    const look = (): string =>
      sh(place.workspace, "git for-each-ref; git rev-list --all --objects; find .git | sort; git stash list");
    const before = look();
    const thread = (await useRewind(place)).thread("t");
    for (let i = 0; i < 20; i++) {
      write(place, "other", `${i}`);
      await thread.checkpoint();
    }
    expect(look()).toBe(before);
    await thread.rewind({ to: "c3" });
    expect(look()).toBe(before);
    expect(sh(place.workspace, "git fsck --strict 2>&1; git gc -q --prune=now; git status --porcelain")).toBe(
      "?? other\n",
    );
    sh(place.base, "git clone -q workspace clone; git -C clone fetch -q");
    await thread.rewind({ to: "c4" });
    expect(look(), "a collection in between is taken back too").toBe(before);
  });
});

describe("whose changes", () => {
  test("case 26: a new session starts from the disk as it is now, not from an old checkpoint", async () => {
    const place = makePlace();
    write(place, "agent.txt", "v0");
    write(place, "person.txt", "old");
    let rewind = await useRewind(place);
    await turn(rewind.thread("monday"), context("m0"), { tools: () => write(place, "agent.txt", "v1") });
    await endSession(rewind);
    sh(
      place.workspace,
      "echo weeks later > person.txt; mkdir work; echo much > work/more; rm agent.txt; echo v2 > agent.txt",
    );
    const today = digest(place);
    for (const name of ["monday", "friday"]) {
      rewind = await useRewind(place);
      const thread = rewind.thread(name);
      const made = await turn(thread, context("m0", name), { tools: () => write(place, "agent.txt", "the one edit") });
      await turn(thread, context("m0", name, "more"));
      await thread.rewind({ to: made.id });
      expect(digest(place), name).toEqual(today);
      await endSession(rewind);
    }
  });

  describe("case 30: commits that were made since", () => {
    async function withCommits(options: {
      exclude?: string[];
    }): Promise<{ place: Place; thread: Thread; first: string; last: string }> {
      const place = makePlace();
      sh(place.workspace, `git init -q .; echo 1 > f; git add f; ${git} commit -qm one`);
      const first = sh(place.workspace, "git rev-parse HEAD");
      const thread = (await useRewind(place, options)).thread("t");
      await turn(thread, context("m0"), { tools: () => write(place, "agent.txt", "agent's") });
      await turn(thread, context("m0", "m1"));
      sh(
        place.workspace,
        `echo 2 > f; git add f; ${git} commit -qm two; echo 3 > f; git add f; ${git} commit -qm three`,
      );
      return { place, thread, first, last: sh(place.workspace, "git rev-parse HEAD") };
    }
    const head = (place: Place): string => sh(place.workspace, "git rev-parse HEAD");

    test("the agent's own rewind does not take a person's commits", async () => {
      const { place, thread, last } = await withCommits({});
      await turn(thread, context("m0", "m1", "m2"), { tools: () => {} });
      const result = await thread.rewind({ to: "c0", by: "agent", lesson: "no", external: "keep" });
      expect(head(place)).toBe(last);
      expect(read(place, "f")).toBe("3\n");
      expect(fs.existsSync(join(place.workspace, "agent.txt"))).toBe(false);
      expect(result.external).toContain("f");
      expect(sh(place.workspace, "git fsck --strict 2>&1; git status --porcelain")).toBe("");
    });

    test("an exact one names what it takes before and after, and undo brings the commits back", async () => {
      const { place, thread, first, last } = await withCommits({});
      const planned = await thread.rewind({ to: "c0", dryRun: true });
      expect(planned.restored.changed).toContain("f");
      expect(JSON.stringify(planned.restored)).toContain(".git/refs/heads");
      const result = await thread.rewind({ to: "c0" });
      expect(result.restored).toEqual(planned.restored);
      expect(head(place)).toBe(first);
      expect(sh(place.workspace, "git fsck --strict 2>&1; git status --porcelain")).toBe("");
      await thread.undo();
      expect(head(place)).toBe(last);
      expect(sh(place.workspace, "git fsck --strict 2>&1; git log --format=%s")).toBe("three\ntwo\none\n");
    });

    test("with .git excluded branch and HEAD stay, the files go back", async () => {
      const { place, thread, last } = await withCommits({ exclude: [".git", ".git/**"] });
      const repository = digestTree(join(place.workspace, ".git"));
      await thread.rewind({ to: "c0" });
      expect(digestTree(join(place.workspace, ".git"))).toEqual(repository);
      expect(head(place)).toBe(last);
      expect(read(place, "f")).toBe("1\n");
    });
  });

  test("case 31: in a dirty tree a rewind does what its dry run says, and everything is behind undo", () => {
    const place = makePlace();
    sh(place.workspace, `git init -q .; echo 1 > f; git add f; ${git} commit -qm one`);
    command(place, "checkpoint");
    sh(place.workspace, "echo dirty > f; echo 1 > untracked; git add untracked; echo 2 > untracked");
    const dirty = digest(place);
    const planned = JSON.parse(command(place, "--json", "rewind", "c0", "--dry-run"));
    expect(digest(place)).toEqual(dirty);
    const done = JSON.parse(command(place, "--json", "rewind", "c0"));
    expect(done.restored).toEqual(planned.restored);
    expect(read(place, "f")).toBe("1\n");
    command(place, "undo");
    expect(digest(place)).toEqual(dirty);
  });
});

describe("crashes and links", () => {
  const points = ["objects.written", "checkpoint.before-commit"];

  test("cases 33 and 57: a capture that is killed renames nothing, leaves no lock, and the next one is whole", () => {
    const place = makePlace();
    sh(place.workspace, `git init -q .; git init -q sub; echo 1 > sub/f; cd sub; git add f; ${git} commit -qm one`);
    const before = digest(place);
    for (const point of points) {
      const killed = runSteps({ ...place, env: { AGENTREWIND_FAULT: point } }, [{ op: "open" }, { op: "checkpoint" }]);
      expect(killed.signal, point).toBe("SIGKILL");
      expect(digest(place), point).toEqual(before);
    }
    const next = runSteps(place, [
      { op: "open" },
      { op: "checkpoint" },
      { op: "sh", command: "rm -rf sub/.git; echo 2 > sub/f" },
      { op: "checkpoint" },
    ]).results;
    expect(next.map((one) => one.error)).toEqual([undefined, undefined, undefined, undefined]);
    const { id } = next[1]?.ok ?? {};
    const back = runSteps(place, [{ op: "open" }, { op: "rewind", to: id }, { op: "verify" }]).results;
    expect(back[2]?.ok).toEqual([]);
    expect(digest(place)).toEqual(before);
    expect(sh(join(place.workspace, "sub"), "git fsck --strict 2>&1; git status --porcelain")).toBe("");
  });

  test("case 35: a pointer to a repository, and a link to a repository outside: the one comes back, the other is not looked into", async () => {
    const place = makePlace();
    sh(
      place.base,
      `git init -q outside; echo precious > outside/f; git init -q main; cd main; echo 1 > f; git add f; ${git} commit -qm one; git worktree add -q ../workspace/tree`,
    );
    sh(place.workspace, "ln -s ../outside link; ln -s ../../outside tree/link");
    const outside = digestTree(join(place.base, "outside"));
    const before = digest(place);
    const thread = (await useRewind(place)).thread("t");
    await thread.checkpoint();
    sh(
      place.workspace,
      `echo 2 > tree/f; cd tree; git add f; ${git} commit -qm two; rm .git; cd ..; rm link; mkdir link; echo 2 > link/f`,
    );
    await thread.rewind({ to: "c0" });
    expect(digest(place)).toEqual(before);
    expect(digestTree(join(place.base, "outside"))).toEqual(outside);
    for (const pack of fs.readdirSync(join(place.store, "packs")))
      expect(fs.readFileSync(join(place.store, "packs", pack)).includes("precious")).toBe(false);
    // The repository itself lies outside: its commits stay.
    expect(sh(join(place.workspace, "tree"), "git log --format=%s")).toBe("two\none\n");
  });

  test("case 44: at no moment of a restore is a secret file open to others", () => {
    const place = makePlace();
    sh(
      place.workspace,
      "for i in 1 2 3; do echo secret > key$i; chmod 600 key$i; done; mkdir private; echo secret > private/f; chmod 644 private/f; chmod 700 private",
    );
    runSteps(place, [{ op: "open" }, { op: "checkpoint" }, { op: "sh", command: "rm -r key* private" }]);
    const seen = new Set<string>();
    for (const point of ["restore.staged-one:2", "restore.staged", "restore.placed-one:3"]) {
      const killed = runSteps({ ...place, env: { AGENTREWIND_FAULT: point } }, [
        { op: "open" },
        { op: "rewind", to: "c0" },
      ]);
      expect(killed.signal, point).toBe("SIGKILL");
      // As a stranger walks: what lies below a folder that he may not enter does not count.
      const open = sh(
        place.workspace,
        "find . -mindepth 1 \\( -type d ! -perm -001 -prune \\) -o -type f -perm /077 -print",
      );
      expect(open, point).toBe("");
      for (const line of sh(place.workspace, "find . -mindepth 1").split("\n")) seen.add(line);
      // The open intent is finished by the next one, who then takes it back for the next round.
      runSteps(place, [{ op: "open" }, { op: "sh", command: "rm -rf key* private" }]);
    }
    expect(
      [...seen].some((path) => path.includes(".agentrewind-")),
      "some were killed while content was staged",
    ).toBe(true);
  });
});

describe("the cost of a checkpoint", () => {
  /** Bytes that this process has read so far, with all its threads. */
  const readBytes = (): number => Number(/^rchar: (\d+)$/m.exec(fs.readFileSync("/proc/self/io", "utf8"))?.[1]);

  test.skipIf(!fs.existsSync("/proc/self/io"))(
    "case 61: after the first checkpoint only what changed is read and stored",
    async () => {
      const place = makePlace();
      const each = 16 << 10;
      for (let folder = 0; folder < 40; folder++) {
        fs.mkdirSync(join(place.workspace, `node_modules/d${folder}`), { recursive: true });
        for (let i = 0; i < 50; i++) write(place, `node_modules/d${folder}/f${i}`, `${folder}/${i}/`.repeat(each / 8));
      }
      sh(place.workspace, "git init -q .; echo node_modules > .gitignore");
      const total = 40 * 50 * each;
      const rewind = await useRewind(place);
      const thread = rewind.thread("t");
      const start = readBytes();
      await thread.checkpoint();
      expect(readBytes() - start, "the first one reads everything").toBeGreaterThan(total / 2);
      // A clock tick later what was read is settled.
      await new Promise((resolve) => setTimeout(resolve, 50));
      write(place, "node_modules/d7/f7", "changed");
      const before = readBytes();
      const made = await thread.checkpoint();
      expect(made.changes?.changed).toEqual(["node_modules/d7/f7"]);
      expect(readBytes() - before).toBeLessThan(total / 20);
      expect(made.timings.bytes).toBeLessThan(64 << 10);

      // Also in a new process: what was known is kept.
      await endSession(rewind);
      const again = runSteps(place, [{ op: "open" }, { op: "checkpoint" }]).results;
      expect(again[1]?.ok.timings.bytes).toBeLessThan(64 << 10);
    },
  );
});
