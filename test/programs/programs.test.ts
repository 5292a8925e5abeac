// What commands of a directory leave running: ended by a rewind to before it, started again or named by one to after it. Real processes, looked at from outside.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { lacking } from "../capabilities.ts";
import { freePort } from "../helpers/free-port.ts";
import { codeOf, endSession, useRewind } from "../helpers/workspace.ts";
import { Beating, checkpoint, named, plain } from "./beating.ts";

const again = "relaunched: its memory is not what it was";
const wentOn = "still runs: it has gone on since then, and its memory is not what it was";
/** As the kernel names the interpreter. */
const python = /\(python[\d.]*\)/g;
const tidy = (lines: readonly string[]): string[] => lines.map((one) => one.replace(python, "(python)"));

describe.skipIf(lacking("python"))("programs that commands left running", () => {
  test("a rewind ends those of later, in whatever way they were begun, and starts that of then again", async () => {
    const beating = new Beating();
    const rewind = await useRewind(beating.place);
    const { environment } = rewind;
    const thread = rewind.thread("t");
    const c0 = await checkpoint(thread);
    expect(c0.environment.processes).toBeNull();
    mkdirSync(join(beating.place.workspace, "sub"));
    const line = `umask 027; cd sub; ${beating.command("server", "listen=0", "print")} >>../server.log 2>&1 &`;
    await environment.exec(line, { env: { TINT: "red" } });
    const server = await beating.alive("server");
    const c1 = await checkpoint(thread);
    expect(tidy(plain(c1.problems))).toEqual([
      "(python) on a port: its memory is not kept: a rewind starts it again where it has ended, and lets it go on where not",
    ]);
    expect((await checkpoint(thread)).environment).toEqual({ ...c1.environment, files: expect.anything() });

    process.kill(server.pid, "SIGKILL");
    await environment.exec(beating.line("job"));
    await environment.exec(`setsid ${beating.command("apart")} >/dev/null 2>&1 & disown`);
    await environment.exec(`(setsid sh -c '${beating.line("deep")}' &)`);
    await environment.exec(beating.line("stubborn", "stubborn"));
    const later = ["job", "apart", "deep", "stubborn"];
    await Promise.all(later.map((name) => beating.alive(name)));

    const back = await thread.rewind({ to: c1.id, lesson: "once more" });
    await Promise.all(later.map((name) => beating.ended(name)));
    expect(tidy(back.stopped.map(named))).toEqual(["(python)", "(python)", "(python)", "(python)"]);
    expect(tidy(plain(back.notRestored))).toEqual([`(python) on a port: ${again}`]);
    const { pid, cwd, umask, tint } = await beating.alive("server");
    expect(pid).not.toBe(server.pid);
    expect({ cwd, umask, tint }).toEqual({ cwd: server.cwd, umask: 0o027, tint: "red" });
    expect(back.message).toMatch(/Stopped, because started after that point: process \d+ \(python/);
    expect(back.message).toMatch(/process \d+ \(python\S*\) on port \d+ \(relaunched/);
    expect(back.message).not.toContain("start again what you need");
    // It is the same state again: no checkpoint tells of another program.
    expect((await checkpoint(thread)).environment.processes).toBe(c1.environment.processes);

    const begin = await thread.rewind({ to: c0.id });
    expect(begin.stopped).toHaveLength(1);
    expect(begin.message).toContain("Nothing that a command left in the background runs now, as at that checkpoint.");
    await beating.ended("server");
    expect(
      readdirSync(
        join(beating.place.store, "programs", readdirSync(join(beating.place.store, "programs"))[0] as string),
      ),
    ).toEqual([]);
  });

  test("between two checkpoints, what runs at both goes on; undo starts again what the rewind ended", async () => {
    const beating = new Beating();
    const rewind = await useRewind(beating.place);
    const thread = rewind.thread("t");
    await rewind.environment.exec(beating.line("first"));
    const first = await beating.alive("first");
    const c0 = await checkpoint(thread);
    await rewind.environment.exec(beating.line("second"));
    await beating.alive("second");
    const c1 = await checkpoint(thread);
    expect((await thread.diff(c0.id, c1.id)).processes).toEqual({ changed: true });

    const dry = await thread.rewind({ to: c0.id, dryRun: true });
    expect(dry.stopped).toHaveLength(1);
    expect(tidy(plain(dry.notRestored))).toEqual([`(python): ${wentOn}`]);
    await beating.alive("second");

    const back = await thread.rewind({ to: c0.id });
    expect(tidy(plain(back.notRestored))).toEqual([`(python): ${wentOn}`]);
    expect(back.message).toContain("above is said which go on");
    await beating.ended("second");
    expect((await beating.alive("first")).pid).toBe(first.pid);

    const undone = await thread.undo();
    expect(tidy(plain(undone.notRestored))).toEqual([`(python): ${again}`, `(python): ${wentOn}`]);
    await beating.alive("second");
    expect((await beating.alive("first")).pid).toBe(first.pid);
    const later = await thread.rewind({ to: c1.id });
    expect(tidy(plain(later.notRestored))).toEqual([`(python): ${wentOn}`, `(python): ${wentOn}`]);
  });

  test("a command has ended when it has, though what it left still holds its output; that goes on", async () => {
    const beating = new Beating();
    const rewind = await useRewind(beating.place);
    const result = await rewind.environment.exec(`echo begun; ${beating.command("server", "print")} & :`, {
      timeoutMs: 60_000,
    });
    expect(result).toMatchObject({ exitCode: 0, timedOut: false });
    expect(result.stdout).toMatch(/^begun\n/);
    const { pid } = await beating.alive("server");
    const c0 = await checkpoint(rewind.thread("t"));
    expect((await beating.alive("server")).pid).toBe(pid);
    process.kill(pid, "SIGKILL");
    // Its output went to the command; it goes nowhere now.
    expect(tidy(plain((await rewind.thread("t").rewind({ to: c0.id })).notRestored))).toEqual([`(python): ${again}`]);
    await beating.alive("server");
  });

  test("what a program of later wrote until its end is taken back", async () => {
    const beating = new Beating();
    const rewind = await useRewind(beating.place);
    const thread = rewind.thread("t");
    writeFileSync(join(beating.place.workspace, "writer.log"), "before\n");
    const c0 = await checkpoint(thread);
    await rewind.environment.exec(beating.line("writer", "log"));
    await beating.alive("writer");
    const { notRestored, stopped } = await thread.rewind({ to: c0.id });
    expect(stopped).toHaveLength(1);
    expect(notRestored).toEqual([]);
    await beating.ended("writer");
    expect(readFileSync(join(beating.place.workspace, "writer.log"), "utf8")).toBe("before\n");
    expect((await checkpoint(thread)).environment).toEqual(c0.environment);
  });

  test("what cannot be started again is named with the reason", async () => {
    const beating = new Beating();
    const rewind = await useRewind(beating.place);
    const thread = rewind.thread("t");
    const { workspace } = beating.place;
    writeFileSync(join(workspace, "once.sh"), `rm once.sh; exec ${beating.command("once")}`);
    await rewind.environment.exec(
      `(while [ -e ${workspace} ]; do sleep 0.1; done) >/dev/null 2>&1 & sleep 30 </dev/null 2>/dev/null | ${beating.command("reader")} >/dev/null 2>&1 & sh once.sh >/dev/null 2>&1 &`,
    );
    await Promise.all(["reader", "once"].map((name) => beating.alive(name)));
    mkdirSync(join(workspace, "gone"));
    await rewind.environment.exec(beating.line("homeless"), { cwd: "gone" });
    await beating.alive("homeless");
    const c0 = await checkpoint(thread);
    const live = (await thread.rewind({ to: c0.id, dryRun: true })).notRestored;
    for (const { path } of live) process.kill(Number(/process (\d+)/.exec(path)?.[1]), "SIGKILL");
    // What a killed loop had just started ends by itself.
    await sleep(300);
    const { notRestored } = await thread.rewind({ to: c0.id });
    expect(tidy(plain(notRestored))).toEqual([
      "(bash): not started again: it was a part of another program, and what it did was in memory only",
      "(python): not started again: it was connected to another process",
      `(python): ${again}`,
      `(python): ${again}`,
      "(sleep): not started again: it was connected to another process",
    ]);
  });

  test("one that ends at once when it is started again is named", async () => {
    const beating = new Beating();
    const rewind = await useRewind(beating.place);
    const thread = rewind.thread("t");
    const guarded = `if [ -e ${beating.place.base}/begun ]; then exit 3; fi; touch ${beating.place.base}/begun; ${beating.command("guarded")} & wait`;
    writeFileSync(join(beating.place.workspace, "guarded.sh"), guarded);
    await rewind.environment.exec("sh guarded.sh >/dev/null 2>&1 &");
    const { pid } = await beating.alive("guarded");
    const c0 = await checkpoint(thread);
    process.kill(pid, "SIGKILL");
    await beating.ended("guarded");
    expect(tidy(plain((await thread.rewind({ to: c0.id })).notRestored))).toEqual([
      "(sh): it was started again, and ended at once (exit status 3)",
    ]);
  });

  test("the policies", async () => {
    for (const processes of ["restart", "stop", "ignore"] as const) {
      const beating = new Beating();
      const rewind = await useRewind(beating.place, { directory: { processes } });
      const thread = rewind.thread("t");
      await rewind.environment.exec(beating.line("then"));
      const then = await beating.alive("then");
      const c0 = await checkpoint(thread);
      await rewind.environment.exec(beating.line("later"));
      await beating.alive("later");
      const back = await thread.rewind({ to: c0.id });
      if (processes === "ignore") {
        expect(c0.environment.processes).toBeNull();
        expect(back.message).toContain("Running programs were not restored: start again what you need.");
        await beating.alive("later");
        expect((await beating.alive("then")).pid).toBe(then.pid);
        expect(existsSync(join(beating.place.store, "programs"))).toBe(false);
        continue;
      }
      await beating.ended("later");
      expect(back.stopped).toHaveLength(1);
      if (processes === "restart") {
        expect((await beating.alive("then")).pid).not.toBe(then.pid);
        expect(tidy(plain(back.notRestored))).toEqual([`(python): ${again}`]);
      } else {
        await beating.ended("then");
        expect(tidy(plain(back.notRestored))).toEqual(["(python): stopped: processes are not kept"]);
      }
    }
    expect(await codeOf(useRewind(new Beating().place, { directory: { processes: "restore" as never } }))).toBe(
      "BAD_ARGUMENT",
    );
  });

  test("paths alone leave programs alone; so does what was started without a command", async () => {
    const beating = new Beating();
    const rewind = await useRewind(beating.place);
    const thread = rewind.thread("t");
    writeFileSync(join(beating.place.workspace, "f"), "1");
    const c0 = await checkpoint(thread);
    const [file = "", ...args] = beating.command("agents").trim().split(" ");
    const child = spawn(file, args, { cwd: beating.place.workspace, detached: true, stdio: "ignore" });
    await rewind.environment.exec(beating.line("later"));
    await Promise.all(["agents", "later"].map((name) => beating.alive(name)));
    writeFileSync(join(beating.place.workspace, "f"), "2");
    const part = await thread.rewind({ to: c0.id, paths: ["f"] });
    expect(part.message).toContain("Running programs were left as they are.");
    await beating.alive("later");
    await rewind.environment.restore(c0.environment, { paths: new Set(["f"]) });
    await beating.alive("later");
    expect((await thread.rewind({ to: c0.id })).stopped).toHaveLength(1);
    await beating.ended("later");
    expect((await beating.alive("agents")).pid).toBe(child.pid);
  });

  test("a rewind whose check fails brings back the programs that it ended", async () => {
    const beating = new Beating();
    const rewind = await useRewind(beating.place);
    const thread = rewind.thread("t");
    const c0 = await checkpoint(thread);
    await rewind.environment.exec(beating.line("later"));
    await beating.alive("later");
    expect(await codeOf(thread.rewind({ to: c0.id, verify: "exit 1" }))).toBe("VERIFY_FAILED");
    await beating.alive("later");
    await thread.rewind({ to: c0.id, verify: `${beating.line("checker")} exit 0` });
    await Promise.all(["later", "checker"].map((name) => beating.ended(name)));
  });

  test("a port that a program of then had is free again when it is started again", async () => {
    const beating = new Beating();
    const rewind = await useRewind(beating.place);
    const thread = rewind.thread("t");
    const port = await freePort();
    await rewind.environment.exec(beating.line("then", `listen=${port}`));
    const then = await beating.alive("then");
    const c0 = await checkpoint(thread);
    expect(c0.problems[0]?.path).toContain(` on port ${port}`);
    process.kill(then.pid, "SIGKILL");
    await rewind.environment.exec(beating.line("later", `listen=${port}`));
    await beating.alive("later");
    const { notRestored, stopped } = await thread.rewind({ to: c0.id });
    expect(stopped).toEqual([expect.stringContaining(` on port ${port}`)]);
    expect(tidy(plain(notRestored))).toEqual([`(python) on a port: ${again}`]);
    expect((await beating.alive("then")).port).toBe(port);
  });

  test("a closed workspace that is opened again knows its programs", async () => {
    const beating = new Beating();
    const first = await useRewind(beating.place);
    const c0 = await checkpoint(first.thread("t"));
    await first.environment.exec(beating.line("kept"));
    const kept = await beating.alive("kept");
    const c1 = await checkpoint(first.thread("t"));
    await endSession(first);
    expect((await beating.alive("kept")).pid).toBe(kept.pid);
    const second = await useRewind(beating.place);
    expect((await checkpoint(second.thread("t"))).environment).toEqual(c1.environment);
    expect(tidy(plain((await second.thread("t").rewind({ to: c1.id })).notRestored))).toEqual([`(python): ${wentOn}`]);
    expect((await second.thread("t").rewind({ to: c0.id })).stopped).toHaveLength(1);
    await beating.ended("kept");
  });
});
