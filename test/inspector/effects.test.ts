// Every effect on files and processes is counted in its class, what fails is not, and what cannot be counted is a loss.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type CounterName, type Effects, type EffectsWatch, openEffects } from "../../src/inspector/ebpf/effects.ts";
import { objectFiles } from "../../src/inspector/ebpf/object.ts";
import { lacking } from "../capabilities.ts";
import { Actor, type Group, makeGroup, makePlace, type Place } from "./scene.ts";

const classes = ["write", "open", "map", "name", "meta", "mount", "ipc", "peer", "uring", "aio", "unknown"] as const;

/** Deeds by the class in which they must be seen, and no other. */
const seen: Partial<Record<(typeof classes)[number], string>> = {
  write:
    "write pwrite writev pwritev pwritev2 truncate ftruncate fallocate copy_file_range sendfile splice setflags write_fifo int80_write",
  open: "open_write open_append open_new open_trunc openat openat2 creat tmpfile int80_open",
  map: "mmap mprotect",
  name: "link linkat unlink unlinkat rename renameat renameat2 mkdir mkdirat rmdir symlink symlinkat mknod mknodat bind int80_mkdir",
  meta: "chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat utime utimes futimesat utimensat setxattr lsetxattr fsetxattr setxattrat removexattr lremovexattr fremovexattr removexattrat int80_chmod",
  mount: "unshare mount open_tree fsopen setns chroot",
  ipc: "shmget semget msgget",
  peer: "poke",
  uring: "ring_write",
  aio: "aio",
  unknown: "kernel_log int80_log",
};
/** Deeds of newer kernels than some on which the rest works: no such call is no effect. */
const mayBeMissing = new Set(["setxattrat", "removexattrat", "fchmodat2"]);

const failing =
  "no_descriptor not_writable no_file no_access unlink_none mkdir_there rename_none chmod_none truncate_none xattr_none mount_none";
const harmless =
  "empty_write open_read openat2_read open_there read stat write_null open_null write_pipe write_memfd mmap_private mmap_read mprotect_own bind_abstract getflags int80_read";

const grown = (before: Readonly<Record<CounterName, bigint>>, after: Readonly<Record<CounterName, bigint>>): string[] =>
  classes.filter((name) => after[name] > before[name]);

const skipped = lacking("native", "ebpf", "cgroup2", "compiler");

describe.skipIf(skipped).each(skipped ? [] : objectFiles())("effects of %s", (object) => {
  let place: Place;
  let effects: Effects;
  let group: Group;
  let watch: EffectsWatch;
  let actor: Actor;

  beforeAll(async () => {
    place = makePlace();
    effects = await openEffects({ object });
    group = makeGroup();
    watch = effects.watch({ cgroup: group.path });
    actor = Actor.start(place.deeds, group, place.base);
  });

  afterAll(async () => {
    await actor.end();
    effects.close();
    await group.remove();
    place.remove();
  });

  async function classesOf(name: string, by = actor, told = watch) {
    const go = await by.ready(name);
    const before = told.counters();
    const deed = await go();
    const after = told.counters();
    return { ...deed, classes: grown(before, after), before, after };
  }

  for (const [name, deeds] of Object.entries(seen)) {
    test(`${name}: ${deeds}`, async () => {
      for (const deed of deeds.split(" ")) {
        const { result, errno, classes: told, after } = await classesOf(deed);
        if (result < 0 && errno === 38 && mayBeMissing.has(deed)) continue;
        expect(result, `${deed} ${errno}`).toBeGreaterThanOrEqual(0);
        expect(told, deed).toEqual([name]);
        expect(after.begun, deed).toBe(after.ended);
      }
    });
  }

  test("a hole through a mapping is a write", async () => {
    const { result, classes: told } = await classesOf("remove_mapped");
    expect(result).toBe(0);
    expect(told).toEqual(["write", "map"]);
  });

  test(`not seen, because they fail: ${failing}`, async () => {
    for (const deed of failing.split(" ")) {
      const { result, classes: told } = await classesOf(deed);
      expect(result, deed).toBe(-1);
      expect(told, deed).toEqual([]);
    }
  });

  test(`not seen, because they change no file: ${harmless}`, async () => {
    for (const deed of harmless.split(" ")) {
      const { result, errno, classes: told } = await classesOf(deed);
      expect(result, `${deed} ${errno}`).toBeGreaterThanOrEqual(0);
      expect(told, deed).toEqual([]);
    }
  });

  test("inodes of changed files are named where a descriptor tells them", async () => {
    for (const [deed, name] of Object.entries({ write: "write", fchmod: "meta", mmap: "map", open_write: "open" })) {
      const go = await actor.ready(deed);
      watch.takeDirty();
      const { ino } = await go();
      expect(watch.takeDirty(), deed).toEqual([{ device: expect.stringMatching(/^\d+:\d+$/), ino, classes: [name] }]);
      expect(watch.takeDirty(), deed).toEqual([]);
    }
  });

  test("processes that begin, are replaced and end; signals", async () => {
    const forked = await classesOf("fork");
    for (const name of ["fork", "exit"] as const) expect(forked.after[name] - forked.before[name], name).toBe(1n);
    expect(forked.after.exec - forked.before.exec).toBe(0n);
    const replaced = await classesOf("exec");
    for (const name of ["fork", "exec", "exit"] as const)
      expect(replaced.after[name] - replaced.before[name], name).toBe(1n);
    const told = await classesOf("signal");
    expect(told.after.signal).toBeGreaterThan(told.before.signal);
  });

  /** Resolves when all have come back to where they wait: on a busy machine that takes its time. */
  const resting = async (): Promise<void> => {
    const look = (): string => `${Object.values(watch.counters())} ${watch.running()}`;
    for (let last = ""; last !== look(); await sleep(50)) last = look();
  };

  test("a thread that waits does not grow; one that is woken does, and only it", async () => {
    const second = Actor.start(place.deeds, group, place.base);
    await second.do("stat");
    await actor.do("stat");
    // What another test has ended goes a moment later.
    await expect.poll(() => [...watch.threads().keys()].sort()).toEqual([actor.pid, second.pid].sort());
    await resting();
    const before = watch.counters();
    const threads = watch.threads();
    await sleep(300);
    expect(watch.counters()).toEqual(before);
    expect(watch.threads()).toEqual(threads);
    expect(watch.running()).toBe(0);
    await second.do("stat");
    await resting();
    const after = watch.counters();
    expect(after.scheduled).toBeGreaterThan(before.scheduled);
    expect(after.returned).toBeGreaterThan(before.returned);
    const now = watch.threads();
    expect(now.get(actor.pid)).toEqual(threads.get(actor.pid));
    expect(now.get(second.pid)?.scheduled).toBeGreaterThan(threads.get(second.pid)?.scheduled ?? 0n);
    expect(now.get(second.pid)?.returned).toBeGreaterThan(threads.get(second.pid)?.returned ?? 0n);
    await second.end();
    await expect.poll(() => [...watch.threads().keys()]).toEqual([actor.pid]);
  });

  test("one that never waits is running, or was scheduled again", async () => {
    const busy = Actor.start(place.deeds, group, place.base);
    await busy.ready("spin");
    busy.begin();
    await sleep(50);
    // On a busy machine it may wait for a processor for long: what it had of one is the kernel's own account.
    const had = () => BigInt(readFileSync(`/proc/${busy.pid}/schedstat`, "utf8").split(" ")[0] ?? 0);
    for (let seen = 0; seen < 5; ) {
      const running = watch.running();
      const before = watch.counters();
      const then = had();
      await sleep(20);
      if (had() === then) continue;
      expect(running > 0 || watch.counters().scheduled > before.scheduled).toBe(true);
      seen++;
    }
    await busy.end();
    expect(watch.running()).toBe(0);
  });

  test("io_uring: a request that changes nothing is only its ring", async () => {
    const nothing = await classesOf("ring_nothing");
    const write = await classesOf("ring_write");
    expect(nothing.result).toBe(1);
    expect(nothing.after.uring - nothing.before.uring).toBe(1n);
    expect(write.after.uring - write.before.uring).toBe(3n);
  });

  test("a cgroup below, and one beside", async () => {
    const below = makeGroup(group.path);
    const beside = makeGroup();
    const other = effects.watch({ cgroup: beside.path });
    const inside = Actor.start(place.deeds, below, place.base);
    const apart = Actor.start(place.deeds, beside, place.base);
    const outside = Actor.start(place.deeds, null, place.base);
    const mine = await classesOf("write", inside);
    expect(mine.classes).toEqual(["write"]);
    expect((await classesOf("write", apart)).classes).toEqual([]);
    expect((await classesOf("write", apart, other)).classes).toEqual(["write"]);
    expect((await classesOf("rename", outside)).classes).toEqual([]);
    expect((await classesOf("write", inside, other)).classes).toEqual([]);
    for (const one of [inside, apart, outside]) await one.end();
    other.close();
    await below.remove();
    await beside.remove();
  });

  test("outbound connections are named once they stand", async () => {
    const server = createServer((socket) => socket.end()).listen(0, "127.0.0.1");
    await new Promise((done) => server.once("listening", done));
    const { port } = server.address() as { port: number };
    const before = watch.counters().connect;
    watch.takeConnections();
    const script = `for i in 1 2; do exec 3<>/dev/tcp/127.0.0.1/$0; done; exec 3<>/dev/tcp/127.0.0.1/1`;
    const child = spawn("sh", ["-c", `echo $$ > ${group.path}/cgroup.procs; exec bash -c "$0" ${port}`, script], {
      stdio: "ignore",
    });
    await new Promise((done) => child.once("exit", done));
    expect(watch.counters().connect - before).toBe(2n);
    expect(watch.takeConnections()).toEqual([{ address: "127.0.0.1", port, count: 2 }]);
    expect(watch.takeConnections()).toEqual([]);
    // This process is in no watched cgroup.
    await new Promise((done) => connect(port, "127.0.0.1").once("close", done).resume());
    expect(watch.takeConnections()).toEqual([]);
    server.close();
  });

  test("nothing was lost", () => expect(watch.lost()).toBe(0n));
});
