// Trees of processes that are dumped and come back: what stands still when, what is named, and what happens when CRIU does not answer.
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type DumpRequest, dumpTree, restoreTree } from "../../src/environment/sandbox/processes/criu.ts";
import { lacking } from "../capabilities.ts";
import { type Namespace, namespace, openChannel, pythonCommand, type TestChannel } from "../helpers/criu.ts";

describe.skipIf(lacking("root", "criu", "namespaces", "python"))("CRIU", () => {
  let base: string;
  let images: string;
  let files: string;
  const open: { end(): Promise<void> }[] = [];
  beforeEach(() => {
    base = mkdtempSync(join(tmpdir(), "agentrewind-criu-"));
    [images, files] = [join(base, "images"), join(base, "files")];
    mkdirSync(images);
    mkdirSync(files);
  });
  afterEach(async () => {
    for (const one of open.splice(0).reverse()) await one.end();
    rmSync(base, { recursive: true });
  });

  const file = (name: string): string => join(files, name);
  const start = async (commands: readonly string[] | null): Promise<Namespace> => {
    const made = await namespace(commands);
    open.push(made);
    return made;
  };
  /** A tree with one command that has come to where it waits. */
  const tied = async (...args: string[]): Promise<Namespace> => {
    const made = await start([pythonCommand("tied.py", file("ready"), ...args)]);
    await until(() => existsSync(file("ready")));
    return made;
  };
  const counting = async (...how: string[]): Promise<Namespace> => {
    const made = await start([pythonCommand("counter.py", file("count"), ...how)]);
    await goesOn();
    return made;
  };
  const numbers = (): number[] =>
    existsSync(file("count")) ? readFileSync(file("count"), "utf8").trim().split("\n").map(Number) : [];
  const until = async (holds: () => boolean): Promise<void> => {
    while (!holds()) await sleep(5);
  };
  const goesOn = async (): Promise<void> => {
    const before = numbers().length;
    await until(() => numbers().length > before + 3);
  };
  const listen = async (at: string | number): Promise<Server> => {
    const server = createServer(() => undefined);
    if (typeof at === "string") server.listen(at);
    else server.listen(at, "127.0.0.1");
    await once(server, "listening");
    open.push({ end: async () => void server.close() });
    return server;
  };
  const portOf = (server: Server): string => `${(server.address() as AddressInfo).port}`;

  const dump = async (from: Namespace, more: Partial<DumpRequest> = {}, channel?: TestChannel) =>
    dumpTree(channel ?? (await openChannel(from, images)), {
      pid: from.tree,
      leaveRunning: true,
      images,
      proc: `/proc/${from.pid}/root/proc`,
      ...more,
    });
  const restore = async (into: Namespace) => restoreTree(await openChannel(into, images), { images });
  const isAlive = (pid: number): boolean => existsSync(`/proc/${pid}`);

  test.each([
    ["by itself", []],
    ["through a connection inside of the tree", ["tcp"]],
    ["through a terminal inside of the tree", ["terminal"]],
  ])(
    "a process that counts %s stands still while the files are copied, goes on, and comes back with them",
    async (_, how) => {
      const first = await counting(...how);
      const seen: number[][] = [];
      const dumped = await dump(first, {
        onFrozen: async () => {
          seen.push(numbers());
          await sleep(60);
          seen.push(numbers());
          cpSync(files, join(base, "snapshot"), { recursive: true });
        },
      });
      expect(seen[1]).toEqual(seen[0]);
      expect(dumped.problems).toEqual([]);
      expect(dumped.bytes).toBeGreaterThan(100_000);
      expect(dumped.frozenMs).toBeGreaterThan(60);
      await goesOn();
      await first.end();

      rmSync(files, { recursive: true });
      cpSync(join(base, "snapshot"), files, { recursive: true });
      const frozen = numbers().length;
      expect(frozen).toBe(seen[0]?.length);
      expect(await restore(await start(null))).toEqual({ pid: first.tree });
      await goesOn();
      // None left out, none twice.
      const all = numbers();
      expect(all).toEqual(all.map((_, i) => 1_000_001 + i));
    },
  );

  test("a channel that was opened long before serves", async () => {
    const first = await start([pythonCommand("counter.py", file("count"))]);
    const channel = await openChannel(first, images);
    await goesOn();
    await sleep(300);
    expect((await dump(first, { leaveRunning: false }, channel)).problems).toEqual([]);
    expect(isAlive(channel.pid)).toBe(false);
    const ended = numbers().length;
    await restore(first);
    await until(() => numbers().length > ended);
  });

  test("each step of a restore can be waited for", async () => {
    const first = await counting();
    await dump(first, { leaveRunning: false });
    const steps: string[] = [];
    const before = numbers().length;
    const onNotify = async (step: string): Promise<void> => {
      steps.push(`${step} ${numbers().length - before}`);
    };
    await restoreTree(await openChannel(first, images), { images, onNotify });
    expect(steps).toEqual(expect.arrayContaining(["post-restore 0", "pre-resume 0"]));
    await goesOn();
  });

  test("where the copy fails, so does the dump with its error, and the tree goes on", async () => {
    const first = await counting();
    const failed = dump(first, { onFrozen: () => Promise.reject(new RangeError("no room")) });
    await expect(failed).rejects.toThrow(RangeError);
    await goesOn();
  });

  describe("a CRIU that does not answer", () => {
    const late = { code: "PROCESSES_NOT_CAPTURED", details: { timedOut: true, problems: [] } };

    test("before it begins", async () => {
      const first = await counting();
      const channel = await openChannel(first, images);
      process.kill(channel.pid, "SIGSTOP");
      await expect(dump(first, { timeoutMs: 200 }, channel)).rejects.toMatchObject(late);
      expect(isAlive(channel.pid)).toBe(false);
      await goesOn();
    });

    test("while the tree stands still", async () => {
      const first = await counting();
      const channel = await openChannel(first, images);
      const onFrozen = async (): Promise<void> => void process.kill(channel.pid, "SIGSTOP");
      await expect(dump(first, { timeoutMs: 1500, onFrozen }, channel)).rejects.toMatchObject(late);
      expect(isAlive(channel.pid)).toBe(false);
      await goesOn();
    });

    test("because it has died", async () => {
      const first = await counting();
      const channel = await openChannel(first, images);
      process.kill(channel.pid, "SIGKILL");
      await expect(dump(first, {}, channel)).rejects.toMatchObject({
        code: "PROCESSES_NOT_CAPTURED",
        message: expect.stringContaining("it ended without an answer"),
      });
    });
  });

  test.each([
    ["a device", ["open", "/dev/fuse"], /^it has the device \/dev\/fuse open \(descriptor \d+\)$/],
    ["a Unix socket", ["unix"], /^it is connected through a Unix socket to a process outside of the sandbox$/],
  ])("%s of the outside is refused and named, and the tree goes on", async (_, args, reason) => {
    const path = join(base, "socket");
    if (args[0] === "unix") {
      await listen(path);
      args = ["unix", path];
    }
    const first = await tied(...args);
    const error = await dump(first).catch((thrown) => thrown);
    expect(error).toMatchObject({ code: "PROCESSES_NOT_CAPTURED", details: { timedOut: false } });
    expect(error.details.problems).toEqual([
      { path: expect.stringMatching(/^process \d+ \(python.*\)$/), reason: expect.stringMatching(reason) },
    ]);
    expect(error.message).toContain(error.details.problems[0].reason);
    // The next dump finds the same: nothing has been ended.
    expect((await dump(first).catch((thrown) => thrown)).details.problems).toEqual(error.details.problems);
  });

  test("a namespace of its own is named with its process", async () => {
    const first = await start([`exec unshare --pid --fork bash -c 'touch ${file("ready")}; sleep 100000 & wait'`]);
    await until(() => existsSync(file("ready")));
    const error = await dump(first).catch((thrown) => thrown);
    expect(error.details.problems).toEqual([
      { path: expect.stringMatching(/^process \d+/), reason: "it runs in a PID namespace of its own" },
    ]);
  });

  test("a TCP connection to the outside is dumped and named", async () => {
    const server = await listen(0);
    const first = await tied("tcp", portOf(server));
    expect((await dump(first)).problems).toEqual([
      {
        path: expect.stringMatching(/^process \d+ \(python.*\)$/),
        reason: expect.stringContaining(`its TCP connection to 127.0.0.1:${portOf(server)} leaves the sandbox`),
      },
    ]);
  });

  test.skipIf(lacking("overlay"))(
    "a watch on an overlay is dumped where it is said in which folders to look",
    async () => {
      const at = (name: string): string => join(base, name);
      for (const name of ["lower/watched", "upper", "work", "merged"]) mkdirSync(at(name), { recursive: true });
      const layers = `lowerdir=${at("lower")},upperdir=${at("upper")},workdir=${at("work")}`;
      execFileSync("mount", ["-t", "overlay", "overlay", "-o", layers, at("merged")]);
      open.push({ end: async () => void execFileSync("umount", [at("merged")]) });
      const watched = at("merged/watched");
      const first = await tied("watch", watched, file("seen"));
      const error = await dump(first).catch((thrown) => thrown);
      expect(error.details.problems[0].reason).toMatch(/^it watches files with inotify/);

      await dump(first, { watchedFolders: [watched], leaveRunning: false });
      await restore(first);
      writeFileSync(join(watched, "new"), "");
      await until(() => existsSync(file("seen")));
    },
  );

  test("datagrams that are not dumped are named", async () => {
    expect((await dump(await tied("udp"))).problems).toEqual([
      { path: "a UDP socket", reason: expect.stringContaining("left out") },
    ]);
  });

  test("a port that is in use meanwhile is named, and nothing comes back", async () => {
    const free = await listen(0);
    const port = portOf(free);
    await new Promise((resolve) => free.close(resolve));
    const first = await tied("listen", port);
    await dump(first);
    await first.end();
    await listen(Number(port));
    const second = await start(null);
    const error = await restore(second).catch((thrown) => thrown);
    expect(error).toMatchObject({ code: "PROCESSES_NOT_RESTORED", details: { timedOut: false } });
    expect(error.details.problems[0].reason).toBe("an address or port that it had is in use");
    await until(() => readFileSync(`/proc/${second.pid}/task/${second.pid}/children`, "utf8") === "");
  });

  test("a file that is another one than at the dump is named", async () => {
    writeFileSync(file("kept"), "as it was");
    const first = await tied("open", file("kept"));
    await dump(first, { leaveRunning: false });
    await first.end();
    writeFileSync(file("kept"), "");
    const error = await restore(await start(null)).catch((thrown) => thrown);
    expect(error.details.problems[0].reason).toMatch(/\/files\/kept has 0 bytes and had 9 when it was dumped$/);
  });
});
