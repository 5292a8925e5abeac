// The native addon: every call, in ordinary and hostile trees.

import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { faultPoints } from "../src/faults.ts";
import { decodeEntries, loadNative, type Native, type NativeEntry, renameFlags } from "../src/native.ts";
import { lacking } from "./capabilities.ts";

const { O_DIRECTORY, O_RDONLY, O_RDWR, O_WRONLY, O_CREAT, O_EXCL, O_NONBLOCK, S_IFIFO, S_IFCHR, S_IFMT, S_IFSOCK } =
  fs.constants;
const O_PATH = 0o10000000;
const isRoot = !lacking("root");
const empty = Buffer.alloc(0);
const b = (text: string) => Buffer.from(text);
const addonFile = join(import.meta.dirname, "..", "native", "build", "Release", "agentrewind.node");

function getNative(): Native {
  const loaded = loadNative();
  if (loaded.native === null) throw new Error(loaded.reason);
  return loaded.native;
}

/** The error that `call` throws, by its code. */
function codeOf(call: () => unknown): string | undefined {
  try {
    call();
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? (error as Error).name;
  }
  return undefined;
}

describe.skipIf(lacking("native"))("native addon", () => {
  let native: Native;
  let base: string;
  let directory: string;
  let root: number;

  beforeEach(() => {
    native = getNative();
    base = fs.mkdtempSync(join(tmpdir(), "native-"));
    directory = join(base, "root");
    fs.mkdirSync(directory);
    root = fs.openSync(directory, O_RDONLY | O_DIRECTORY);
  });

  afterEach(() => {
    fs.closeSync(root);
    // rm takes trees deeper than PATH_MAX, fs.rmSync does not.
    execFileSync("rm", ["-rf", base]);
  });

  const statOf = (path: Buffer, at = root): NativeEntry => {
    const record = native.stat(at, path);
    if (record === null) throw new Error(`${path} is missing`);
    const [entry] = decodeEntries(record);
    if (entry === undefined) throw new Error("no record");
    return entry;
  };
  const write = (name: string, text = "") => fs.writeFileSync(join(directory, name), text);

  test("the fault points of both languages are the same", () => {
    expect(native.faultPoints()).toEqual(faultPoints);
  });

  describe("stat and readDirectory", () => {
    test("a record says what lstat says", () => {
      write("file", "12345");
      fs.symlinkSync("nowhere", join(directory, "link"));
      fs.chmodSync(join(directory, "file"), 0o4751);
      for (const name of ["file", "link", ""]) {
        const expected = fs.lstatSync(join(directory, name), { bigint: true });
        const entry = statOf(b(name));
        expect(entry.name.length).toBe(0);
        expect(BigInt(entry.mode)).toBe(expected.mode);
        expect(BigInt(entry.uid)).toBe(expected.uid);
        expect(BigInt(entry.gid)).toBe(expected.gid);
        expect(BigInt(entry.nlink)).toBe(expected.nlink);
        expect(entry.ino).toBe(expected.ino);
        expect(entry.size).toBe(expected.size);
        expect(entry.blocks).toBe(expected.blocks);
        expect(entry.mtimeNs).toBe(expected.mtimeNs);
        expect(entry.ctimeNs).toBe(expected.ctimeNs);
      }
      expect(statOf(b("file")).mountId).toBe(statOf(empty).mountId);
    });

    test("device numbers are decoded", () => {
      const dev = fs.openSync("/dev", O_RDONLY | O_DIRECTORY);
      try {
        const entry = statOf(b("null"), dev);
        expect([entry.mode & S_IFMT, entry.rdevMajor, entry.rdevMinor]).toEqual([S_IFCHR, 1, 3]);
      } finally {
        fs.closeSync(dev);
      }
    });

    test("what is missing is null, other failures throw", () => {
      write("file");
      expect(native.stat(root, b("missing"))).toBeNull();
      expect(native.stat(root, b("missing/below"))).toBeNull();
      expect(native.stat(root, b("file/below"))).toBeNull();
      expect(codeOf(() => native.stat(root, Buffer.alloc(256, "a")))).toBe("ENAMETOOLONG");
    });

    test("entries come sorted by raw bytes, whatever their names", () => {
      const names = [
        b("new\nline"),
        b("plain"),
        Buffer.from([0xff, 0xfe, 0x41]),
        Buffer.from([0xc3, 0x28]),
        b(" "),
        b("..."),
        b("-rf"),
        b("a\\b"),
        Buffer.alloc(255, "x"),
        Buffer.alloc(255, 0x80),
      ];
      for (const name of names) fs.writeFileSync(Buffer.concat([b(`${directory}/`), name]), name);
      const entries = decodeEntries(native.readDirectory(root, empty));
      expect(entries.map((entry) => entry.name.toString("hex"))).toEqual(
        [...names].sort(Buffer.compare).map((name) => name.toString("hex")),
      );
      for (const entry of entries) {
        expect(entry.size).toBe(BigInt(entry.name.length));
        expect(statOf(entry.name).ino).toBe(entry.ino);
        native.unlink(root, entry.name);
      }
      expect(native.readDirectory(root, empty)).toHaveLength(0);
    });

    test("many entries, below an O_PATH root too", () => {
      fs.mkdirSync(join(directory, "many"));
      for (let index = 0; index < 3000; index++) write(`many/${index}`);
      const path = fs.openSync(directory, O_PATH | O_DIRECTORY);
      try {
        expect(decodeEntries(native.readDirectory(path, b("many")))).toHaveLength(3000);
        expect(decodeEntries(native.readDirectory(path, empty))).toHaveLength(1);
      } finally {
        fs.closeSync(path);
      }
    });

    test("only directories are listed", () => {
      write("file");
      fs.symlinkSync(".", join(directory, "link"));
      execFileSync("mkfifo", [join(directory, "fifo")]);
      expect(codeOf(() => native.readDirectory(root, b("file")))).toBe("ENOTDIR");
      expect(codeOf(() => native.readDirectory(root, b("fifo")))).toBe("ENOTDIR");
      expect(codeOf(() => native.readDirectory(root, b("link")))).toMatch(/ELOOP|ENOTDIR/);
      expect(codeOf(() => native.readDirectory(root, b("missing")))).toBe("ENOENT");
    });

    test("a directory that changes while it is listed", async () => {
      const churn = new Worker(
        `const fs = require("node:fs"); const { workerData } = require("node:worker_threads");
         for (;;) for (let i = 0; i < 20; i++) { const f = workerData + "/" + i; fs.writeFileSync(f, ""); fs.unlinkSync(f); }`,
        { eval: true, workerData: directory },
      );
      write("stays");
      try {
        const until = Date.now() + 300;
        while (Date.now() < until) {
          const names = decodeEntries(native.readDirectory(root, empty)).map((entry) => entry.name.toString());
          expect(names).toContain("stays");
        }
      } finally {
        await churn.terminate();
      }
    });

    test("damaged records are refused", () => {
      write("file");
      const records = native.readDirectory(root, empty);
      expect(() => decodeEntries(records.subarray(0, records.length - 8))).toThrow(RangeError);
      const looping = Buffer.from(records);
      looping.writeUInt32LE(0, 0);
      expect(() => decodeEntries(looping)).toThrow(RangeError);
    });
  });

  describe("open", () => {
    test("reads and creates", () => {
      const fd = native.open(root, b("file"), O_RDWR | O_CREAT | O_EXCL, 0o600);
      fs.writeSync(fd, "content");
      fs.closeSync(fd);
      expect(fs.readFileSync(join(directory, "file"), "utf8")).toBe("content");
      expect(statOf(b("file")).mode & 0o7777).toBe(0o600);
      const again = native.open(root, b("file"), O_RDONLY, 0o7777);
      expect(fs.readFileSync(again, "utf8")).toBe("content");
      expect(fs.readFileSync(`/proc/self/fdinfo/${again}`, "utf8")).toMatch(/flags:\s+02[0-7]{6}/);
      fs.closeSync(again);
      fs.closeSync(native.open(root, empty, O_RDONLY | O_DIRECTORY, 0));
    });

    test("does not follow, and fails as the system does", () => {
      fs.writeFileSync(join(base, "outside"), "outside");
      fs.symlinkSync("../outside", join(directory, "link"));
      expect(codeOf(() => native.open(root, b("link"), O_WRONLY, 0))).toBe("ELOOP");
      expect(codeOf(() => native.open(root, b("link"), O_WRONLY | O_CREAT, 0o600))).toBe("ELOOP");
      expect(codeOf(() => native.open(root, b("missing"), O_RDONLY, 0))).toBe("ENOENT");
      expect(codeOf(() => native.open(root, empty, O_WRONLY, 0))).toBe("EISDIR");
      fs.closeSync(native.open(root, b("link"), O_PATH, 0));
      expect(fs.readFileSync(join(base, "outside"), "utf8")).toBe("outside");
    });

    test("a magic link is a symbolic link like any other", () => {
      const proc = fs.openSync("/proc", O_RDONLY | O_DIRECTORY);
      try {
        const path = b(`${process.pid}/fd/${root}`);
        expect(codeOf(() => native.readDirectory(proc, path))).toMatch(/ELOOP|ENOTDIR/);
        expect(codeOf(() => native.stat(proc, b(`${path}/file`)))).toBe("ELOOP");
      } finally {
        fs.closeSync(proc);
      }
    });

    test("a FIFO does not block a caller that asks for that", () => {
      native.makeNode(root, b("fifo"), S_IFIFO | 0o600, 0, 0);
      fs.closeSync(native.open(root, b("fifo"), O_RDONLY | O_NONBLOCK, 0));
    });
  });

  describe("make, remove, rename", () => {
    test("modes do not depend on the umask", () => {
      const old = process.umask(0o077);
      try {
        for (const mode of [0o777, 0o1777, 0o2755, 0o000, 0o4711]) {
          native.makeDirectory(root, b(`d${mode}`), mode);
          expect(statOf(b(`d${mode}`)).mode & 0o7777).toBe(mode);
        }
        native.makeNode(root, b("fifo"), S_IFIFO | 0o666, 0, 0);
        expect(statOf(b("fifo")).mode).toBe(S_IFIFO | 0o666);
        native.makeNode(root, b("socket"), S_IFSOCK | 0o624, 0, 0);
        expect(statOf(b("socket")).mode).toBe(S_IFSOCK | 0o624);
      } finally {
        process.umask(old);
      }
    });

    test("makeDirectory in a set-group-id parent", () => {
      native.makeDirectory(root, b("parent"), 0o2755);
      native.makeDirectory(root, b("parent/child"), 0o755);
      expect(statOf(b("parent/child")).mode & 0o7777).toBe(0o755);
    });

    test.runIf(isRoot)("device nodes", () => {
      const code = codeOf(() => native.makeNode(root, b("null"), S_IFCHR | 0o640, 1, 3));
      if (code !== undefined) {
        expect(code).toBe("EPERM"); // some containers forbid device nodes to root
        return;
      }
      const entry = statOf(b("null"));
      expect([entry.mode, entry.rdevMajor, entry.rdevMinor]).toEqual([S_IFCHR | 0o640, 1, 3]);
    });

    test("makeNode makes nothing else", () => {
      expect(codeOf(() => native.makeNode(root, b("x"), 0o644, 0, 0))).toBe("EINVAL");
      expect(codeOf(() => native.makeNode(root, b("x"), fs.constants.S_IFDIR | 0o755, 0, 0))).toBe("EINVAL");
      expect(native.stat(root, b("x"))).toBeNull();
    });

    test("symbolic links keep any target", () => {
      const targets = [b("a"), b("../../etc/passwd"), Buffer.from([0xff, 0x0a, 0x20]), Buffer.alloc(4095, "t")];
      for (const [index, target] of targets.entries()) {
        const path = b(`link${index}`);
        const code = codeOf(() => native.makeSymlink(root, target, path));
        if (code === undefined) expect(native.readLink(root, path).equals(target)).toBe(true);
        else expect([code, target.length]).toEqual(["ENAMETOOLONG", 4095]); // some file systems hold less
      }
      write("file");
      expect(codeOf(() => native.makeSymlink(root, b("x\0y"), b("nul")))).toBe("EINVAL");
      expect(codeOf(() => native.makeSymlink(root, empty, b("nothing")))).toBe("ENOENT");
      expect(codeOf(() => native.readLink(root, b("file")))).toBe("EINVAL");
    });

    test("hard links, of symbolic links too", () => {
      write("file");
      native.makeSymlink(root, b("file"), b("link"));
      native.makeLink(root, b("file"), b("file2"));
      native.makeLink(root, b("link"), b("link2"));
      expect(statOf(b("file2")).ino).toBe(statOf(b("file")).ino);
      expect(statOf(b("link2")).ino).toBe(statOf(b("link")).ino);
      expect(statOf(b("file")).nlink).toBe(2);
      expect(codeOf(() => native.makeLink(root, b("file"), b("link")))).toBe("EEXIST");
    });

    test("unlink and removeDirectory keep to their kind", () => {
      write("file");
      native.makeDirectory(root, b("full"), 0o755);
      write("full/file");
      native.makeSymlink(root, b("full"), b("link"));
      expect(codeOf(() => native.unlink(root, b("full")))).toMatch(/EISDIR|EPERM/);
      expect(codeOf(() => native.removeDirectory(root, b("file")))).toBe("ENOTDIR");
      expect(codeOf(() => native.removeDirectory(root, b("full")))).toBe("ENOTEMPTY");
      expect(codeOf(() => native.removeDirectory(root, b("link")))).toBe("ENOTDIR");
      native.unlink(root, b("link"));
      native.unlink(root, b("full/file"));
      native.removeDirectory(root, b("full"));
      native.unlink(root, b("file"));
      expect(fs.readdirSync(directory)).toEqual([]);
    });

    test("rename replaces, refuses or exchanges", () => {
      write("a", "A");
      write("b", "B");
      expect(codeOf(() => native.rename(root, b("a"), b("b"), renameFlags.noReplace))).toBe("EEXIST");
      native.rename(root, b("a"), b("b"), renameFlags.exchange);
      expect(fs.readFileSync(join(directory, "a"), "utf8")).toBe("B");
      expect(fs.readFileSync(join(directory, "b"), "utf8")).toBe("A");
      native.rename(root, b("a"), b("b"), 0);
      expect(fs.readdirSync(directory)).toEqual(["b"]);
      expect(fs.readFileSync(join(directory, "b"), "utf8")).toBe("B");
      native.makeDirectory(root, b("d"), 0o755);
      native.rename(root, b("b"), b("d"), renameFlags.exchange);
      expect(fs.readFileSync(join(directory, "d"), "utf8")).toBe("B");
      expect(codeOf(() => native.rename(root, b("d"), b("missing"), renameFlags.exchange))).toBe("ENOENT");
    });

    test("the root itself can be neither made nor removed", () => {
      expect(codeOf(() => native.makeDirectory(root, empty, 0o700))).toBe("EEXIST");
      expect(codeOf(() => native.makeSymlink(root, b("x"), empty))).toBe("EEXIST");
      expect(codeOf(() => native.removeDirectory(root, empty))).toBe("EINVAL");
      expect(codeOf(() => native.unlink(root, empty))).toBeDefined();
      expect(codeOf(() => native.rename(root, empty, b("x"), 0))).toBe("EBUSY");
      expect(fs.existsSync(directory)).toBe(true);
    });
  });

  describe("mode, owner, times", () => {
    test("setMode", () => {
      write("file");
      native.makeDirectory(root, b("d"), 0o700);
      for (const [path, mode] of [
        ["file", 0o000],
        ["file", 0o6755],
        ["d", 0o1777],
        ["", 0o711],
      ] as const) {
        native.setMode(root, b(path), mode);
        expect(statOf(b(path)).mode & 0o7777).toBe(mode);
      }
      fs.writeFileSync(join(base, "outside"), "", { mode: 0o600 });
      native.makeSymlink(root, b("../outside"), b("link"));
      expect(codeOf(() => native.setMode(root, b("link"), 0o777))).toBe("ENOTSUP");
      expect(fs.statSync(join(base, "outside")).mode & 0o777).toBe(0o600);
    });

    test.runIf(isRoot)("setOwner, of symbolic links themselves", () => {
      write("file");
      native.makeSymlink(root, b("file"), b("link"));
      native.setOwner(root, b("link"), 4242, 4_000_000_000);
      expect([statOf(b("link")).uid, statOf(b("link")).gid]).toEqual([4242, 4_000_000_000]);
      expect(statOf(b("file")).uid).toBe(process.getuid?.());
      native.setOwner(root, b("file"), 0xffffffff, 7);
      expect([statOf(b("file")).uid, statOf(b("file")).gid]).toEqual([process.getuid?.(), 7]);
    });

    test("setTimes keeps every nanosecond", () => {
      write("file");
      native.makeDirectory(root, b("d"), 0o700);
      native.makeSymlink(root, b("file"), b("link"));
      native.makeNode(root, b("fifo"), S_IFIFO | 0o600, 0, 0);
      const times = [
        1_700_000_000_123_456_789n,
        0n,
        1n,
        999_999_999n,
        1_000_000_000n,
        -1n,
        -1_000_000_000n,
        -1_500_000_001n,
      ];
      for (const path of ["file", "d", "link", "fifo", ""]) {
        for (const mtimeNs of times) {
          native.setTimes(root, b(path), 1_600_000_000_987_654_321n, mtimeNs);
          expect(statOf(b(path)).mtimeNs).toBe(mtimeNs);
        }
      }
      native.setTimes(root, b("file"), 1_600_000_000_987_654_321n, 5n);
      native.setTimes(root, b("file"), null, 6n);
      const found = fs.statSync(join(directory, "file"), { bigint: true });
      expect([found.atimeNs, found.mtimeNs]).toEqual([1_600_000_000_987_654_321n, 6n]);
    });
  });

  describe("extended attributes", () => {
    const pairs = (path: string) =>
      native.getXattrs(root, b(path)).map(([name, value]) => [name.toString("latin1"), value.toString("latin1")]);

    test("files and directories", () => {
      write("file");
      native.makeDirectory(root, b("d"), 0o700);
      const supported = codeOf(() => native.setXattr(root, b("file"), b("user.z"), b("1"))) !== "ENOTSUP";
      if (!supported) {
        expect(native.getXattrs(root, b("file"))).toEqual([]);
        return;
      }
      native.setXattr(root, b("file"), Buffer.from("user.b\xff\n", "latin1"), Buffer.from([0, 255, 0]));
      native.setXattr(root, b("file"), b("user.a"), empty);
      native.setXattr(root, b("file"), b("user.z"), b("2"));
      expect(pairs("file")).toEqual([
        ["user.a", ""],
        ["user.b\xff\n", "\0\xff\0"],
        ["user.z", "2"],
      ]);
      native.removeXattr(root, b("file"), b("user.a"));
      expect(pairs("file").map(([name]) => name)).toEqual(["user.b\xff\n", "user.z"]);
      expect(codeOf(() => native.removeXattr(root, b("file"), b("user.a")))).toBe("ENODATA");

      native.setXattr(root, b("d"), b("user.d"), b("directory"));
      native.setXattr(root, empty, b("user.root"), b("root"));
      native.setMode(root, b("d"), 0o300);
      if (isRoot) expect(pairs("d")).toEqual([["user.d", "directory"]]);
      expect(pairs("")).toEqual([["user.root", "root"]]);
    });

    test("many names and a long value", () => {
      write("file");
      const long = Buffer.alloc(2500, 7);
      if (codeOf(() => native.setXattr(root, b("file"), b("user.long"), long)) === "ENOTSUP") return;
      expect(native.getXattrs(root, b("file"))[0]?.[1].equals(long)).toBe(true);
      native.removeXattr(root, b("file"), b("user.long"));
      // Names of 2,000 bytes in all, more than the first buffer holds; what the file system refuses is left out.
      const names = Array.from({ length: 10 }, (_, index) => `user.${String(index).padEnd(200, "n")}`);
      const kept = names.filter((name) => codeOf(() => native.setXattr(root, b("file"), b(name), empty)) === undefined);
      expect(kept.length).toBeGreaterThan(5);
      expect(pairs("file").map(([name]) => name)).toEqual(kept);
    });

    test("symbolic links take no user attributes, nor does what they point to", () => {
      write("file");
      native.makeSymlink(root, b("file"), b("link"));
      expect(codeOf(() => native.setXattr(root, b("link"), b("user.a"), b("1")))).toMatch(/EPERM|ENOTSUP/);
      expect(pairs("file")).toEqual([]);
      expect(pairs("link")).toEqual([]);
    });

    test.runIf(isRoot)("trusted attributes of symbolic links, FIFOs and names with odd bytes", () => {
      native.makeNode(root, b("fifo"), S_IFIFO | 0o600, 0, 0);
      native.makeSymlink(root, b("fifo"), b("link"));
      const odd = Buffer.from([0x0a, 0xff, 0x27]);
      fs.writeFileSync(Buffer.concat([b(`${directory}/`), odd]), "");
      for (const path of [b("link"), b("fifo"), odd]) {
        const code = codeOf(() => native.setXattr(root, path, b("trusted.t"), path));
        if (code !== undefined) {
          expect(code).toMatch(/EPERM|ENOTSUP/); // root without CAP_SYS_ADMIN, or a file system without them
          return;
        }
        const found = native.getXattrs(root, path);
        expect(found.map(([name]) => name.toString())).toEqual(["trusted.t"]);
        expect(found[0]?.[1].equals(path)).toBe(true);
      }
      native.removeXattr(root, b("link"), b("trusted.t"));
      expect(pairs("link")).toEqual([]);
      expect(pairs("fifo")).toHaveLength(1);
    });

    test("failures", () => {
      write("file");
      expect(codeOf(() => native.getXattrs(root, b("missing")))).toBe("ENOENT");
      expect(codeOf(() => native.setXattr(root, b("file"), b("user.a\0b"), b("1")))).toBe("EINVAL");
      expect(codeOf(() => native.setXattr(root, b("file"), b("nonsense.a"), b("1")))).toBe("ENOTSUP");
    });

    test("a file system without any has none", () => {
      const proc = fs.openSync("/proc", O_RDONLY | O_DIRECTORY);
      try {
        expect(native.getXattrs(proc, b(`${process.pid}/status`))).toEqual([]);
      } finally {
        fs.closeSync(proc);
      }
    });
  });

  describe("descriptors", () => {
    test("nextData finds the data between holes", () => {
      const size = 16 << 20;
      const fd = native.open(root, b("sparse"), O_RDWR | O_CREAT, 0o600);
      try {
        expect(native.nextData(fd, 0)).toBeNull();
        fs.ftruncateSync(fd, size);
        fs.writeSync(fd, "middle", 8 << 20);
        fs.writeSync(fd, "end", size - 3);
        const ranges: [number, number][] = [];
        for (let range = native.nextData(fd, 0); range !== null; range = native.nextData(fd, range[1]))
          ranges.push(range);
        expect(ranges.at(-1)?.[1]).toBe(size);
        const covered = (at: number) => ranges.some(([start, end]) => start <= at && at < end);
        expect(covered(8 << 20)).toBe(true);
        expect(covered(size - 1)).toBe(true);
        // A file system without holes answers one range for all.
        if (ranges.length > 1) {
          expect(covered(0)).toBe(false);
          expect(ranges).toHaveLength(2);
        }
        expect(native.nextData(fd, size)).toBeNull();
        expect(native.nextData(fd, Number.MAX_SAFE_INTEGER)).toBeNull();
        fs.ftruncateSync(fd, 0);
        fs.ftruncateSync(fd, size);
        if (statOf(b("sparse")).blocks === 0n) expect(native.nextData(fd, 0)).toBeNull();
      } finally {
        fs.closeSync(fd);
      }
    });

    test("nextData and syncFileSystem fail as the system does", () => {
      const closed = fs.openSync(directory, O_RDONLY);
      fs.closeSync(closed);
      expect(codeOf(() => native.nextData(closed, 0))).toBe("EBADF");
      expect(codeOf(() => native.syncFileSystem(closed))).toBe("EBADF");
      expect(native.syncFileSystem(root)).toBeUndefined();
    });
  });

  describe("staying beneath the root", () => {
    /** Each call on `path`; those that take two paths once with it in either place. */
    const calls: Record<string, (path: Buffer) => unknown> = {
      readDirectory: (path) => native.readDirectory(root, path),
      stat: (path) => native.stat(root, path),
      readLink: (path) => native.readLink(root, path),
      open: (path) => fs.closeSync(native.open(root, path, O_WRONLY | O_CREAT, 0o600)),
      makeDirectory: (path) => native.makeDirectory(root, path, 0o700),
      makeSymlink: (path) => native.makeSymlink(root, b("target"), path),
      "makeLink from": (path) => native.makeLink(root, path, b("new")),
      "makeLink to": (path) => native.makeLink(root, b("inside"), path),
      makeNode: (path) => native.makeNode(root, path, S_IFIFO | 0o600, 0, 0),
      unlink: (path) => native.unlink(root, path),
      removeDirectory: (path) => native.removeDirectory(root, path),
      "rename from": (path) => native.rename(root, path, b("new"), 0),
      "rename to": (path) => native.rename(root, b("inside"), path, 0),
      "rename exchange": (path) => native.rename(root, b("inside"), path, renameFlags.exchange),
      setMode: (path) => native.setMode(root, path, 0o777),
      setOwner: (path) => native.setOwner(root, path, 1, 1),
      setTimes: (path) => native.setTimes(root, path, 1n, 1n),
      getXattrs: (path) => native.getXattrs(root, path),
      setXattr: (path) => native.setXattr(root, path, b("user.a"), b("1")),
      removeXattr: (path) => native.removeXattr(root, path, b("user.a")),
    };
    const picture = () =>
      execFileSync("find", [base, "-printf", "%P %y %m %U %T@ %s\\n"], { encoding: "utf8" }).split("\n").sort();

    test.each(Object.keys(calls))("%s refuses symbolic links among the parents", (name) => {
      const outside = join(base, "outside");
      fs.mkdirSync(join(outside, "directory"), { recursive: true });
      fs.writeFileSync(join(outside, "file"), "outside");
      fs.symlinkSync("file", join(outside, "link"));
      fs.mkdirSync(join(directory, "deep"));
      write("inside", "inside");
      fs.symlinkSync("../outside", join(directory, "relative"));
      fs.symlinkSync(outside, join(directory, "absolute"));
      fs.symlinkSync("../../outside", join(directory, "deep", "up"));
      fs.symlinkSync("deep", join(directory, "home"));
      const before = picture();
      for (const parent of ["relative", "absolute", "deep/up", "home", "home/up"]) {
        for (const last of ["file", "link", "directory", "new", "directory/new"]) {
          expect(codeOf(() => calls[name]?.(b(`${parent}/${last}`)))).toBe("ELOOP");
        }
      }
      expect(picture()).toEqual(before);
    });

    test.each(Object.keys(calls))("%s refuses malformed paths", (name) => {
      write("inside");
      fs.mkdirSync(join(directory, "d"));
      const before = picture();
      const malformed = ["..", ".", "../x", "./x", "d/..", "d/.", "d/../x", "/etc", "/", "d//x", "d/", "x\0y", "d/\0"];
      for (const path of malformed) expect(codeOf(() => calls[name]?.(b(path)))).toBe("EINVAL");
      expect(picture()).toEqual(before);
    });

    test("a parent that is swapped for a symbolic link meanwhile", async () => {
      const outside = join(base, "outside");
      fs.mkdirSync(outside);
      fs.mkdirSync(join(directory, "d"));
      fs.symlinkSync(outside, join(directory, "evil"));
      const swap = new Worker(
        `const { workerData } = require("node:worker_threads"); const native = require(workerData.addon);
         for (;;) native.rename(workerData.root, Buffer.from("d"), Buffer.from("evil"), 2);`,
        { eval: true, workerData: { addon: addonFile, root } },
      );
      const codes = new Set<string | undefined>();
      try {
        await new Promise((resolve) => swap.once("online", resolve));
        const until = Date.now() + 500;
        for (let index = 0; Date.now() < until; index++) {
          codes.add(codeOf(() => native.makeDirectory(root, b(`d/${index}`), 0o700)));
          codes.add(codeOf(() => fs.closeSync(native.open(root, b(`d/f${index}`), O_WRONLY | O_CREAT, 0o600))));
        }
      } finally {
        await swap.terminate();
      }
      expect(fs.readdirSync(outside)).toEqual([]);
      expect([...codes].every((code) => code === undefined || code === "ELOOP")).toBe(true);
    });

    test("paths longer than PATH_MAX", () => {
      const names = Array.from({ length: 40 }, (_, index) => String(index).padEnd(200, "d"));
      let path = empty;
      for (const name of names) {
        path = path.length === 0 ? b(name) : Buffer.concat([path, b("/"), b(name)]);
        native.makeDirectory(root, path, 0o700);
      }
      expect(path.length).toBeGreaterThan(8000);
      const at = (name: string) => Buffer.concat([path, b(`/${name}`)]);
      const fd = native.open(root, at("file"), O_WRONLY | O_CREAT, 0o600);
      fs.writeSync(fd, "deep");
      fs.closeSync(fd);
      native.setTimes(root, at("file"), null, -7n);
      native.setMode(root, at("file"), 0o640);
      native.makeSymlink(root, b("file"), at("link"));
      native.makeLink(root, at("file"), at("second"));
      native.rename(root, at("second"), b("shallow"), 0);
      expect(fs.readFileSync(join(directory, "shallow"), "utf8")).toBe("deep");
      const entries = decodeEntries(native.readDirectory(root, path));
      expect(entries.map((entry) => entry.name.toString())).toEqual(["file", "link"]);
      expect(statOf(at("file")).mtimeNs).toBe(-7n);
      expect(native.readLink(root, at("link")).toString()).toBe("file");
      expect(native.getXattrs(root, at("file"))).toEqual([]);
      expect(native.stat(root, at("missing"))).toBeNull();
      native.unlink(root, at("link"));
      native.unlink(root, at("file"));
      native.removeDirectory(root, path);
      expect(native.stat(root, path)).toBeNull();
      // The chunk after the first is checked as well.
      const parent = path.subarray(0, path.lastIndexOf("/"));
      native.makeSymlink(root, b("."), Buffer.concat([parent, b("/loop")]));
      expect(codeOf(() => native.stat(root, Buffer.concat([parent, b("/loop/x")])))).toBe("ELOOP");
      expect(codeOf(() => native.stat(root, Buffer.concat([Buffer.alloc(5000, "n"), b("/x")])))).toBe("ENAMETOOLONG");
    });
  });

  describe("arguments and errors", () => {
    test("errors look like those of node:fs", () => {
      expect(() => native.unlink(root, b("missing"))).toThrow(
        expect.objectContaining({
          code: "ENOENT",
          errno: -2,
          syscall: "unlinkat",
          message: "ENOENT: no such file or directory, unlinkat 'missing'",
        }),
      );
      expect(() => native.rename(root, b("missing/a"), b("b"), 0)).toThrow(
        /^ENOENT: no such file or directory, openat2? 'missing\/a' -> 'b'$/,
      );
      expect(codeOf(() => native.unlink(root, Buffer.from([0xff, 0x2f, 0x80])))).toBe("ENOENT");
    });

    test("a root that is none", () => {
      write("file");
      const file = fs.openSync(join(directory, "file"), O_RDONLY);
      expect(codeOf(() => native.readDirectory(file, b("x")))).toBe("ENOTDIR");
      expect(codeOf(() => native.unlink(file, empty))).toBeDefined();
      fs.closeSync(file);
      expect(codeOf(() => native.readDirectory(file, empty))).toBe("EBADF");
      expect(codeOf(() => native.unlink(file, b("a/b")))).toBe("EBADF");
    });

    test("wrong arguments are TypeErrors and change nothing", () => {
      write("file");
      const detached = new Uint8Array(4);
      structuredClone(detached, { transfer: [detached.buffer] });
      const wrongFds = [-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 31, "3", null, undefined, 3n, {}, []];
      const wrongPaths = [
        "file",
        null,
        undefined,
        1,
        {},
        [],
        new ArrayBuffer(4),
        new Uint16Array(2),
        detached,
        Symbol(),
      ];
      const wrongNumbers = [-1, 0.5, Number.NaN, 2 ** 32, "1", null, undefined, 1n, {}];
      const wrongTimes = [0, "1", null, undefined, 2n ** 63n, -(2n ** 63n) - 1n];
      const path = b("file");
      const good: Record<
        Exclude<
          keyof Native,
          | "armWriteFault"
          | "findWriters"
          | "Scanner"
          | "faultPoints"
          | "compareTrees"
          | "tryBpf"
          | "probeLibbpf"
          | "bpfPrograms"
          | "Effects"
          | "loadEffects"
        >,
        unknown[]
      > = {
        readDirectory: [root, empty],
        stat: [root, path],
        probeWatch: [root],
        readLink: [root, path],
        open: [root, path, 0, 0],
        openInside: [root, path, 0, 0],
        makeDirectory: [root, path, 0],
        makeSymlink: [root, path, path],
        makeLink: [root, path, path],
        makeNode: [root, path, 0, 0, 0],
        unlink: [root, path],
        removeDirectory: [root, path],
        rename: [root, path, path, 0],
        setMode: [root, path, 0],
        setOwner: [root, path, 0, 0],
        setTimes: [root, path, 1n, 1n],
        getXattrs: [root, path],
        setXattr: [root, path, path, path],
        removeXattr: [root, path, path],
        syncFileSystem: [root],
        nextData: [root, 0],
        punchHole: [root, 0, 1],
        runJobs: [root, empty],
        makeSubvolume: [root, path],
        makeSnapshot: [root, root, path, 1],
        removeSubvolume: [root, path],
        subvolumeInfo: [root],
        innerSubvolumes: [root],
        findLoopDevice: [root],
        lookAt: [root, path],
        attachLoopDevice: [root, 1],
        mount: [empty, path, empty, 0, empty],
        unmount: [path, 0],
        lockFile: [root, 0],
        waitForTransaction: [root, 0],
        changedInodes: [root, 0],
        countIpcObjects: [process.pid],
        stampTree: [root, path],
      };
      const before = statOf(path);
      for (const [name, args] of Object.entries(good)) {
        const call = native[name as keyof typeof good] as (...args: unknown[]) => unknown;
        expect(call).toBeTypeOf("function");
        expect(() => call()).toThrow(TypeError);
        for (const [index, arg] of args.entries()) {
          let wrong: unknown[] = wrongNumbers;
          if (name === "countIpcObjects") wrong = [...wrongNumbers, 0];
          else if (index === 0) wrong = wrongFds;
          else if (arg instanceof Uint8Array) wrong = wrongPaths;
          else if (typeof arg === "bigint")
            wrong = name === "setTimes" && index === 2 ? wrongTimes.filter((time) => time !== null) : wrongTimes;
          else if (["nextData", "punchHole", "waitForTransaction", "changedInodes"].includes(name))
            wrong = wrongNumbers.filter((number) => number !== 2 ** 32);
          for (const value of wrong) expect(() => call(...args.with(index, value))).toThrow(TypeError);
          expect(() => call(...args.slice(0, index))).toThrow(TypeError);
        }
      }
      expect(() => native.rename(root, path, path, 3)).toThrow(TypeError);
      expect(() => native.setMode(root, path, 0o10000)).toThrow(TypeError);
      expect(() => native.nextData(root, Number.MAX_SAFE_INTEGER + 1)).toThrow(TypeError);
      expect(() => native.stat.call(null, root, path)).not.toThrow();
      expect({ ...statOf(path), name: null }).toEqual({ ...before, name: null });
    });

    test("plain and shared Uint8Arrays serve as paths", () => {
      write("file");
      const shared = new Uint8Array(new SharedArrayBuffer(4));
      shared.set(b("file"));
      expect(native.stat(root, shared)).not.toBeNull();
      expect(native.stat(root, Uint8Array.from(b("file")))).not.toBeNull();
      expect(native.stat(root, b("-file-").subarray(1, 5))).not.toBeNull();
    });

    test("no call leaks a descriptor", () => {
      native.makeDirectory(root, b("d"), 0o700);
      native.makeDirectory(root, b("d/e"), 0o700);
      const open = () => fs.readdirSync("/proc/self/fd").length;
      const before = open();
      for (let index = 0; index < 200; index++) {
        native.readDirectory(root, b("d/e"));
        native.stat(root, b("d/e"));
        native.setMode(root, b("d/e"), 0o700);
        native.getXattrs(root, b("d/e"));
        codeOf(() => native.readDirectory(root, b("d/e/f")));
        codeOf(() => native.rename(root, b("d/e"), b("x/y"), 0));
        codeOf(() => native.makeNode(root, b("d/e"), S_IFIFO, 0, 0));
      }
      expect(open()).toBe(before);
    });
  });

  describe("loading", () => {
    test("is cached, and can be turned off", () => {
      expect(loadNative()).toBe(loadNative());
      process.env.AGENTREWIND_NATIVE = "off";
      try {
        expect(loadNative()).toEqual({ native: null, reason: "AGENTREWIND_NATIVE=off" });
      } finally {
        delete process.env.AGENTREWIND_NATIVE;
      }
      expect(loadNative().native).not.toBeNull();
    });

    test("two copies and a second load in one process", () => {
      const require = createRequire(import.meta.url);
      const copy = join(base, "copy.node");
      fs.copyFileSync(addonFile, copy);
      const other = require(copy) as Native;
      delete require.cache[addonFile];
      const again = require(addonFile) as Native;
      write("file");
      for (const addon of [other, again, native]) expect(addon.stat(root, b("file"))).not.toBeNull();
    });

    test("in workers, and in workers that end during a call that fails", async () => {
      const code = `const { parentPort, workerData } = require("node:worker_threads");
        const native = require(workerData.addon);
        parentPort.postMessage(native.readDirectory(workerData.root, Buffer.alloc(0)).length);
        for (;;) try { native.unlink(workerData.root, Buffer.from("missing")) } catch {}`;
      const length = native.readDirectory(root, empty).length;
      for (let round = 0; round < 10; round++) {
        const worker = new Worker(code, { eval: true, workerData: { addon: addonFile, root } });
        const message = await new Promise((resolve, reject) => {
          worker.once("message", resolve);
          worker.once("error", reject);
        });
        expect(message).toBe(length);
        await worker.terminate();
      }
      expect(native.stat(root, b("missing"))).toBeNull();
    });
  });
});
