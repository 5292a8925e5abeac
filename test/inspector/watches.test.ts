// Watches of file systems, what has no room, slots that are used again, and what is refused.
import { execFileSync, spawnSync } from "node:child_process";
import {
  chmodSync,
  closeSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmdirSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openEffects } from "../../src/inspector/ebpf/effects.ts";
import { loadNative } from "../../src/native.ts";
import { lacking } from "../capabilities.ts";
import { mkfsBtrfs } from "../helpers/tools.ts";
import { Actor, makeGroup, makePlace, type Place } from "./scene.ts";

const execFails = (command: string): boolean => spawnSync(command, ["-V"]).status !== 0;
const skipped = lacking("native", "ebpf", "cgroup2", "compiler");

describe.skipIf(skipped || lacking("tmpfs"))("watches", () => {
  let place: Place;
  beforeAll(() => {
    place = makePlace();
  });
  afterAll(() => place.remove());

  test("effects on a watched file system by others, and only those", async () => {
    const own = join(place.base, "own");
    const others = join(place.base, "others");
    for (const folder of [own, others]) {
      mkdirSync(folder);
      execFileSync("mount", ["-t", "tmpfs", "none", folder]);
    }
    const effects = await openEffects();
    const group = makeGroup();
    const watch = effects.watch({ cgroup: group.path, fileSystems: [own] });
    const inside = Actor.start(place.deeds, group, own);
    const outside = Actor.start(place.deeds, null, own);
    const elsewhere = Actor.start(place.deeds, null, others);
    try {
      for (const [name, by, host] of [
        ["write", outside, true],
        ["open_trunc", outside, true],
        ["mmap", outside, true],
        ["ftruncate", outside, true],
        ["rename", outside, true],
        ["no_descriptor", outside, false],
        ["open_read", outside, false],
        ["write", elsewhere, false],
        ["write", inside, false],
      ] as const) {
        // Calls by path are not followed on a tmpfs: those of anybody on this machine count, so that a quiet moment may have to be waited for.
        let told = host;
        let dirty: string[] = [];
        for (let tries = 0; tries < 20; tries++) {
          const go = await by.ready(name);
          watch.takeDirty();
          const before = watch.counters();
          const { ino } = await go();
          told = watch.counters().host > before.host;
          dirty = watch.takeDirty().flatMap((one) => (one.ino === ino ? one.classes : []));
          if (told === host) break;
        }
        expect(told, name).toBe(host);
        const named = ["write", "host"].filter((one) => dirty.includes(one));
        if (name === "write") expect(named, name).toEqual(by === inside ? ["write"] : host ? ["write", "host"] : []);
      }
    } finally {
      for (const one of [inside, outside, elsewhere]) await one.end();
      effects.close();
      await group.remove();
      for (const folder of [own, others]) execFileSync("umount", [folder]);
    }
  });

  test.skipIf(lacking("btrfs", "loop"))(
    "on a btrfs the superblock's device is told, whatever the subvolume",
    async () => {
      const image = join(place.base, "image");
      const mounted = join(place.base, "btrfs");
      mkdirSync(mounted);
      execFileSync("truncate", ["-s", "128M", image]);
      const [mkfs = "mkfs.btrfs", ...first] = mkfsBtrfs() ?? [];
      execFileSync(mkfs, [...first, "-q", image]);
      execFileSync("mount", ["-o", "loop", image, mounted]);
      const effects = await openEffects();
      try {
        const { native } = loadNative();
        const folder = openSync(mounted, "r");
        await native?.makeSubvolume(folder, Buffer.from("sub"));
        closeSync(folder);
        const watch = effects.watch({ fileSystems: [mounted] });
        const file = join(mounted, "sub", "file");
        writeFileSync(file, "text");
        const { ino, dev } = statSync(file, { bigint: true });
        const [entry] = watch.takeDirty().filter((one) => one.ino === ino && one.classes.includes("write"));
        expect(entry?.classes).toContain("host");
        const line = readFileSync("/proc/self/mountinfo", "utf8")
          .split("\n")
          .find((one) => one.split(" ")[4] === mounted);
        expect(entry?.device).toBe(line?.split(" ")[2]);
        expect(entry?.device).not.toBe(`${(dev >> 8n) & 0xfffn}:${(dev & 0xffn) | ((dev >> 12n) & 0xfff00n)}`);
      } finally {
        effects.close();
        execFileSync("umount", [mounted]);
      }
    },
  );

  test.skipIf(lacking("loop") || execFails("mkfs.ext4"))(
    "on an ext4 calls by path are told by the file system",
    async () => {
      const image = join(place.base, "image4");
      const mounted = join(place.base, "ext4");
      mkdirSync(mounted);
      execFileSync("truncate", ["-s", "32M", image]);
      execFileSync("mkfs.ext4", ["-q", "-F", image]);
      execFileSync("mount", ["-o", "loop", image, mounted]);
      const effects = await openEffects();
      try {
        const before = join(mounted, "before");
        writeFileSync(before, "text");
        const watch = effects.watch({ fileSystems: [mounted] });
        await sleep(100);
        const quiet = watch.counters().host;
        // Elsewhere, by path: not on this file system.
        mkdirSync(join(place.base, "elsewhere"));
        expect(watch.counters().host).toBe(quiet);
        const changes = [
          () => chmodSync(before, 0o640),
          () => renameSync(before, join(mounted, "after")),
          () => mkdirSync(join(mounted, "folder")),
          () => rmdirSync(join(mounted, "folder")),
          () => unlinkSync(join(mounted, "after")),
        ];
        for (const change of changes) {
          const then = watch.counters().host;
          change();
          expect(watch.counters().host, String(change)).toBeGreaterThan(then);
        }
        const root = statSync(mounted, { bigint: true }).ino;
        expect(watch.takeDirty().find(({ ino }) => ino === root)?.classes).toEqual(["inode", "host"]);
      } finally {
        effects.close();
        execFileSync("umount", [mounted]);
      }
    },
  );

  test("what has no room is a loss", async () => {
    const effects = await openEffects({ limits: { dirty: 2, threads: 1 } });
    const group = makeGroup();
    const watch = effects.watch({ cgroup: group.path });
    const actor = Actor.start(place.deeds, group, place.base);
    await actor.do("write");
    expect(watch.lost()).toBeGreaterThan(0n);
    await actor.end();
    effects.close();
    await group.remove();
  });

  test("a slot that is used again begins at zero; closing leaves no program in the kernel", async () => {
    const { native } = loadNative();
    if (native === null) throw new Error("no addon");
    const before = new Set(native.bpfPrograms().map(({ id }) => id));
    const effects = await openEffects();
    const ours = native.bpfPrograms().filter(({ id }) => !before.has(id));
    expect(ours.map(({ name }) => name)).toContain("on_call_end");
    const group = makeGroup();
    const first = effects.watch({ cgroup: group.path });
    expect(() => effects.watch({ cgroup: group.path })).toThrow(expect.objectContaining({ code: "NOT_AVAILABLE" }));
    const actor = Actor.start(place.deeds, group, place.base);
    await actor.do("write");
    expect(first.counters().write).toBeGreaterThan(0n);
    first.close();
    expect(() => first.counters()).toThrow(expect.objectContaining({ code: "CLOSED" }));
    await actor.end();
    const second = effects.watch({ cgroup: group.path });
    expect(Object.values(second.counters()).every((one) => one === 0n)).toBe(true);
    expect(second.threads().size).toBe(0);
    effects.close();
    effects.close();
    expect(() => effects.watch({})).toThrow(expect.objectContaining({ code: "CLOSED" }));
    await group.remove();
    // The kernel frees them behind a grace period.
    const left = () => native.bpfPrograms().filter((one) => ours.some(({ id }) => id === one.id));
    for (let i = 0; i < 200 && left().length > 0; i++) await sleep(10);
    expect(left()).toEqual([]);
  });

  test("refused: what is no cgroup, the root of all, an object that is none", async () => {
    const effects = await openEffects();
    const bad = expect.objectContaining({ code: "BAD_ARGUMENT" });
    expect(() => effects.watch({ cgroup: place.base })).toThrow(bad);
    const { native } = loadNative();
    expect(() => native && new native.Effects("x" as never)).toThrow(TypeError);
    expect(() => native?.loadEffects("x" as never, 0, 0, 0)).toThrow(TypeError);
    expect(() => native?.loadEffects(Buffer.alloc(1), -1, 0, 0)).toThrow(TypeError);
    const none = join(place.base, "none.o");
    writeFileSync(none, "no object");
    await expect(openEffects({ object: none })).rejects.toThrow(
      expect.objectContaining({ code: "NOT_AVAILABLE", message: expect.stringContaining("cannot be read") }),
    );
    effects.close();
  });
});
