// The store's btrfs: shared by processes, taken over from killed ones, on full and on failing disks.
import { type ChildProcess, execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import * as fs from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import { lacking } from "../capabilities.ts";
import { digestTree } from "../helpers/digest.ts";
import { mountNew } from "../helpers/file-system.ts";
import { codeOf } from "../helpers/workspace.ts";
import { runLayers, startLayers } from "./children.ts";
import { expectNoLoops, loopsBelow, makePlace, mountsBelow, useLayers } from "./place.ts";

const long = process.env.AGENTREWIND_LONG === "1";
const when = describe.skipIf(lacking("native", "root", "loop", "btrfs", "tmpfs"));

async function kill(child: ChildProcess): Promise<void> {
  const ended = once(child, "exit");
  child.kill("SIGKILL");
  await ended;
}

const ends: (() => void)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

const write = (folder: string, name: string, text = name): void => fs.writeFileSync(join(folder, name), text);

when("F-60: the image of a store", () => {
  test("is sparse and readable by its owner alone", async () => {
    const place = makePlace();
    await useLayers(place, "btrfs");
    const { size, mode, blocks } = fs.statSync(join(place.store, "layers.img"));
    const disk = fs.statfsSync(place.store);
    expect(size).toBeGreaterThan((disk.blocks * disk.bsize) / 1.01);
    expect(mode & 0o777).toBe(0o600);
    expect(blocks * 512).toBeLessThan(32 << 20);
  });

  // The kernel removes subvolumes and discards at its own pace, half a minute and more.
  test.runIf(long)("gives room back", async () => {
    const place = makePlace();
    const layers = await useLayers(place, "btrfs");
    const taken = (): number => fs.statSync(join(place.store, "layers.img")).blocks * 512;
    const before = taken();
    fs.writeFileSync(join(layers.live(), "large"), randomBytes(60_000_000));
    const { name, bytes } = await layers.snapshot();
    expect(bytes).toBeGreaterThanOrEqual(60_000_000);
    expect(taken() - before).toBeGreaterThan(59_000_000);
    await layers.reset(null);
    await layers.drop(name);
    const deadline = Date.now() + 240_000;
    while (taken() - before > 20_000_000 && Date.now() < deadline) await sleep(500);
    expect(taken() - before).toBeLessThan(20_000_000);
  });

  test("is mounted once for all, and goes with the last of them", async () => {
    const place = makePlace();
    const first = await useLayers(place, "btrfs");
    const second = await useLayers(place, "btrfs", { id: "e2" });
    const child = await startLayers(place, "btrfs", [{ op: "open", id: "e3" }, { op: "hold" }], 1);
    expect(mountsBelow(place.base)).toEqual([join(place.store, "layers")]);
    expect(loopsBelow(place.base)).toHaveLength(1);
    await first.close();
    await first.close();
    write(second.live(), "f");
    await second.snapshot();
    await second.close();
    expect(mountsBelow(place.base), "another process works").toHaveLength(1);
    await kill(child);
    const again = await useLayers(place, "btrfs", { id: "e2" });
    expect(fs.readFileSync(join(again.live(), "f"), "utf8")).toBe("f");
    expect(mountsBelow(place.base), "a killed process's mount is taken over").toHaveLength(1);
    await again.close();
    expect(mountsBelow(place.base)).toEqual([]);
    await expectNoLoops(place.base);
  });

  test("is made once by several that come at the same moment", async () => {
    const place = makePlace();
    const steps = [{ op: "open" }, { op: "hold" }] as const;
    const children = await Promise.all(
      ["e1", "e2", "e3"].map((id) => startLayers(place, "btrfs", [{ ...steps[0], id }, steps[1]], 1)),
    );
    expect(mountsBelow(place.base)).toHaveLength(1);
    for (const child of children) await kill(child);
    const layers = await useLayers(place, "btrfs");
    expect(fs.readdirSync(join(place.store, "layers")).sort()).toEqual(["e1", "e2", "e3"]);
    await layers.close();
    expect(mountsBelow(place.base)).toEqual([]);
  });

  test("has one device only, also where another mount namespace still uses it", async () => {
    const place = makePlace();
    const layers = await useLayers(place, "btrfs");
    const sleeper = execFileSync(
      "unshare",
      ["-m", "--propagation", "private", "bash", "-c", "sleep 600 < /dev/null > /dev/null 2>&1 & echo $!"],
      { encoding: "utf8" },
    );
    ends.push(() => process.kill(Number(sleeper), "SIGKILL"));
    write(layers.live(), "f");
    await layers.close();
    expect(mountsBelow(place.base)).toEqual([]);
    expect(loopsBelow(place.base)).toHaveLength(1);
    const again = await useLayers(place, "btrfs");
    expect(loopsBelow(place.base)).toHaveLength(1);
    expect(fs.existsSync(join(again.live(), "f"))).toBe(true);
  });

  test("needs no image on a btrfs, where reading changes nothing either", async () => {
    const { folder, end } = mountNew("btrfs");
    ends.push(end);
    const place = { base: folder, store: join(folder, "store") };
    fs.mkdirSync(place.store);
    const layers = await useLayers(place, "btrfs");
    expect(fs.existsSync(join(place.store, "layers.img"))).toBe(false);
    write(layers.live(), "f");
    fs.utimesSync(join(layers.live(), "f"), 1, 1);
    const { name } = await layers.snapshot();
    fs.readFileSync(join(layers.live(), "f"));
    expect((await layers.snapshot()).name).toBe(name);
    await layers.close();
    expect(mountsBelow(place.store)).toEqual([]);
    const again = await useLayers(place, "btrfs");
    expect(again.names()).toEqual([name]);
    await again.close();
  });

  test("a full disk is told before the file system breaks", async () => {
    const place = makePlace();
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=160m", "none", place.store]);
    const layers = await useLayers(place, "btrfs");
    write(layers.live(), "f", "1");
    const { name } = await layers.snapshot();
    const filler = join(place.store, "filler");
    const { bavail, bsize } = fs.statfsSync(place.store);
    execFileSync("fallocate", ["-l", String(bavail * bsize - (4 << 20)), filler]);
    write(layers.live(), "f", "2");
    expect(await codeOf(layers.snapshot())).toBe("DISK_FULL");
    expect(await codeOf(layers.reset(name))).toBe("DISK_FULL");
    expect(await codeOf(layers.fork(name, join(layers.live(), "..", "..", "e2")))).toBe("DISK_FULL");
    fs.rmSync(filler);
    expect((await layers.snapshot()).name).not.toBe(name);
    await layers.reset(name);
    expect(fs.readFileSync(join(layers.live(), "f"), "utf8")).toBe("1");
  });

  test("a disk that gets full under a writer: what was captured stays, and it goes on when there is room", async () => {
    const place = makePlace();
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=200m", "none", place.store]);
    const layers = await useLayers(place, "btrfs");
    fs.writeFileSync(join(layers.live(), "f"), randomBytes(5_000_000));
    const { name } = await layers.snapshot();
    const truth = digestTree(layers.live());
    const filler = join(place.store, "filler");
    const { bavail, bsize } = fs.statfsSync(place.store);
    execFileSync("fallocate", ["-l", String(bavail * bsize - (20 << 20)), filler]);
    // The file system inside believes that it has room.
    expect(() => {
      const fd = fs.openSync(join(layers.live(), "large"), "w");
      try {
        for (let i = 0; i < 100; i++) fs.writeSync(fd, randomBytes(1 << 20));
        fs.fsyncSync(fd);
      } finally {
        fs.closeSync(fd);
      }
    }).toThrow(/EIO|ENOSPC|EROFS/);
    expect(await codeOf(layers.snapshot())).toMatch(/DISK_FULL|WRITE_FAILED/);
    fs.rmSync(filler);
    await layers.close();
    const again = await useLayers(place, "btrfs");
    expect(await again.verify(name)).toEqual([]);
    await again.reset(name);
    expect(digestTree(again.live())).toEqual(truth);
    fs.writeFileSync(join(again.live(), "f"), "on");
    expect((await again.snapshot()).name).not.toBe(name);
  });

  test("a disk without room for it is told, and nothing is left", async () => {
    const place = makePlace();
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=12m", "none", place.store]);
    expect(await codeOf(useLayers(place, "btrfs", { reserve: 64 << 20 }))).toBe("DISK_FULL");
    expect(fs.readdirSync(place.store)).not.toContain("layers.img");
    await expectNoLoops(place.base);
  });

  test("without mkfs.btrfs, and with one that fails, it is not available", async () => {
    const place = makePlace();
    for (const mkfs of [undefined, ["false"], [join(place.base, "missing")]])
      expect(await codeOf(useLayers(place, "btrfs", { mkfs }))).toBe("NOT_AVAILABLE");
    expect(fs.readdirSync(place.store).filter((name) => name.startsWith("layers."))).toEqual([]);
    expect(mountsBelow(place.base)).toEqual([]);
  });

  test("a file system that stopped writing is named, and mounted anew when nobody uses it", async () => {
    const place = makePlace();
    const layers = await useLayers(place, "btrfs");
    write(layers.live(), "f", "1");
    const { name } = await layers.snapshot();
    const folder = join(place.store, "layers");
    execFileSync("mount", ["-o", "remount,ro", folder]);
    expect(await codeOf(layers.snapshot())).toBe("WRITE_FAILED");
    expect(await codeOf(layers.reset(name))).toBe("WRITE_FAILED");
    const other = runLayers(place, "btrfs", [{ op: "open", id: "e2" }]);
    expect(other.results[0]?.error, "somebody uses it").toBe("WRITE_FAILED");
    await layers.close();
    const again = await useLayers(place, "btrfs");
    await again.reset(name);
    expect(fs.readFileSync(join(again.live(), "f"), "utf8")).toBe("1");
  });

  test("what is mounted there and is not ours is put aside", async () => {
    const place = makePlace();
    await (await useLayers(place, "btrfs")).close();
    execFileSync("mount", ["-t", "tmpfs", "none", join(place.store, "layers")]);
    const layers = await useLayers(place, "btrfs");
    expect(fs.statfsSync(layers.live()).type).toBe(0x9123683e);
  });
});
