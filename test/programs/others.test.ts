// Programs of a directory across processes: a killed owner, the command beside a session, branches, what the store keeps; and what must never be touched.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openRewind } from "agentrewind";
import { afterEach, describe, expect, test } from "vitest";
import { lacking } from "../capabilities.ts";
import { commandFile, libraryEntry } from "../helpers/library.ts";
import { runSteps, startSteps } from "../helpers/steps.ts";
import { codeOf, endSession, useRewind } from "../helpers/workspace.ts";
import { Beating, checkpoint, plain } from "./beating.ts";

const children: ChildProcess[] = [];
afterEach(async () => {
  for (const child of children.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    child.kill("SIGKILL");
    await once(child, "exit");
  }
});

/** The command, as a process of its own. */
async function command({ place }: Beating, ...words: string[]): Promise<string> {
  const child = spawn(
    process.execPath,
    [commandFile, "--workspace", place.workspace, "--store", place.store, ...words],
    {
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  children.push(child);
  let out = "";
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (text) => (out += text));
  const [status] = await once(child, "exit");
  expect(status, out).toBe(0);
  return out;
}

const where = ({ place: { workspace, store } }: Beating) => ({ workspace, store });
const context = { messages: ["go on"] };

describe.skipIf(lacking("python"))("programs of a directory", () => {
  test("after a SIGKILL of the owner, also within a command, the next one knows what is left", async () => {
    const beating = new Beating();
    const owner = startSteps(where(beating), [
      { op: "open" },
      { op: "turn", context },
      { op: "exec", command: beating.line("then") },
      { op: "turn", context },
      { op: "exec", command: beating.line("later") },
      { op: "exec", command: beating.command("running") },
    ]);
    children.push(owner);
    const then = await beating.alive("then");
    await Promise.all(["later", "running"].map((name) => beating.alive(name)));
    owner.kill("SIGKILL");
    await once(owner, "exit");
    await Promise.all(["then", "later", "running"].map((name) => beating.alive(name)));

    const rewind = await useRewind(beating.place);
    const back = await rewind.thread("t").rewind({ to: "c1" });
    expect(back.stopped).toHaveLength(2);
    await Promise.all(["later", "running"].map((name) => beating.ended(name)));
    expect((await beating.alive("then")).pid).toBe(then.pid);
    expect((await rewind.thread("t").rewind({ to: "c0" })).stopped).toHaveLength(1);
    await beating.ended("then");
  });

  test.each(["rewind.intent", "restore.staged", "restore.applied", "rewind.restored", "rewind.committed"])(
    "F-24: a rewind that is killed at %s is finished with its programs",
    async (fault) => {
      const beating = new Beating();
      const first = await useRewind(beating.place);
      writeFileSync(join(beating.place.workspace, "f"), "1");
      await first.environment.exec(beating.line("then"));
      const then = await beating.alive("then");
      await first.thread("t").checkpoint({ context });
      process.kill(then.pid, "SIGKILL");
      writeFileSync(join(beating.place.workspace, "f"), "2");
      await first.environment.exec(beating.line("later"));
      await beating.alive("later");
      await endSession(first);
      const { signal } = runSteps({ ...where(beating), env: { AGENTREWIND_FAULT: fault } }, [
        { op: "open" },
        { op: "rewind", to: "c0" },
      ]);
      expect(signal).toBe("SIGKILL");
      const rewind = await useRewind(beating.place);
      expect(rewind.thread("t").checkpoints().at(-1)?.id).toBe("c0");
      await beating.ended("later");
      await beating.alive("then");
      expect((await rewind.thread("t").rewind({ to: "c0" })).stopped).toEqual([]);
      expect(readFileSync(join(beating.place.workspace, "f"), "utf8")).toBe("1");
    },
  );

  test("`agentrewind exec` and `agentrewind rewind`, without a session and beside one", async () => {
    const beating = new Beating();
    await command(beating, "checkpoint");
    await command(beating, "exec", "--", "sh", "-c", beating.line("one"));
    await beating.alive("one");
    expect(JSON.parse(await command(beating, "--json", "show", "c2")).problems).toHaveLength(1);
    await command(beating, "--json", "exec", "--", "sh", "-c", beating.line("two"));
    await beating.alive("two");
    const back = await command(beating, "rewind", "c2");
    expect(back).toMatch(/Stopped, because started after that point:\n {2}process \d+ \(python/);
    await beating.ended("two");
    const one = await beating.alive("one");

    const rewind = await useRewind(beating.place);
    const thread = rewind.thread("cli");
    await command(beating, "exec", "--", "sh", "-c", beating.line("three"));
    await beating.alive("three");
    expect((await checkpoint(thread)).problems).toHaveLength(2);
    await rewind.environment.exec(beating.line("four"));
    await beating.alive("four");
    await command(beating, "rewind", "c2");
    await Promise.all(["three", "four"].map((name) => beating.ended(name)));
    expect((await beating.alive("one")).pid).toBe(one.pid);
    await command(beating, "rewind", "c0");
    await beating.ended("one");
    await command(beating, "undo");
    await beating.alive("one");
  });

  test("an agent that runs inside of `agentrewind exec`, and what it has started itself, is not its own to end", async () => {
    const beating = new Beating();
    const agent = join(beating.place.base, "agent.mjs");
    const [file, ...args] = beating.command("own").trim().split(" ");
    writeFileSync(
      agent,
      `import { spawn } from "node:child_process";
       const { openRewind } = await import(${JSON.stringify(libraryEntry)});
       spawn(${JSON.stringify(file)}, ${JSON.stringify(args)}, { detached: true, stdio: "ignore" }).unref();
       const rewind = await openRewind(${JSON.stringify(where(beating))});
       const thread = rewind.thread("t");
       const { id } = await thread.checkpoint({ context: { messages: [] } });
       await rewind.environment.exec(${JSON.stringify(beating.line("later"))});
       const { stopped, notRestored } = await thread.rewind({ to: id });
       await rewind.close();
       process.stdout.write(JSON.stringify({ stopped: stopped.length, notRestored }));`,
    );
    const out = await command(beating, "exec", "--", process.execPath, agent);
    expect(out).toContain('{"stopped":1,"notRestored":[]}');
    await beating.alive("own");
  });

  test("while somebody waits for a command of `agentrewind exec`, a rewind leaves it, and names it", async () => {
    const beating = new Beating();
    const first = await openRewind({ ...where(beating) });
    await first.thread("t").checkpoint({ context });
    await first.close();
    const child = spawn(
      process.execPath,
      [
        commandFile,
        "--workspace",
        beating.place.workspace,
        "--store",
        beating.place.store,
        "exec",
        "--",
        "sh",
        "-c",
        beating.command("waited"),
      ],
      { stdio: "ignore" },
    );
    children.push(child);
    const { pid } = await beating.alive("waited");
    const back = await command(beating, "rewind", "c0");
    expect(back).toContain("a command that somebody waits for outside of this session");
    expect((await beating.alive("waited")).pid).toBe(pid);
    const ended = once(child, "exit");
    process.kill(pid, "SIGTERM");
    await ended;
  });

  test("F-51: a reused number is never ended: neither a process's nor a group's, whatever the notes say", async () => {
    const beating = new Beating();
    const rewind = await useRewind(beating.place);
    const thread = rewind.thread("t");
    const c0 = await checkpoint(thread);
    await rewind.environment.exec(beating.line("later"));
    const later = await beating.alive("later");
    const folder = join(
      beating.place.store,
      "programs",
      readdirSync(join(beating.place.store, "programs"))[0] as string,
    );
    const note = JSON.parse(readFileSync(join(folder, readdirSync(folder)[0] as string), "utf8"));
    const [file = "", ...args] = beating.command("stranger").trim().split(" ");
    const stranger = spawn(file, args, { detached: true, stdio: "ignore" });
    children.push(stranger);
    await beating.alive("stranger");
    const pid = stranger.pid as number;
    const write = (name: string, text: string): void => writeFileSync(join(folder, `${name}.json`), text);
    const known = [{ pid, start: `${note.known[0].start - 1}` }];
    write("a1-00", JSON.stringify({ ...note, groups: [pid], known, programs: [{ ...note.programs[0], ...known[0] }] }));
    write("a1-01", JSON.stringify({ ...note, groups: [-1, 0, 1], known, programs: [] }));
    write("a1-02", '{"machine":');
    write("a1-03", JSON.stringify({ ...note, machine: "another boot", groups: [later.pid] }));
    expect((await thread.rewind({ to: c0.id })).stopped).toHaveLength(1);
    await beating.ended("later");
    expect((await beating.alive("stranger")).pid).toBe(pid);
    expect(readdirSync(folder)).toEqual([]);
  });

  test("without /proc a process group is ended, and what ran then is named", async () => {
    process.env.AGENTREWIND_PROC = "off";
    try {
      const beating = new Beating();
      const rewind = await useRewind(beating.place);
      const thread = rewind.thread("t");
      const c0 = await checkpoint(thread);
      await rewind.environment.exec(beating.line("then"));
      const then = await beating.alive("then");
      const c1 = await checkpoint(thread);
      await rewind.environment.exec(beating.line("later"));
      await beating.alive("later");
      process.kill(then.pid, "SIGKILL");
      const back = await thread.rewind({ to: c1.id });
      expect(back.stopped).toHaveLength(1);
      await beating.ended("later");
      expect(plain(back.notRestored)).toEqual([
        expect.stringMatching(/^\(python.*\): not started again: its command is not known$/),
      ]);
      await rewind.environment.exec(beating.line("last"));
      await beating.alive("last");
      await endSession(rewind);
      expect((await (await useRewind(beating.place)).thread("t").rewind({ to: c0.id })).stopped).toHaveLength(1);
      await beating.ended("last");
    } finally {
      delete process.env.AGENTREWIND_PROC;
    }
  });

  test("a branch has programs of its own; they end with it, and those of its source go on", async () => {
    const beating = new Beating();
    const rewind = await useRewind(beating.place);
    const thread = rewind.thread("t");
    await rewind.environment.exec(beating.line("source"));
    const source = await beating.alive("source");
    const c0 = await checkpoint(thread);
    const [left, right] = await rewind.fork(c0.id, { count: 2 });
    if (left === undefined || right === undefined) throw new Error("no branches");
    const elsewhere = expect.stringMatching(
      /^\(python.*\): ran in the workspace from which this one was forked, and not here$/,
    );
    expect(plain(left.notRestored)).toEqual([elsewhere]);
    await left.environment.exec(`echo left > f; ${beating.line("left")}`);
    await right.environment.exec(beating.line("right"));
    await Promise.all(["left", "right"].map((name) => beating.alive(name)));
    const back = await right.thread("t").rewind({ to: c0.id });
    expect(plain(back.notRestored)).toEqual([elsewhere]);
    expect(back.stopped).toHaveLength(1);
    await beating.ended("right");
    await right.environment.exec(beating.line("right"));
    await beating.alive("right");
    await right.abandon();
    await beating.ended("right");
    await rewind.environment.exec(beating.line("since"));
    const adopted = await left.adopt();
    expect(adopted.message).toContain("Running programs were left as they are.");
    await beating.ended("left");
    await beating.alive("since");
    expect((await beating.alive("source")).pid).toBe(source.pid);
    expect(readFileSync(join(beating.place.workspace, "f"), "utf8")).toBe("left\n");
    expect((await thread.undo()).stopped).toEqual([]);
    expect((await beating.alive("source")).pid).toBe(source.pid);
  });

  test("F-50: gc keeps what checkpoints tell of programs, and gives it up with them; one that is not there is refused before anything is touched", async () => {
    const beating = new Beating();
    const rewind = await useRewind(beating.place, { damaged: true });
    const thread = rewind.thread("t");
    await rewind.environment.exec(beating.line("then"));
    const { pid } = await beating.alive("then");
    const c0 = await checkpoint(thread);
    process.kill(pid, "SIGKILL");
    await beating.ended("then");
    for (let n = 0; n < 3; n++) await thread.checkpoint({ context: { messages: [`${n}`] } });
    await rewind.gc();
    expect(await rewind.verify()).toEqual([]);
    const { default: Database } = await import("better-sqlite3");
    const catalog = new Database(join(beating.place.store, "catalog.db"));
    const hash = Buffer.from(c0.environment.processes as string, "hex");
    const held = (): unknown => catalog.prepare("SELECT 1 FROM object WHERE hash = ?").get(hash);
    expect(held()).toBeDefined();
    await thread.rewind({ to: c0.id });
    await beating.alive("then");
    await thread.undo();
    // What the newest rewind names is not pruned.
    await thread.rewind({ to: "c2" });
    await checkpoint(thread);
    await rewind.prune({ keepLast: 1 });
    expect((await thread.checkpoints()).map(({ id }) => id)).not.toContain(c0.id);
    await rewind.gc();
    expect(held()).toBeUndefined();

    await rewind.environment.exec(beating.line("more"));
    await beating.alive("more");
    const c9 = await checkpoint(thread);
    await rewind.environment.exec(beating.line("later"));
    await beating.alive("later");
    catalog.prepare("DELETE FROM object WHERE hash = ?").run(Buffer.from(c9.environment.processes as string, "hex"));
    catalog.close();
    await endSession(rewind);
    const again = await useRewind(beating.place, { damaged: true });
    expect(await again.verify()).toHaveLength(1);
    expect(await codeOf(again.thread("t").rewind({ to: c9.id }))).toBe("NOT_RESTORABLE");
    await beating.alive("later");
  });

  test("a note that cannot be written stops no command, and what it leaves is known all the same", async () => {
    const beating = new Beating();
    const rewind = await useRewind(beating.place);
    writeFileSync(join(beating.place.store, "programs"), "in the way");
    const c0 = await checkpoint(rewind.thread("t"));
    await rewind.environment.exec(beating.line("later"));
    await beating.alive("later");
    expect((await rewind.thread("t").rewind({ to: c0.id })).stopped).toHaveLength(1);
    await beating.ended("later");
  });
});
