// What a sandbox changes on disk, captured and put back: one suite for layers on a btrfs and for copies.
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import * as fs from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import type { LayerDifference, Layers } from "../../src/environment/sandbox/layers/layers.ts";
import { lacking } from "../capabilities.ts";
import { digestTree } from "../helpers/digest.ts";
import { getXattrs } from "../helpers/xattrs.ts";
import { makePlace, native, type Place, useLayers } from "./place.ts";
import { mapShared } from "./store-mapped.ts";

const run = (cwd: string, command: string): string =>
  execFileSync("bash", ["--norc", "-ec", command], { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });

/** A command that sees the overlay of `lower` and the layers `root` and `root.work` at `merged`, in a mount namespace of its own. */
function inOverlay(place: Place, layers: Layers, command: string): string {
  const [lower, merged] = ["lower", "merged"].map((name) => join(place.base, name)) as [string, string];
  for (const folder of [lower, merged, join(layers.live(), "root"), join(layers.live(), "root.work")])
    fs.mkdirSync(folder, { recursive: true });
  const options = `lowerdir=${lower},upperdir=${layers.live()}/root,workdir=${layers.live()}/root.work`;
  const script = `mount -t overlay -o noatime,${options} overlay ${merged}; cd ${merged}; ${command}`;
  return execFileSync("unshare", ["-m", "--propagation", "private", "bash", "--norc", "-ec", script], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
  });
}

async function differences(layers: Layers, from: string, to: string): Promise<LayerDifference[]> {
  const found: LayerDifference[] = [];
  for await (const one of layers.diff(from, to)) found.push(one);
  return found;
}

async function bytesOf(layers: Layers, name: string, path: string): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of layers.read(name, path)) pieces.push(Buffer.from(piece));
  return Buffer.concat(pieces).toString("latin1");
}

const told = async (layers: Layers, from: string, to: string): Promise<string[]> =>
  (await differences(layers, from, to))
    .map(({ path, before, after, differs }) => {
      const side = (entry: LayerDifference["before"]): string =>
        entry === null ? "-" : `${entry.type}${entry.opaque ? " opaque" : ""}`;
      return `${path}: ${side(before)} > ${side(after)}${before !== null && after !== null ? ` ${differs}` : ""}`;
    })
    .sort();

const kinds = [
  { kind: "btrfs", lacks: lacking("native", "root", "loop", "btrfs") },
  { kind: "copy", lacks: lacking("native", "root") },
] as const;

const long = process.env.AGENTREWIND_LONG === "1";

describe.each(kinds)("F-61, F-62, F-63: layers of kind $kind", ({ kind, lacks }) => {
  const when = test.skipIf(lacks);

  async function open(): Promise<{ place: Place; layers: Layers; at: (path: string) => string }> {
    const place = makePlace();
    const layers = await useLayers(place, kind);
    return { place, layers, at: (path) => join(layers.live(), path) };
  }

  when("sockets come back too, and are in the way of nothing", async () => {
    const { layers, at } = await open();
    fs.mkdirSync(at("root/d"), { recursive: true });
    fs.writeFileSync(at("root/f"), "1");
    const folder = fs.openSync(at("root/d"), "r");
    native.makeNode(folder, Buffer.from("sock"), 0o140640, 0, 0);
    fs.closeSync(folder);
    fs.chownSync(at("root/d/sock"), 1234, 4321);
    run(layers.live(), "touch -d '2020-01-02 03:04:05.123456789' root/d/sock root/d");
    const stat = (): fs.BigIntStats => fs.lstatSync(at("root/d/sock"), { bigint: true });
    const { mode, uid, gid, mtimeNs } = stat();
    const folderTime = fs.lstatSync(at("root/d"), { bigint: true }).mtimeNs;
    const one = await layers.snapshot();
    expect(one.problems).toEqual([]);
    fs.rmSync(at("root/d"), { recursive: true });
    const other = await layers.snapshot();
    for (let round = 0; round < 2; round++) {
      await layers.reset(one.name);
      expect(stat()).toMatchObject({ mode, uid, gid, mtimeNs });
      expect(fs.lstatSync(at("root/d"), { bigint: true }).mtimeNs).toBe(folderTime);
      expect((await layers.snapshot()).name).toBe(one.name);
      await layers.reset(other.name);
      expect(fs.readdirSync(at("root"))).toEqual(["f"]);
    }
  });

  when("come back as they were: every kind of entry, owners, modes, times, attributes, hard links", async () => {
    const { layers, at } = await open();
    fs.mkdirSync(at("root/d"), { recursive: true });
    fs.mkdirSync(at("tmp"));
    fs.chmodSync(at("tmp"), 0o1777);
    run(
      layers.live(),
      `cd root; echo one > a; ln a d/second; ln -s nowhere link; mkfifo pipe; mknod null c 1 3; mknod gone c 0 0; mknod disk b 7 200
       chown 1000:1001 d; chmod 4755 a; touch -d 2001-02-03T04:05:06.789012345 d/second; truncate -s 1M hole; echo end >> hole; touch 'nl
name'`,
    );
    execFileSync("python3", [
      "-c",
      `import os,socket,sys
os.setxattr(sys.argv[1]+"/root/d","trusted.overlay.opaque",b"y")
os.setxattr(sys.argv[1]+"/root/a","user.mark",b"1")
os.mkdir(os.fsencode(sys.argv[1])+b"/root/\\xff\\xfe")`,
      layers.live(),
    ]);
    const before = digestTree(layers.live());
    const inodes = ["root/hole", "tmp"].map((path) => fs.statSync(at(path)).ino);
    const first = await layers.snapshot();
    expect(first.problems).toEqual([]);
    expect(digestTree(layers.live()), "being captured changes nothing").toEqual(before);
    run(
      layers.live(),
      "cd root; rm -rf d link pipe; echo two > a; mkdir link; chmod 700 ../tmp; rm gone; touch gone new",
    );
    const second = await layers.snapshot();
    expect(second.name).not.toBe(first.name);
    const after = digestTree(layers.live());

    await layers.reset(first.name);
    expect(digestTree(layers.live())).toEqual(before);
    expect(["root/hole", "tmp"].map((path) => fs.statSync(at(path)).ino)).toEqual(inodes);
    expect(getXattrs(at("root"), "d")).toEqual({ "trusted.overlay.opaque": "y" });
    expect(getXattrs(at("root"), "a")).toEqual({ "user.mark": "1" });
    expect((await layers.snapshot()).name, "a restored state is the state").toBe(first.name);
    await layers.reset(second.name);
    expect(digestTree(layers.live())).toEqual(after);
    await layers.reset(second.name);
    expect(digestTree(layers.live()), "again").toEqual(after);
    await layers.reset(null);
    expect(fs.readdirSync(layers.live())).toEqual([]);
    await layers.reset(first.name);
    expect(digestTree(layers.live())).toEqual(before);
    for (const name of [first.name, second.name]) expect(await layers.verify(name)).toEqual([]);
  });

  when("the same state has the same name, and every kind of change makes another", async () => {
    const { place, layers, at } = await open();
    fs.mkdirSync(at("root"));
    fs.writeFileSync(at("root/f"), "1");
    fs.writeFileSync(at("root/mapped"), Buffer.alloc(8192));
    const mapped = await mapShared(at("root/mapped"));
    let { name } = await layers.snapshot();
    const same = async (what: string): Promise<void> => {
      const again = await layers.snapshot();
      expect(again, what).toMatchObject({ name, bytes: 0 });
    };
    const other = async (what: string): Promise<void> => {
      const again = await layers.snapshot();
      expect(again.name, what).not.toBe(name);
      ({ name } = again);
      await same(`after: ${what}`);
    };
    await same("nothing");
    fs.readFileSync(at("root/f"));
    fs.readdirSync(at("root"));
    await same("reading");
    execFileSync("sync");
    await same("sync");
    for (const store of [1, 2, 3]) {
      await mapped.store(store);
      await other(`store ${store} through a mapping, without msync`);
    }
    await mapped.end();
    const writes: Record<string, () => void> = {
      "a write of the same length": () => fs.writeFileSync(at("root/f"), "2"),
      chmod: () => fs.chmodSync(at("root/f"), 0o640),
      chown: () => fs.chownSync(at("root/f"), 1, 2),
      "an attribute": () =>
        execFileSync("python3", ["-c", "import os,sys; os.setxattr(sys.argv[1],'user.a',b'1')", at("root/f")]),
      rename: () => fs.renameSync(at("root/f"), at("root/g")),
      link: () => fs.linkSync(at("root/g"), at("root/h")),
      unlink: () => fs.rmSync(at("root/g")),
      mkdir: () => fs.mkdirSync(at("root/d")),
      utimes: () => fs.utimesSync(at("root/h"), 1, 1),
      rmdir: () => fs.rmdirSync(at("root/d")),
    };
    for (const [what, write] of Object.entries(writes)) {
      write();
      await other(what);
    }
    inOverlay(place, layers, "true");
    ({ name } = await layers.snapshot());
    inOverlay(place, layers, "cat * > /dev/null; ls -R > /dev/null");
    await same("an overlay, mounted again, read and unmounted");
    inOverlay(place, layers, "echo 1 > new");
    await other("a write into an overlay");
    inOverlay(place, layers, "cat new");
    await same("reading it");
  });

  when("a file that was unlinked while it is open is no difference", async () => {
    const { layers, at } = await open();
    const fd = fs.openSync(at("unlinked"), "w+");
    fs.writeSync(fd, "x");
    fs.unlinkSync(at("unlinked"));
    const { name } = await layers.snapshot();
    fs.closeSync(fd);
    await layers.reset(name);
    expect((await layers.snapshot()).name).toBe(name);
  });

  when("states survive being closed, and go when they are dropped", async () => {
    const { place, layers, at } = await open();
    fs.writeFileSync(at("f"), "1");
    const one = (await layers.snapshot()).name;
    fs.writeFileSync(at("f"), "2");
    const two = (await layers.snapshot()).name;
    await layers.sync(one);
    fs.writeFileSync(at("f"), "3");
    await layers.close();

    const again = await useLayers(place, kind);
    expect(fs.readFileSync(join(again.live(), "f"), "utf8"), "the live folder too").toBe("3");
    expect(again.names().sort()).toEqual([one, two].sort());
    await again.reset(one);
    await again.close();
    const third = await useLayers(place, kind);
    expect((await third.snapshot()).name, "known for what it is after another open").toBe(one);
    await third.drop(two);
    await third.drop(two);
    expect([third.has(one), third.has(two)]).toEqual([true, false]);
    await expect(third.reset(two)).rejects.toMatchObject({ code: "NOT_RESTORABLE" });
    expect(await third.verify(two)).not.toEqual([]);
    expect(fs.readFileSync(join(third.live(), "f"), "utf8")).toBe("1");
    await third.drop(one);
    expect(third.names()).toEqual([]);
    fs.writeFileSync(join(third.live(), "f"), "4");
    expect((await third.snapshot()).name).not.toBe(two);
    await third.discard();
    expect(fs.existsSync(third.live())).toBe(false);
  });

  when("differences, along one line, over a reset, and between two lines", async () => {
    const { layers } = await open();
    run(
      layers.live(),
      "mkdir -p root/d/e root.work/work; echo 1 > root/d/e/f; echo 1 > root/a; echo same > root/same; ln -s x root/l",
    );
    const one = (await layers.snapshot()).name;
    run(
      layers.live(),
      "echo 22 > root/a; chmod 600 root/same; mknod root/gone c 0 0; mkdir root/new; echo 1 > root/new/x; (cd root.work && touch work/t); ln -sfn y root/l",
    );
    const two = (await layers.snapshot()).name;
    const forward = [
      "root/a: file > file content",
      "root/gone: - > whiteout",
      "root/l: symlink > symlink content",
      "root/new/x: - > file",
      "root/new: - > directory",
      "root/same: file > file metadata",
      "root: directory > directory metadata",
    ];
    expect(await told(layers, one, two)).toEqual(forward);
    expect(await told(layers, two, one)).toEqual(
      forward.map((line) => line.replace(/: (\S+) > (\S+)/, ": $2 > $1")).sort(),
    );
    run(layers.live(), "rm -r root/d; echo d > root/d");
    const three = (await layers.snapshot()).name;
    expect(await told(layers, two, three)).toEqual([
      "root/d/e/f: file > -",
      "root/d/e: directory > -",
      "root/d: directory > file content",
      "root: directory > directory metadata",
    ]);
    await layers.reset(one);
    run(layers.live(), "mv root/d root/moved; echo 22 > root/a");
    const other = (await layers.snapshot()).name;
    expect(await told(layers, one, other)).toEqual([
      "root/a: file > file content",
      "root/d/e/f: file > -",
      "root/d/e: directory > -",
      "root/d: directory > -",
      "root/moved/e/f: - > file",
      "root/moved/e: - > directory",
      "root/moved: - > directory",
      "root: directory > directory metadata",
    ]);
    const between = await told(layers, three, other);
    expect(between).toContain("root/d: file > -");
    expect(between).toContain("root/same: file > file metadata");
    expect(between, "the same bytes, written by both").toContain("root/a: file > file metadata");
    expect(await told(layers, other, other)).toEqual([]);
    for (const [path, type] of [
      ["root/gone", "whiteout"],
      ["root/l", "symlink"],
      ["root/new", "directory"],
    ] as const)
      expect((await layers.look(two, path))?.type).toBe(type);
    expect(await layers.look(one, "root/gone")).toBeNull();
    expect(await bytesOf(layers, two, "root/a")).toBe("22\n");
    expect(await bytesOf(layers, one, "root/a")).toBe("1\n");
    expect(await layers.look(two, "root/l/x")).toBeNull();
    await layers.drop(one);
    expect(await told(layers, three, other), "without the state that both come from").toEqual(between);
  });

  when("opaque folders and whiteouts of both forms are told", async () => {
    const { layers } = await open();
    run(layers.live(), "mkdir -p root/d root/e");
    const before = (await layers.snapshot()).name;
    const mark = `import os,sys
os.chdir(sys.argv[1])
os.setxattr("root/d","trusted.overlay.opaque",b"y")
os.setxattr("root/e","user.overlay.opaque",b"y")
open("root/w","w").close(); os.setxattr("root/w","trusted.overlay.whiteout",b"")
os.setxattr("root/e","trusted.overlay.impure",b"y")`;
    execFileSync("python3", ["-c", mark, layers.live()]);
    const after = (await layers.snapshot()).name;
    expect(await told(layers, before, after)).toEqual([
      "root/d: directory > directory opaque content",
      "root/e: directory > directory opaque content",
      "root/w: - > whiteout",
      "root: directory > directory metadata",
    ]);
  });

  when("case 103: what is deleted in an overlay stays deleted; links are links", async () => {
    const { place, layers } = await open();
    run(
      place.base,
      "mkdir -p lower/pkg/store/x lower/pkg/node_modules; echo base > lower/f; echo 1 > lower/pkg/store/x/index; ln -s ../store/x lower/pkg/node_modules/x",
    );
    inOverlay(place, layers, "true");
    const clean = (await layers.snapshot()).name;
    inOverlay(place, layers, "rm f; rm -rf pkg/node_modules");
    const deleted = (await layers.snapshot()).name;
    const seen = "ls; test -d pkg && ls -R pkg";
    expect(inOverlay(place, layers, seen)).not.toMatch(/^f$/m);
    await layers.reset(clean);
    expect(inOverlay(place, layers, `${seen}; readlink pkg/node_modules/x; cat pkg/node_modules/x/index`)).toMatch(
      /^f$[\s\S]*\.\.\/store\/x\n1/m,
    );
    await layers.reset(deleted);
    expect(inOverlay(place, layers, seen)).not.toMatch(/^f$|node_modules/m);
    expect(inOverlay(place, layers, "cat pkg/store/x/index")).toBe("1\n");
    expect((await layers.snapshot()).name).toBe(deleted);
    expect(fs.readFileSync(join(place.base, "lower/f"), "utf8")).toBe("base\n");
  });

  when("case 105: a folder that is removed and made again is opaque", async () => {
    const { place, layers } = await open();
    run(place.base, "mkdir -p lower/d/sub; echo old > lower/d/a; echo old > lower/d/sub/b");
    inOverlay(place, layers, "true");
    const clean = (await layers.snapshot()).name;
    inOverlay(place, layers, "rm -r d; mkdir d; echo new > d/n");
    const opaque = (await layers.snapshot()).name;
    expect(await told(layers, clean, opaque)).toEqual([
      "root/d/n: - > file",
      "root/d: - > directory opaque",
      "root: directory > directory metadata",
    ]);
    await layers.reset(clean);
    expect(inOverlay(place, layers, "find d -type f | sort")).toBe("d/a\nd/sub/b\n");
    await layers.reset(opaque);
    expect(inOverlay(place, layers, "find d -type f | sort")).toBe("d/n\n");
  });

  when("a folder of the lower layer is renamed", async () => {
    const { place, layers } = await open();
    run(place.base, "mkdir -p lower/d/sub; echo old > lower/d/sub/b");
    inOverlay(place, layers, "true");
    const clean = (await layers.snapshot()).name;
    inOverlay(place, layers, "mv d e");
    const renamed = (await layers.snapshot()).name;
    await layers.reset(clean);
    expect(inOverlay(place, layers, "cat d/sub/b; ls")).toBe("old\nd\n");
    await layers.reset(renamed);
    expect(inOverlay(place, layers, "cat e/sub/b; ls")).toBe("old\ne\n");
  });

  when("a fork is independent, and knows its first state", async () => {
    const { place, layers, at } = await open();
    fs.writeFileSync(at("f"), "1");
    const { name } = await layers.snapshot();
    fs.writeFileSync(at("f"), "2");
    const two = (await layers.snapshot()).name;
    const fork = await layers.fork(name, join(layers.live(), "..", "..", "e2"));
    expect(fs.readFileSync(join(fork.live(), "f"), "utf8")).toBe("1");
    expect(fork.names()).toEqual([name]);
    expect((await fork.snapshot()).name).toBe(name);
    fs.writeFileSync(join(fork.live(), "f"), "fork");
    const own = (await fork.snapshot()).name;
    expect([name, two]).not.toContain(own);
    expect(await told(fork, name, own)).toEqual(["f: file > file content"]);
    await layers.drop(name);
    await fork.reset(name);
    expect(fs.readFileSync(join(fork.live(), "f"), "utf8")).toBe("1");
    expect(fs.readFileSync(at("f"), "utf8")).toBe("2");
    await fork.close();
    const again = await useLayers(place, kind, { id: "e2" });
    expect(again.names().sort()).toEqual([name, own].sort());
    await again.discard();
    expect(fs.readFileSync(at("f"), "utf8")).toBe("2");
  });

  when("of two writes never the second without the first, while the writer stands still", async () => {
    const { layers, at } = await open();
    const script = `
import os, sys
a, b = [os.open(sys.argv[1] + name, os.O_RDWR | os.O_CREAT) for name in ("/a", "/b")]
n = 0
while True:
    n += 1
    for file in (a, b): os.pwrite(file, b"%012d" % n + bytes(5000), 0)
    if n == 1: print("begun", flush=True)`;
    const writer = spawn("python3", ["-c", script, layers.live()], { stdio: ["ignore", "pipe", "inherit"] });
    try {
      await once(writer.stdout, "data");
      const states = new Set<string>();
      for (let round = 0; round < 12; round++) {
        writer.kill("SIGSTOP");
        while (!/^State:\s+T/m.test(fs.readFileSync(`/proc/${writer.pid}/status`, "utf8")));
        const { name } = await layers.snapshot();
        const truth = digestTree(layers.live());
        writer.kill("SIGCONT");
        const begun = fs.readFileSync(at("a"));
        while (fs.readFileSync(at("a")).equals(begun)) await sleep(1);
        const [a, b] = [await bytesOf(layers, name, "a"), await bytesOf(layers, name, "b")].map(Number.parseFloat) as [
          number,
          number,
        ];
        expect([a, a - 1]).toContain(b);
        states.add(name);
        if (kind === "btrfs") expect(digestTree(layers.folder(name) as string)).toEqual(truth);
      }
      expect(states.size).toBe(12);
    } finally {
      writer.kill("SIGKILL");
      await once(writer, "exit");
    }
  });

  when("many states", async () => {
    const { layers, at } = await open();
    const count = kind === "btrfs" ? (long ? 10_000 : 300) : 30;
    const names: string[] = [];
    for (let i = 0; i < count; i++) {
      fs.writeFileSync(at("f"), `${i}`);
      names.push((await layers.snapshot()).name);
    }
    expect(new Set(names).size).toBe(count);
    for (const i of [0, count >> 1, count - 1, 7]) {
      await layers.reset(names[i] as string);
      expect(fs.readFileSync(at("f"), "utf8")).toBe(`${i}`);
      expect((await layers.snapshot()).name).toBe(names[i]);
    }
    expect(new Set(layers.names())).toEqual(new Set(names));
    for (const name of names.slice(0, count - 1)) await layers.drop(name);
    expect(layers.names()).toEqual(names.slice(-1));
  });
});

test.skipIf(kinds[0].lacks)(
  "F-61: names keep their order under live writers, and a subvolume inside is told",
  async () => {
    const layers = await useLayers(makePlace(), "btrfs");
    const script = `
import sys
for n in range(1, 100000):
    for name in "xy": open(sys.argv[1] + "/%s%d" % (name, n), "w").write("1")
    if n == 1: print("begun", flush=True)`;
    const writer = spawn("python3", ["-c", script, layers.live()], { stdio: ["ignore", "pipe", "inherit"] });
    try {
      await once(writer.stdout, "data");
      for (let round = 0; round < 20; round++) {
        const { name } = await layers.snapshot();
        const names = fs.readdirSync(layers.folder(name) as string);
        const last = (letter: string): number => names.filter((one) => one.startsWith(letter)).length;
        expect([0, 1]).toContain(last("x") - last("y"));
      }
    } finally {
      writer.kill("SIGKILL");
      await once(writer, "exit");
    }
    await layers.reset(null);
    fs.mkdirSync(join(layers.live(), "d"));
    const folder = fs.openSync(join(layers.live(), "d"), "r");
    await native.makeSubvolume(folder, Buffer.from("inner"));
    const inner = fs.openSync(join(layers.live(), "d", "inner"), "r");
    await native.makeSubvolume(inner, Buffer.from("deeper"));
    fs.closeSync(inner);
    fs.closeSync(folder);
    const { name, problems } = await layers.snapshot();
    expect(problems).toEqual([{ path: "d/inner", reason: expect.stringContaining("subvolume") }]);
    const old = layers.live();
    await layers.reset(name);
    await layers.close();
    expect(fs.existsSync(old)).toBe(false);
  },
);
