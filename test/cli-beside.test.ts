// The command beside a process that holds the workspace, which lives or dies, and beside itself.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface, type Interface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { describe, expect, test } from "vitest";
import { children, done, get, json, put, refused, run, start, store, workspace } from "./helpers/command.ts";
import { libraryEntry } from "./helpers/library.ts";

const holderScript = `
  import { createInterface } from "node:readline";
  const { openRewind } = await import(process.env.ENTRY);
  const rewind = await openRewind({ workspace: process.env.WORKSPACE, store: process.env.STORE });
  const thread = rewind.thread("agent");
  let turn;
  let turns = 0;
  const acts = {
    checkpoint: () => thread.checkpoint({ context: { messages: ["system"] } }),
    turn: async () => { turns++; turn = await thread.beginTurn({ messages: ["system", "m" + turns] }, { anchor: "m" + turns }); },
    gate: () => turn.gate(),
    close: () => rewind.close(),
  };
  console.log("ready");
  for await (const line of createInterface({ input: process.stdin })) {
    const failure = await Promise.resolve(acts[line]()).then(() => "", (error) => " " + error.code);
    console.log(line + failure);
  }
`;

/** A process that holds the workspace, as an agent does; it does what it is told. */
class Holder {
  readonly child: ChildProcess;
  readonly #lines: Interface;

  constructor() {
    this.child = spawn(process.execPath, ["--input-type=module", "-e", holderScript], {
      env: { ...process.env, ENTRY: pathToFileURL(libraryEntry).href, WORKSPACE: workspace, STORE: store },
      stdio: ["pipe", "pipe", "inherit"],
    });
    children.push(this.child);
    this.#lines = createInterface({ input: this.child.stdout as NodeJS.ReadableStream });
  }

  async said(expected: string): Promise<void> {
    const [line] = await once(this.#lines, "line");
    expect(line).toBe(expected);
  }

  async tell(act: "checkpoint" | "turn" | "gate" | "close"): Promise<void> {
    const said = this.said(act);
    this.child.stdin?.write(`${act}\n`);
    await said;
  }

  async kill(): Promise<void> {
    const ended = once(this.child, "exit");
    this.child.kill("SIGKILL");
    await ended;
  }
}

async function hold(): Promise<Holder> {
  const holder = new Holder();
  await holder.said("ready");
  return holder;
}

/** Holds the workspace with c0 ("one") behind it and "two" in its file. */
async function holdChanged(): Promise<Holder> {
  put("a.txt", "one");
  const holder = await hold();
  await holder.tell("checkpoint");
  put("a.txt", "two, longer");
  return holder;
}

const notice = "waiting for the agent's next turn boundary…\n";

describe("beside a holder", () => {
  test("readers read, writers are handed over and run at once when no turn runs", async () => {
    await holdChanged();
    expect(await done("list")).toContain("Thread agent");
    expect(await json("verify")).toEqual([]);
    expect(await json("doctor")).toMatchObject({ recorded: { held: true, checkpoints: 1 } });
    expect(await done("diff", "c0")).toContain("M a.txt");
    expect(await done("checkpoint", "--label", "mine")).toContain('c1 "mine" of thread agent');
    expect(await done("rewind", "c0", "--dry-run")).toContain("Would go back to c0");
    expect(get("a.txt")).toBe("two, longer");
    expect(await done("rewind", "c0", "--lesson", "from outside")).toContain("Back at c0");
    expect(get("a.txt")).toBe("one");
    expect(await json("undo")).toMatchObject({ checkpoint: { id: "c1" } });
    expect(get("a.txt")).toBe("two, longer");
    const ran = await run(["exec", "--", "sh", "-c", "echo three > a.txt"]);
    expect(ran.stderr).toContain("before: c2, after: c3");
    expect(await done("list")).toContain("exec sh -c echo three > a.txt");
    await refused(["rewind", "c99"], 1, "UNKNOWN_CHECKPOINT");
    await refused(["checkpoint", "--label", " "], 2, "BAD_ARGUMENT");
  });

  test("F-35: prune is handed to the holder, and gc makes it begin a new pack", async () => {
    await holdChanged();
    for (const size of [400_000, 1]) {
      put("a.txt", "x".repeat(size));
      await done("checkpoint");
    }
    expect(await done("prune", "--keep-last", "1")).toMatch(
      /^Pruned 2 checkpoints: agent\/c0, agent\/c1\. Kept 1\.\nGave back .* 1 rewritten/,
    );
    put("a.txt", "y".repeat(300_000));
    expect(await done("checkpoint")).toContain("c3 of thread agent");
    expect(await json("gc")).toMatchObject({ objects: 0, postponed: [] });
    expect(await json("verify")).toEqual([]);
    await done("rewind", "c2");
    expect(get("a.txt")).toBe("x");
  });

  test("a rewind waits for the turn boundary, and says so once", async () => {
    const holder = await holdChanged();
    await holder.tell("turn");
    const running = start(["rewind", "c0"]);
    while (running.stderr() === "") await sleep(20);
    // Long enough to say it again.
    await sleep(1_500);
    expect(running.stderr()).toBe(notice);
    expect(running.child.exitCode).toBeNull();
    expect(get("a.txt")).toBe("two, longer");
    await holder.tell("gate");
    expect(await running.ended).toMatchObject({ status: 0, stderr: notice });
    expect(get("a.txt")).toBe("one");
  });

  test("a request whose caller has gone is not carried out", async () => {
    const holder = await holdChanged();
    await holder.tell("turn");
    const running = start(["rewind", "c0"]);
    while (running.stderr() === "") await sleep(20);
    running.child.kill("SIGKILL");
    await running.ended;
    await holder.tell("gate");
    await sleep(400);
    expect(get("a.txt")).toBe("two, longer");
    expect(await json("list")).toHaveLength(2);
  });

  test("a holder that closes meanwhile: the command goes on by itself", async () => {
    const holder = await holdChanged();
    await holder.tell("turn");
    const running = start(["rewind", "c0"]);
    while (running.stderr() === "") await sleep(20);
    await holder.tell("close");
    expect(await running.ended).toMatchObject({ status: 0 });
    expect(get("a.txt")).toBe("one");
    expect((await json("list", "--all")).filter((one: { kind: string }) => one.kind === "safety")).toEqual([]);
  });

  test.each(["rewind", "undo"])("a holder that is killed before it answers a %s", async (command) => {
    const holder = await holdChanged();
    await holder.tell("turn");
    await holder.tell("gate");
    if (command === "undo") await done("rewind", "c0");
    await holder.tell("turn");
    const running = start(command === "undo" ? ["undo"] : ["rewind", "c0"]);
    while (running.stderr() === "") await sleep(20);
    await holder.kill();
    expect(await running.ended).toMatchObject({ status: 0 });
    expect(get("a.txt")).toBe(command === "undo" ? "two, longer" : "one");
    expect(await json("verify")).toEqual([]);
  });

  test("F-26: a dead holder's lock is free at once", async () => {
    const holder = await holdChanged();
    await holder.kill();
    expect(await done("rewind", "c0")).toContain("Back at c0");
    expect(get("a.txt")).toBe("one");
    expect(await json("doctor")).toMatchObject({ recorded: { held: false } });
  });

  test("two writers at once: each is done once or refused", async () => {
    put("a.txt", "one");
    await done("checkpoint");
    for (let round = 0; round < 3; round++) {
      const before = (await json("list")).length;
      const writers = await Promise.all([0, 1, 2].map(() => run(["--json", "checkpoint"])));
      const good = writers.filter((one) => one.status === 0);
      for (const one of writers.filter(({ status }) => status !== 0))
        expect(JSON.parse(one.stderr).error.code).toBe("ENVIRONMENT_BUSY");
      expect(good.length).toBeGreaterThan(0);
      expect(new Set(good.map((one) => JSON.parse(one.stdout).id)).size).toBe(good.length);
      expect(await json("list")).toHaveLength(before + good.length);
    }
    expect(await json("verify")).toEqual([]);
  });
});
