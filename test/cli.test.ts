// The command as a process of its own, on real workspaces and stores: both forms of output, and exit statuses.
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { openRewind } from "agentrewind";
import Database from "better-sqlite3";
import { describe, expect, test } from "vitest";
import { paintFor } from "../src/text/paint.ts";
import { lacking } from "./capabilities.ts";
import { base, done, get, json, put, type Ran, refused, run, start, store, workspace } from "./helpers/command.ts";
import { commandFile } from "./helpers/library.ts";

describe("the commands", () => {
  test("checkpoint, list, show, diff, rewind, undo, verify", async () => {
    put("a.txt", "one");
    expect(await done("checkpoint", "--label", "green")).toBe('c0 "green" of thread cli\n');
    put("a.txt", "two, longer");
    put("b.txt", "b");
    expect(await done("checkpoint")).toMatch(/^c1 of thread cli, \d paths changed since c0\n$/);

    expect(await done("list")).toMatch(/^Thread cli\n {2}ID .*\n {2}c0 .*"green"\n\* c1 .*A b\.txt, M a\.txt\n$/);
    expect((await json("list")).map((one: { id: string }) => one.id)).toEqual(["c0", "c1"]);

    const shown = await done("show", "c0");
    for (const words of ["c0 of thread cli", '"green"', "durable", "parent", "manifest", "fidelity", "timings"])
      expect(shown).toContain(words);
    expect(await json("show", "c1")).toMatchObject({
      id: "c1",
      parent: "c0",
      head: true,
      lessons: [],
      changes: { added: ["b.txt"], changed: ["a.txt"] },
    });

    expect(await done("stats")).toMatch(
      /^Thread cli: 2 checkpoints \(1 with nothing before.*\n\nCHANGED .*\nnone .*\nfiles +1 +100\.0 %/,
    );
    expect(await json("stats")).toMatchObject({ thread: "cli", checkpoints: 2, classes: { files: { turns: 1 } } });

    expect(await done("diff", "c0", "c1")).toContain("Files:\n  A b.txt\n  M a.txt\n");
    expect(await done("diff", "c0", "c0")).toBe("No differences.\n");
    put("c.txt", "c");
    rmSync(join(workspace, "b.txt"));
    expect(await done("diff", "c1")).toMatch(/A c\.txt\n {2}D b\.txt\n/);
    expect(await json("diff", "c1")).toMatchObject({
      files: { added: ["c.txt"], removed: ["b.txt"] },
      processes: { changed: false },
      context: { shared: 0, removed: 0, added: 0, channels: [] },
    });

    const dry = await done("rewind", "c0", "--dry-run");
    expect(dry).toContain('Would go back to c0 (turn 0, "green")');
    expect(dry).toContain("Nothing was changed");
    expect(get("a.txt")).toBe("two, longer");
    expect(await json("list")).toHaveLength(2);

    const back = await done("rewind", "c0", "--lesson", "b is not needed");
    expect(back).toContain("Back at c0");
    expect(back).toContain("  D c.txt\n");
    expect(back).toMatch(/The state that was left is c2\. To undo: agentrewind undo\n$/);
    expect(readdirSync(workspace)).toEqual(["a.txt"]);
    expect(get("a.txt")).toBe("one");
    expect(await done("show", "c0")).toContain("c2 -> c0: b is not needed");
    expect(await done("list")).toContain("2 checkpoints on abandoned branches: agentrewind list --all\n");
    expect(await done("list", "--all")).toMatch(/\* c0 .* active .*\n {2}c1 .* abandoned .*\n {2}c2 .* abandoned /);

    expect(await done("undo")).toMatch(/^Undone: at c2 .*To go there again: agentrewind rewind c0\n$/s);
    expect(get("c.txt")).toBe("c");
    await refused(["undo"], 1, "NOTHING_TO_UNDO");
    const again = await json("rewind", "c1");
    expect(again).toMatchObject({ checkpoint: { id: "c1" }, left: { id: "c2" }, dryRun: false });
    expect(again.context).toBeUndefined();
    expect(await json("rewind", "c0", "--dry-run")).toMatchObject({ left: null, dryRun: true });
    expect(await json("undo")).toMatchObject({ checkpoint: { id: "c2" } });

    expect(await done("verify")).toMatch(/^Sound/);
    expect(await json("verify")).toEqual([]);
  });

  test("restore takes back only what is named; undo takes that back", async () => {
    mkdirSync(join(workspace, "src"));
    put("src/a.ts", "1");
    put("b", "1");
    await done("checkpoint");
    put("src/a.ts", "2");
    put("b", "2");
    put("new", "2");
    const dry = await done("restore", "c0", "--dry-run", "--", "src/", "new");
    expect(dry).toMatch(/^Would take 2 paths back to c0 .*\n.*Would restore 2 paths:\n {2}D new\n {2}M src\/a\.ts\n/s);
    expect([get("src/a.ts"), get("b")]).toEqual(["2", "2"]);
    const back = await done("restore", "c0", "--", "src/", "new");
    expect(back).toMatch(/^Took 2 paths back to c0, .*The workspace is c2 /);
    expect([get("src/a.ts"), get("b"), readdirSync(workspace)]).toEqual(["1", "2", ["b", "src"]]);
    expect(await done("show", "c2")).toContain("from c0: src, new");
    expect(await refused(["restore", "c0", "--", "nothing"], 2, "BAD_ARGUMENT")).toContain("nothing");
    expect(await refused(["restore", "c0"], 2, "BAD_ARGUMENT")).toContain("path");
    expect(await refused(["restore", "c0", "--", "../x"], 1, "PATH_OUTSIDE")).toContain("../x");
    expect(await done("undo", "--dry-run")).toContain("Would go back to c1");
    await done("undo");
    expect([get("src/a.ts"), get("new")]).toEqual(["2", "2"]);
    expect(await json("restore", "c0", "--", "b")).toMatchObject({ paths: ["b"], restored: { changed: ["b"] } });
  });

  test("fork makes workspaces of their own", async () => {
    put("a", "1");
    await done("checkpoint");
    put("a", "2");
    await done("checkpoint");
    const into = join(base, "branches");
    expect(await done("fork", "c0", "--into", into, "--count", "2")).toContain("2 branches from c0 of thread cli:");
    expect(["1", "2"].map((name) => readFileSync(join(into, name, "a"), "utf8"))).toEqual(["1", "1"]);
    const [one] = await json("fork", "c1", "--into", join(base, "one"));
    expect(one).toMatchObject({
      id: "b3",
      state: "open",
      source: { thread: "cli", checkpoint: "c1" },
      folder: join(base, "one"),
    });
    const inBranch = (...args: string[]): Promise<Ran> => run(["--workspace", join(into, "1"), ...args]);
    expect((await inBranch("checkpoint")).stdout).toContain("c2 of thread cli, nothing changed since c0");
    expect((await inBranch("list")).stdout).toMatch(/ c0 .*\n\* c2 /);
    expect(await done("list", "--all")).toMatch(/b1\/c2 .* b1\n/);
    expect((await json("list")).map((row: { id: string }) => row.id)).toEqual(["c0", "c1"]);
    await refused(["fork", "c0", "--into", join(base, "one")], 1, "FOLDER_NOT_EMPTY");
    await refused(["fork", "c0", "--into", join(workspace, "in")], 1, "BRANCH_INSIDE_WORKSPACE");
    await refused(["fork", "c9", "--into", join(base, "x")], 1, "UNKNOWN_CHECKPOINT");
    await refused(["fork", "c0"], 2, "BAD_ARGUMENT");
    await refused(["fork", "c0", "--into", join(base, "x"), "--count", "many"], 2, "BAD_ARGUMENT");
    await refused(["fork", "c0", "--into", join(base, "x"), "--count", "0"], 2, "BAD_ARGUMENT");
    expect(existsSync(join(base, "x"))).toBe(false);
  });

  test("progress is told on stderr, and never with --json", async () => {
    put("a", "1");
    const loud = { env: { AGENTREWIND_PROGRESS_AFTER: "0" } };
    expect((await run(["checkpoint"], loud)).stderr).toBe("checkpoint: reading the workspace (0 s)\n");
    expect((await run(["--json", "checkpoint"], loud)).stderr).toBe("");
  });

  test("a side branch stands indented below the checkpoint where it began", async () => {
    for (const text of ["0", "1", "2"]) {
      put("a.txt", text);
      await done("checkpoint");
    }
    await done("rewind", "c0");
    put("a.txt", "3");
    await done("checkpoint");
    const ids = (await done("list", "--all")).split("\n").map((line) => line.slice(0, 6).trimEnd());
    expect(ids.slice(2, -1)).toEqual(["  c0", "    c1", "    c2", "* c3"]);
  });

  test("scope moves one half", async () => {
    put("a.txt", "one");
    await done("checkpoint");
    put("a.txt", "two, longer");
    await done("checkpoint");
    expect(await done("rewind", "c0", "--scope", "context")).toContain("conversation only");
    expect(get("a.txt")).toBe("two, longer");
    expect(await done("rewind", "c0", "--scope", "environment")).toContain("files only");
    expect(get("a.txt")).toBe("one");
  });

  test("exec passes the output through, between two checkpoints", async () => {
    const ran = await run(["exec", "--", "sh", "-c", "pwd; echo err >&2; touch made"]);
    expect(ran).toMatchObject({ status: 0, stdout: `${workspace}\n` });
    expect(ran.stderr).toBe("err\nbefore: c0, after: c1. To take it back: agentrewind rewind c0\n");
    expect(await done("list")).toContain('exec sh -c pwd; echo err >&2; touch made -> "exit code 0"');

    const failed = await run(["exec", "--", "sh", "-c", "exit 7"]);
    expect(failed.status).toBe(1);
    expect(failed.stderr).toContain("exit code 7");
    expect(await json("list")).toHaveLength(4);
    expect((await run(["exec", "--", "sh", "-c", "kill -9 $$"])).stderr).toContain("SIGKILL");
    const missing = await refused(["exec", "--", "no-such-program"], 1, "COMMAND_FAILED");
    expect(missing).toContain("could not be started");
  });

  test("exec --json holds the output, and takes no option behind --", async () => {
    expect(await json("exec", "--", "echo", "--json")).toMatchObject({
      before: { id: "c0" },
      after: { id: "c1", activity: { actions: [{ tool: "exec", input: "echo --json", failed: false }] } },
      exitCode: 0,
      stdout: "--json\n",
      stderr: "",
    });
    const failed = await run(["--json", "exec", "--", "sh", "-c", "exit 3"]);
    expect(failed.status).toBe(1);
    expect(JSON.parse(failed.stdout)).toMatchObject({ exitCode: 3 });
    expect(JSON.parse(failed.stderr).error.code).toBe("COMMAND_FAILED");
  });

  test("exec ended from outside still makes the checkpoint after", async () => {
    const running = start(["exec", "--", "sh", "-c", "touch begun; exec sleep 60"]);
    while (!existsSync(join(workspace, "begun"))) await sleep(20);
    running.child.kill("SIGTERM");
    const ran = await running.ended;
    expect(ran.status).toBe(1);
    expect(ran.stderr).toContain("ended by SIGTERM");
    expect(await json("list")).toHaveLength(2);
  });

  test("global options stand before and behind the command", async () => {
    const elsewhere = join(base, "elsewhere");
    const other = ["--workspace", workspace, "--store", join(base, "other"), "--thread", "t one"];
    await run(["checkpoint", ...other], { cwd: base });
    await run([...other, "checkpoint"], { cwd: base });
    expect(existsSync(store)).toBe(false);
    const ran = await run(["list", "--json", ...other], { cwd: base });
    expect(JSON.parse(ran.stdout).map((one: { thread: string }) => one.thread)).toEqual(["t one", "t one"]);
    expect(existsSync(elsewhere)).toBe(false);
    const back = await run(["rewind", "c0", ...other], { cwd: base });
    expect(back.stdout).toContain(
      `agentrewind --workspace ${workspace} --store ${join(base, "other")} --thread 't one' undo`,
    );
  });

  test("the default thread is the most recently active one", async () => {
    await done("checkpoint", "--thread", "first");
    await done("checkpoint", "--thread", "second");
    expect(await done("list")).toMatch(/^Thread second \(other threads here: first\)\n/);
    expect(await done("checkpoint", "--thread", "first")).toContain("c1 of thread first");
    expect(await done("checkpoint")).toContain("c2 of thread first");
    await refused(["list", "--thread", "third"], 1, "NO_THREAD");
  });

  test("doctor", async () => {
    expect(await done("doctor")).toContain("there is no store yet");
    expect(existsSync(join(base, "state"))).toBe(false);
    await done("checkpoint");
    const report = await json("doctor");
    expect(report).toMatchObject({
      ok: true,
      node: { version: process.versions.node, supported: true },
      platform: { name: "linux", tested: true },
      sqlite: { available: true },
      workspace: { path: workspace, exists: true },
      recorded: { threads: 1, checkpoints: 1, held: false },
      contents: {
        format: 10,
        workspaces: 1,
        threads: 1,
        checkpoints: 1,
        packs: { packs: 1, orphans: [] },
        softLimit: 20 * 2 ** 30,
      },
    });
    expect(report.store).toMatchObject({ path: store });
    expect(report.store.freeBytes).toBeGreaterThan(0);
    expect(report.contents.bytes).toBeGreaterThan(0);
    expect(report.watcher).toEqual(
      lacking("watcher") ? { available: false, reason: expect.any(String) } : { available: true, reason: null },
    );

    expect(report.ebpf).toEqual({
      status: lacking("ebpf") ? expect.stringMatching(/^(?:unsupported|inconclusive)$/) : "available",
      reason: expect.stringMatching(/./),
    });

    const needs = ["privileges", "namespaces", "cgroup2", "overlay", "btrfs", "loop", "mkfs.btrfs", "criu"];
    expect(report.sandbox.needs.map(({ name }: { name: string }) => name)).toEqual(needs);
    for (const { status, reason, hint } of report.sandbox.needs) {
      expect(["available", "unsupported", "inconclusive"]).toContain(status);
      expect(reason).not.toBe("");
      expect(hint === "").toBe(status === "available");
    }

    const off = await run(["doctor"], { env: { AGENTREWIND_NATIVE: "off" } });
    expect(off.status).toBe(0);
    expect(off.stdout).toMatch(/addon +not available/);
    expect(off.stdout).toMatch(/fidelity +without /);
    expect(off.stdout).toMatch(/watcher +not available: needs the addon/);
    expect(off.stdout).toMatch(/ebpf +not available: needs the addon: AGENTREWIND_NATIVE=off/);

    if (lacking("native", "root")) return;
    chmodSync(base, 0o755);
    chmodSync(workspace, 0o700);
    const shut = await run(["--workspace", workspace, "--store", join(base, "no-store"), "doctor"], {
      cwd: base,
      uid: 65534,
    });
    expect(shut.stdout, shut.stderr).toMatch(/watcher +not available: the workspace cannot be read \(EACCES\)/);
    expect(shut.stdout).toMatch(/ebpf +not available: /);
    expect(off.stdout).toContain('"allowScripts": {"agentrewind": true, "better-sqlite3": true}');
  });

  test.skipIf(lacking("root", "criu", "btrfs", "overlay", "cgroup2", "namespaces", "loop"))(
    "doctor names what a sandbox needs and does not have",
    async () => {
      const cache = process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache");
      const all = await run(["doctor"], { env: { XDG_CACHE_HOME: cache } });
      expect(all.stdout).toMatch(/\nsandbox +available\n/);
      expect(all.stdout).toMatch(/\n {2}criu +4\.\d+/);
      expect(all.stdout).not.toContain("modprobe");

      chmodSync(base, 0o755);
      const { stdout } = await run(["--store", join(base, "no-store"), "doctor"], { uid: 65534 });
      expect(stdout).toMatch(/\nsandbox +not available\n/);
      expect(stdout).toMatch(
        /\n {2}privileges +not available: not root, without CAP_CHOWN, .*CAP_SYS_ADMIN, .*\. Run it as root\.\n/,
      );
      expect(stdout).toMatch(/\n {2}criu +not available: CRIU is used by root only\. Run it as root\.\n/);
    },
  );

  test("prune and gc", async () => {
    expect(await done("gc")).toContain("There is no store");
    expect(existsSync(join(base, "state"))).toBe(false);
    for (let i = 0; i < 6; i++) {
      put("a.txt", `${i}`.repeat(50_000 + i));
      await done("checkpoint", ...(i === 1 ? ["--label", "green"] : []));
    }
    expect(await done("gc")).toBe("Nothing to give back.\n");
    expect(await done("prune", "--keep-last", "2", "--dry-run")).toMatch(
      /^Would prune 3 checkpoints: cli\/c0, cli\/c2, cli\/c3\. Would keep 3\.\nNothing was changed/,
    );
    expect(await json("list")).toHaveLength(6);
    const pruned = await json("prune", "--keep-last", "2");
    expect(pruned).toMatchObject({ kept: 3, dryRun: false, gc: { postponed: [], packs: { rewritten: 0 } } });
    expect(pruned.pruned).toEqual(["c0", "c2", "c3"].map((id) => ({ thread: "cli", id })));
    expect(pruned.gc.objects).toBeGreaterThan(3);
    expect(await done("list")).toMatch(/… 1 checkpoint pruned\n {2}c1 .*\n.*… 2 checkpoints pruned\n {2}c4 /);
    expect(await done("verify")).toMatch(
      /^Sound: .*\n[\d.]+ KiB of the packs' [\d.]+ KiB are needed by no checkpoint\.\n$/,
    );
    expect(await json("verify")).toEqual([]);
    expect((await json("list", "--all")).at(-1)).toMatchObject({ id: "c5", parent: "c4", pruned: 0 });
    await refused(["rewind", "c0"], 1, "UNKNOWN_CHECKPOINT");
    await refused(["prune"], 2, "BAD_ARGUMENT");
    await refused(["prune", "--keep-within", "soon"], 2, "BAD_ARGUMENT");
    expect(await done("prune", "--keep-within", "2h")).toMatch(/^Pruned 0 checkpoints\. Kept 3\.\n/);
    expect(await done("prune", "--keep-last", "1")).toMatch(/Gave back .* \(.*1 rewritten/);
    await done("rewind", "c1");
    expect(get("a.txt")).toBe("1".repeat(50_001));
  });

  test("the soft limit is told by every command, and by doctor", async () => {
    const limited = { env: { AGENTREWIND_SOFT_LIMIT: "10K" } };
    put("a.txt", "x".repeat(50_000));
    const made = await run(["checkpoint"], limited);
    expect(made.status).toBe(0);
    expect(made.stderr).toMatch(
      /^agentrewind: The store .* takes .*, more than its soft limit of .*prune --keep-last 100.*\n$/,
    );
    expect((await run(["list", "--json"], limited)).stderr).toBe("");
    expect((await run(["doctor"], limited)).stdout).toMatch(/warning: The store .* more than its soft limit/);
    expect((await run(["list"], { env: { AGENTREWIND_SOFT_LIMIT: "0" } })).stderr).toBe("");
    const wrong = await run(["list"], { env: { AGENTREWIND_SOFT_LIMIT: "lots" } });
    expect(wrong.status).toBe(0);
    expect(wrong.stderr).toContain("which is no size");
  });

  test("colour only on a terminal that wants it", () => {
    const text = (tty: boolean): string => paintFor({ isTTY: tty })("red", "x");
    const { NO_COLOR, TERM } = process.env;
    try {
      delete process.env.NO_COLOR;
      process.env.TERM = "xterm";
      expect(text(true)).toBe("\x1b[31mx\x1b[39m");
      expect(text(false)).toBe("x");
      process.env.NO_COLOR = "1";
      expect(text(true)).toBe("x");
    } finally {
      Object.assign(process.env, NO_COLOR === undefined ? {} : { NO_COLOR }, TERM === undefined ? {} : { TERM });
      if (NO_COLOR === undefined) delete process.env.NO_COLOR;
      if (TERM === undefined) delete process.env.TERM;
    }
  });
});

describe("wrong usage and bad input", () => {
  test.each([
    [["frobnicate"]],
    [["list", "--frobnicate"]],
    [["list", "extra"]],
    [["show"]],
    [["rewind"]],
    [["rewind", "c0", "--scope", "half"]],
    [["exec"]],
    [["exec", "ls", "-l"]],
    [["--store"]],
    [["--store", "", "list"]],
    [["--thread", "", "checkpoint"]],
    [["checkpoint", "--label", "  "]],
  ])("%j ends with 2", async (args) => {
    await refused(args, 2, "BAD_ARGUMENT");
  });

  test("no command: the help on stderr; help asked for: on stdout", async () => {
    const none = await run([]);
    expect(none.status).toBe(2);
    expect(none.stderr).toContain("Commands:");
    expect(JSON.parse((await run(["--json"])).stderr).error.message).toBe("No command was given.");
    expect(await done("--help")).toContain("rewind [options] <id>");
    expect(await done("rewind", "--help")).toContain("--dry-run");
    expect(await done("--version")).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  test("where nothing is recorded, readers say so and make nothing", async () => {
    expect(await done("list")).toContain("There is no store at");
    expect(await json("list")).toEqual([]);
    for (const args of [["show", "c0"], ["diff", "c0"], ["diff", "c0", "c1"], ["rewind", "c0"], ["undo"], ["verify"]])
      await refused(args, 1, "NO_THREAD");
    expect(existsSync(join(base, "state"))).toBe(false);
    mkdirSync(join(base, "other"));
    expect((await run(["checkpoint"], { cwd: join(base, "other") })).status).toBe(0);
    expect(await done("list")).toContain(`Nothing is recorded of ${workspace}.`);
    await refused(["rewind", "c0"], 1, "NO_THREAD");
  });

  test("unknown and malformed ids", async () => {
    await done("checkpoint");
    expect(await refused(["rewind", "c9"], 1, "UNKNOWN_CHECKPOINT")).toContain("Use one of c0");
    await refused(["show", "c9"], 1, "UNKNOWN_CHECKPOINT");
    await refused(["show", "\x1b[31mgreen"], 1, "BAD_CHECKPOINT");
    await refused(["diff", "c0", "c9"], 1, "UNKNOWN_CHECKPOINT");
    await refused(["rewind", "c0", "--lesson", " "], 1, "LESSON_EMPTY");
  });

  test("no escape sequence of a name, a label or a command reaches the terminal", async () => {
    const names = ["a\x1b[31mb", "c\u009b2Jd", "e\u202etxt.f", "g\nh", 'i"j', "k\x07l"];
    for (const name of names) put(name, "x");
    writeFileSync(Buffer.concat([Buffer.from(`${workspace}/`), Buffer.from([0x6d, 0xff, 0x1b])]), "x");
    await done("checkpoint", "--label", "l\x1b]0;owned\x07\u202e", "--thread", "t\x1b[2J");
    await run(["exec", "--", "sh", "-c", "rm -f *; : \x1b[31m\u009b"]);
    const outputs = [
      await done("list"),
      await done("list", "--all"),
      await done("show", "c0"),
      await done("show", "c2"),
      await done("diff", "c1", "c2"),
      await done("diff", "c1"),
      await done("rewind", "c1", "--dry-run"),
      await done("rewind", "c1"),
      await done("doctor"),
      await done("verify"),
      await refused(["show", "--thread", "\x1b[2J", "c0"], 1, "NO_THREAD"),
      await refused(["\x1b[2J"], 2, "BAD_ARGUMENT"),
    ];
    for (const args of [["list"], ["show", "c2"], ["diff", "c1", "c2"], ["rewind", "c1"]])
      outputs.push(await done("--json", ...args));
    for (const output of outputs) expect(output).not.toMatch(/[^\P{Cc}\n]|\p{Cf}/u);
    const changes = (await json("show", "c2")).changes.removed as string[];
    expect(changes).toContain('"a\\x1b[31mb"');
    expect(changes).toContain('"e\\xe2\\x80\\xaetxt.f"');
  });

  test("F-1: a store of a newer format is refused and left as it is", async () => {
    await done("checkpoint");
    const sql = new Database(join(store, "catalog.db"));
    sql.pragma("user_version = 99");
    sql.close();
    for (const args of [["list"], ["checkpoint"], ["rewind", "c0"], ["verify"]])
      expect(await refused(args, 1, "STORE_TOO_NEW")).toContain("format 99");
    const doctor = await run(["doctor"]);
    expect(doctor.status).toBe(1);
    expect(doctor.stdout).toContain("format 99");
  });

  test("a catalog that is none is named in one line", async () => {
    mkdirSync(store, { recursive: true });
    writeFileSync(join(store, "catalog.db"), "this is no database, but it is long enough to be read as one".repeat(20));
    await refused(["list"], 1, "STORE_CORRUPT");
    await refused(["checkpoint"], 1, "STORE_CORRUPT");
  });

  test("damaged objects: verify names them and ends with 1", async () => {
    put("a.txt", "some content to damage");
    await done("checkpoint");
    const pack = join(store, "packs", readdirSync(join(store, "packs"))[0] as string);
    const bytes = readFileSync(pack);
    bytes[bytes.indexOf("some content")] = 0;
    writeFileSync(pack, bytes);
    const ran = await run(["verify"]);
    expect(ran.status).toBe(1);
    expect(ran.stdout).toContain("environment cli/c0: ");
    const asJson = await run(["verify", "--json"]);
    expect(asJson.status).toBe(1);
    expect(JSON.parse(asJson.stdout)).toHaveLength(1);
    expect(JSON.parse(asJson.stderr).error.code).toBe("STORE_CORRUPT");
    put("a.txt", "other");
    await refused(["rewind", "c0"], 1, "STORE_CORRUPT");
    expect(get("a.txt")).toBe("other");
  });

  test("F-3: a store inside the workspace is refused, and so is the home folder", async () => {
    await refused(["checkpoint", "--store", join(workspace, "store")], 1, "STORE_INSIDE_WORKSPACE");
    expect(readdirSync(workspace)).toEqual([]);
    const home = join(base, "home");
    mkdirSync(home);
    const setting = { cwd: home, env: { HOME: home } };
    await refused(["checkpoint"], 1, "WORKSPACE_TOO_BROAD", setting);
    await refused(["checkpoint", "--workspace", "/"], 1, "STORE_INSIDE_WORKSPACE", setting);
    expect((await run(["--allow-broad", "checkpoint"], setting)).status).toBe(0);
    expect((await run(["list"], setting)).stdout).toContain("c0");
  });

  test("a vanished workspace: everything is listed, and a rewind makes it again", async () => {
    put("a.txt", "one");
    await done("checkpoint");
    rmSync(workspace, { recursive: true });
    const here = ["--workspace", workspace];
    const ran = async (...args: string[]): Promise<Ran> => run([...here, ...args], { cwd: base });
    expect((await ran("list")).stdout).toContain("* c0");
    expect((await ran("show", "c0")).status).toBe(0);
    expect((await ran("verify")).status).toBe(0);
    expect((await ran("doctor")).stdout).toContain("(not there)");
    await refused([...here, "diff", "c0"], 1, "WORKSPACE_GONE", { cwd: base });
    await refused([...here, "exec", "--", "true"], 1, "WORKSPACE_GONE", { cwd: base });
    expect((await ran("rewind", "c0")).status).toBe(0);
    expect(get("a.txt")).toBe("one");

    const inside = join(base, "inside.sh");
    writeFileSync(inside, 'rm -r "$PWD"; "$@" list && "$@" rewind c0\n');
    execFileSync("sh", [inside, process.execPath, commandFile], {
      cwd: workspace,
      env: { PATH: process.env.PATH, HOME: base, XDG_STATE_HOME: join(base, "state") },
    });
    expect(get("a.txt")).toBe("one");
  });

  test("a file in the workspace's place: still listed, and not overwritten", async () => {
    await done("checkpoint");
    rmSync(workspace, { recursive: true });
    writeFileSync(workspace, "a file");
    const here = ["--workspace", workspace];
    expect((await run([...here, "list"], { cwd: base })).stdout).toContain("* c0");
    await refused([...here, "rewind", "c0"], 1, "WORKSPACE_GONE", { cwd: base });
    expect(readFileSync(workspace, "utf8")).toBe("a file");
  });

  test("a moved workspace is found again", async () => {
    await done("checkpoint", "--label", "before the move");
    const moved = join(base, "moved");
    renameSync(workspace, moved);
    expect((await run(["list"], { cwd: moved })).stdout).toContain("before the move");
    expect((await run(["rewind", "c0"], { cwd: moved })).status).toBe(0);
  });

  test("without better-sqlite3's native part: one sentence, and doctor says how to get it", async () => {
    const stub = join(base, "stub.cjs");
    writeFileSync(
      stub,
      `const { _extensions } = require("node:module"); const load = _extensions[".node"];
       _extensions[".node"] = (module, file) => {
         if (file.includes("better_sqlite3")) throw Object.assign(new Error("gone"), { code: "MODULE_NOT_FOUND" });
         return load(module, file);
       };`,
    );
    const setting = { env: { NODE_OPTIONS: `--require ${stub}` } };
    expect(await refused(["checkpoint"], 1, "NOT_AVAILABLE", setting)).toContain("npm rebuild better-sqlite3");
    const doctor = await run(["doctor"], setting);
    expect(doctor.status).toBe(1);
    expect(doctor.stdout).toMatch(/sqlite +not available/);
  });

  test.each([
    ["win32", 1],
    ["darwin", 0],
  ])("on %s", async (platform, status) => {
    const stub = join(base, "platform.cjs");
    writeFileSync(stub, `Object.defineProperty(process, "platform", { value: "${platform}" });`);
    const setting = { env: { NODE_OPTIONS: `--require ${stub}` } };
    const doctor = await run(["doctor"], setting);
    expect(doctor.status).toBe(status);
    expect(doctor.stdout).toContain(platform === "win32" ? "does not run on Windows" : "untested");
    if (platform === "win32") await refused(["list"], 1, "NOT_AVAILABLE", setting);
  });
});

describe("effects and lessons", () => {
  test("list and show tell what was done outside of the workspace, how it ended, and what was learned", async () => {
    const effects = {
      send_mail: { class: "irreversible", describe: ({ to }: { to: string }) => `mail to ${to}` },
      book: {
        class: "compensable",
        compensate() {
          throw new Error("too late");
        },
      },
    } as const;
    const rewind = await openRewind({ workspace, store, effects, compensate: "always" });
    const thread = rewind.thread("t");
    put("a.txt", "one");
    await thread.checkpoint({ context: { messages: ["m0"] } });
    await thread.runTool({ tool: "send_mail", args: { to: "ann\u001b[31m" } }, () => "sent");
    await thread.runTool({ tool: "book", args: { room: 7 } }, () => ({ id: 1 }));
    let gone = (): void => {};
    const open = thread.runTool(
      { tool: "send_mail", args: { to: "bob" } },
      () =>
        new Promise<void>((resolve) => {
          gone = resolve;
        }),
    );
    open.catch(() => {});
    await expect.poll(() => thread.effects().length).toBe(3);
    await thread.checkpoint({ context: { messages: ["m0", "m1"] } });
    await thread.rewind({ to: "c0", lesson: { attempted: "mailing at once", instead: "ask first" } });
    await rewind.close();
    gone();

    const listed = await done("list");
    expect(listed).toContain("Done outside of the workspace (3 effects, the newest last):");
    expect(listed).toContain('  mail to ann\\x1b[31m at c0: completed -> "sent"\n');
    expect(listed).toMatch(/ {2}book \{"room":7\} at c0: uncompensated \(too late\)/);
    expect(listed).toContain("  mail to bob at c0: begun, no result recorded\n");
    expect(listed).toContain(
      "Lessons (1 lesson, newest first):\n  c1 -> c0: Tried: mailing at once. Instead: ask first.",
    );

    const shown = await done("show", "c0");
    expect(shown).toContain("Done outside of the workspace (3 effects):");
    expect(shown).toContain("  c1 -> c0: Tried: mailing at once. Instead: ask first.");
    const one = await json("show", "c0");
    expect(one.effects.map((effect: { state: string }) => effect.state)).toEqual([
      "completed",
      "uncompensated",
      "unknown",
    ]);
    expect(one.lessons).toMatchObject([{ rewind: 1, branch: null, parts: { instead: "ask first" } }]);
    expect((await json("list"))[0].effects).toHaveLength(3);

    await refused(["rewind", "c1", "--verify", "echo no; false"], 1, "VERIFY_FAILED");
    expect(await json("rewind", "c1", "--verify", "test -e a.txt")).toMatchObject({ checkpoint: { id: "c1" } });
    await done("undo");

    const undone = await done("undo");
    expect(undone).not.toContain("Done in the world");
    const again = await done("rewind", "c0");
    expect(again).toContain("Done in the world and not undone:\n  mail to ann");
    expect(await json("verify")).toEqual([]);
  });
});
