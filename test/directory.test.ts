// The directory environment is exact: after a rewind every entry of the tree is what it was at the checkpoint.

import { execFileSync, spawn } from "node:child_process";
import * as fs from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import type { Thread } from "agentrewind";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { lacking } from "./capabilities.ts";
import { digestTree } from "./helpers/digest.ts";
import { runSteps } from "./helpers/steps.ts";
import { codeOf, makePlace, type Place, useRewind } from "./helpers/workspace.ts";
import { getXattrs, setXattr } from "./helpers/xattrs.ts";

const isRoot = !lacking("root");
const nobody = 65534;

/** A line of shell in a folder. */
const sh = (cwd: string, command: string): string =>
  execFileSync("bash", ["--norc", "-c", command], { cwd, encoding: "utf8", stdio: "pipe" });

/** Number and change time of an inode: what a restore that leaves a file alone does not change. */
const identity = (path: string): string => {
  const stat = fs.lstatSync(path, { bigint: true });
  return `${stat.ino} ${stat.ctimeNs}`;
};

const packedBytes = (store: string): number =>
  fs.readdirSync(join(store, "packs")).reduce((sum, name) => sum + fs.statSync(join(store, "packs", name)).size, 0);

const storeHolds = (store: string, text: string): boolean =>
  fs.readdirSync(join(store, "packs")).some((name) => fs.readFileSync(join(store, "packs", name)).includes(text));

describe.each(["native", "portable"] as const)("directory environment, %s", (path) => {
  const portable = path === "portable";
  if (!portable && lacking("native")) {
    test.skip("the native path needs the addon");
    return;
  }
  /** The portable path declares that it lacks this. */
  const exactly = (title: string, run: () => unknown): void => {
    if (!portable) test(title, run as () => void);
  };
  const times = portable ? "us" : "ns";
  const env = portable ? { AGENTREWIND_NATIVE: "off" } : {};

  beforeAll(() => {
    if (portable) process.env.AGENTREWIND_NATIVE = "off";
  });
  afterAll(() => {
    delete process.env.AGENTREWIND_NATIVE;
  });

  const digest = (place: Place): string[] => digestTree(place.workspace, { times });

  /** Checkpoint, change, rewind, undo: both states come back, and nothing is reported as missing. */
  async function roundTrip(
    make: (root: string) => void,
    change: (root: string) => void,
  ): Promise<{ place: Place; thread: Thread }> {
    const place = makePlace();
    make(place.workspace);
    const thread = (await useRewind(place)).thread("t");
    const before = digest(place);
    await thread.checkpoint();
    expect(digest(place), "a capture changes nothing").toEqual(before);
    change(place.workspace);
    const after = digest(place);
    expect(after, "the change changes something").not.toEqual(before);
    const result = await thread.rewind({ to: "c0" });
    expect(digest(place)).toEqual(before);
    expect(result.notRestored).toEqual([]);
    const undone = await thread.undo();
    expect(digest(place)).toEqual(after);
    expect(undone.notRestored).toEqual([]);
    return { place, thread };
  }

  describe("kinds of entries", () => {
    test("text and binary files come back byte for byte", async () => {
      const bytes = Buffer.from(Array.from({ length: 4096 }, (_, i) => (i * 7 + (i >> 8)) & 0xff));
      await roundTrip(
        (root) => {
          fs.writeFileSync(join(root, "binary"), bytes);
          fs.writeFileSync(join(root, "empty"), "");
          fs.writeFileSync(join(root, "crlf.txt"), "a\r\nb\r\n\0c");
        },
        (root) => {
          fs.writeFileSync(join(root, "binary"), bytes.subarray(1));
          fs.writeFileSync(join(root, "empty"), "no longer");
          fs.writeFileSync(join(root, "crlf.txt"), "a\nb\n");
        },
      );
    });

    test("a change that keeps size and time is seen", async () => {
      await roundTrip(
        (root) => {
          fs.writeFileSync(join(root, "f"), "one");
          fs.utimesSync(join(root, "f"), 1_000_000_000, 1_000_000_000);
        },
        (root) => {
          fs.writeFileSync(join(root, "f"), "two");
          fs.utimesSync(join(root, "f"), 1_000_000_000, 1_000_000_000);
          fs.utimesSync(root, 1_000_000_000, 1_000_000_000);
        },
      );
    });

    test("case 44: modes come back, of read-only files too", async () => {
      const modes = { "run.sh": 0o755, key: 0o600, "ro.txt": 0o444, suid: 0o4755, sgid: 0o2755, none: 0o000 };
      await roundTrip(
        (root) => {
          for (const [name, mode] of Object.entries(modes)) {
            fs.writeFileSync(join(root, name), name);
            fs.chmodSync(join(root, name), mode);
          }
          fs.mkdirSync(join(root, "sticky"));
          fs.chmodSync(join(root, "sticky"), 0o1777);
          fs.mkdirSync(join(root, "shared"));
          fs.chmodSync(join(root, "shared"), 0o2750);
        },
        (root) => {
          for (const name of Object.keys(modes)) {
            fs.rmSync(join(root, name));
            fs.writeFileSync(join(root, name), `${name} edited`);
            fs.chmodSync(join(root, name), 0o666);
          }
          fs.chmodSync(join(root, "sticky"), 0o700);
          fs.chmodSync(join(root, "shared"), 0o755);
        },
      );
    });

    test("a change of mode or time alone", async () => {
      await roundTrip(
        (root) =>
          sh(root, "mkdir d; echo a > d/f; ln -s f d/l; chmod 640 d/f; touch -hd '2020-01-02 03:04:05.123456789' d/l"),
        (root) => sh(root, "chmod 600 d/f; touch -hd '2021-01-02 03:04:05.987654321' d/l; chmod 711 d"),
      );
    });

    test("times of files, folders and links, to the nanosecond and before 1970", async () => {
      await roundTrip(
        (root) =>
          sh(
            root,
            `mkdir d; echo a > d/f; ln -s f d/l; echo old > old
             touch -d '1969-12-31 23:59:58.250000000 UTC' old
             touch -hd '2020-01-02 03:04:05.123456789' d/f; touch -hd '2019-01-02 03:04:05.000000001' d/l
             touch -d '2018-01-02 03:04:05.999999999' d; touch -d '2017-01-02 03:04:05.5' .`,
          ),
        (root) => sh(root, "echo b >> d/f; rm d/l; touch d/new old"),
      );
    });

    test.skipIf(!isRoot)("owners come back as root", async () => {
      await roundTrip(
        (root) =>
          sh(root, "echo a > f; ln -s f l; mkdir d; chown 1234:5678 f; chown -h 12:34 l; chown 9:8 d; chmod 4755 f"),
        (root) => sh(root, "chown 0:0 f d; chown -h 0:0 l; echo b > f"),
      );
    });

    test("cases 19 and 20: empty folders, also an empty workspace", async () => {
      await roundTrip(
        (root) => sh(root, "mkdir -p d1 .git/refs/tags"),
        (root) => sh(root, "rmdir d1; mkdir -p d2/e; rm -r .git"),
      );
      await roundTrip(
        () => {},
        (root) => fs.writeFileSync(join(root, "f"), "x"),
      );
    });

    test("symbolic links are links, wherever they lead (cases 40, 42)", async () => {
      const outside = makePlace();
      fs.writeFileSync(join(outside.workspace, "secret"), "the-secret-outside");
      const seen = digestTree(outside.base);
      const { place } = await roundTrip(
        (root) => {
          fs.writeFileSync(join(root, "t.txt"), "t");
          fs.symlinkSync(join(root, "t.txt"), join(root, "absolute"));
          fs.symlinkSync("nowhere", join(root, "dangling"));
          fs.symlinkSync(".", join(root, "itself"));
          fs.symlinkSync("loop", join(root, "loop"));
          fs.symlinkSync(join(outside.workspace, "secret"), join(root, "k"));
          fs.symlinkSync(outside.workspace, join(root, "folder"));
          fs.symlinkSync(Buffer.from([0x66, 0xff, 0x0a]), join(root, "bytes"));
        },
        (root) => {
          for (const name of ["absolute", "dangling", "itself", "loop", "k", "folder", "bytes"]) {
            fs.rmSync(join(root, name));
            fs.writeFileSync(join(root, name), "no link any more");
          }
        },
      );
      expect(digestTree(outside.base), "nothing outside was touched").toEqual(seen);
      expect(storeHolds(place.store, "the-secret-outside")).toBe(false);
      expect(storeHolds(place.store, "no link any more"), "so the search does find what is stored").toBe(true);
    });

    test("a link's text alone changes", async () => {
      await roundTrip(
        (root) => fs.symlinkSync("one", join(root, "l")),
        (root) => {
          fs.rmSync(join(root, "l"));
          fs.symlinkSync("two", join(root, "l"));
        },
      );
    });

    exactly("FIFOs", async () => {
      await roundTrip(
        (root) => sh(root, "mkfifo -m 640 p q; ln q q2"),
        (root) => sh(root, "rm p; mkfifo -m 600 r; chmod 604 q; rm q2"),
      );
    });

    if (portable)
      test("a FIFO that is gone is named as not restored", async () => {
        const place = makePlace();
        sh(place.workspace, "mkfifo p; echo 1 > f");
        const thread = (await useRewind(place)).thread("t");
        await thread.checkpoint();
        sh(place.workspace, "rm p; echo 2 > f");
        const result = await thread.rewind({ to: "c0" });
        expect(result.notRestored.map((one) => one.path)).toEqual(["p"]);
        expect(result.message).toContain("Not restored: p");
        expect(fs.readFileSync(join(place.workspace, "f"), "utf8")).toBe("1\n");
      });

    (isRoot ? exactly : test.skip)("device nodes as root", async () => {
      await roundTrip(
        (root) => sh(root, "mknod zero c 1 5; mknod disk b 7 300; chmod 660 zero"),
        (root) => sh(root, "rm zero disk; echo x > zero; mknod disk b 7 301"),
      );
    });

    exactly("extended attributes", async () => {
      const place = makePlace();
      const { workspace } = place;
      sh(workspace, "mkdir d; echo a > f; echo b > g; chmod 444 g");
      setXattr(workspace, "f", "user.kept", "1");
      setXattr(workspace, "f", "user.changed", "before");
      setXattr(workspace, "d", "user.folder", "\0\xff");
      setXattr(workspace, "g", "user.read-only", "1");
      const before = ["f", "d", "g"].map((name) => getXattrs(workspace, name));
      const thread = (await useRewind(place)).thread("t");
      await thread.checkpoint();
      setXattr(workspace, "f", "user.changed", "after");
      setXattr(workspace, "f", "user.new", "1");
      sh(workspace, "rmdir d; mkdir d; rm g; echo b > g");
      const result = await thread.rewind({ to: "c0" });
      expect(["f", "d", "g"].map((name) => getXattrs(workspace, name))).toEqual(before);
      expect(result.notRestored).toEqual([]);
    });

    test("F-13: sockets are left alone, and named when they stand in the way (case 49)", async () => {
      const place = makePlace();
      const { workspace } = place;
      const listen = (name: string): void => {
        // Killed at once, so that its socket stays behind.
        const code = `require("net").createServer().listen(${JSON.stringify(name)}, () => process.kill(process.pid, 9))`;
        sh(workspace, `node -e '${code}' || true`);
      };
      listen("s.sock");
      sh(workspace, "echo plain > file.sock; echo 1 > becomes; mkfifo p; mkdir d; echo 1 > d/f");
      const thread = (await useRewind(place)).thread("t");
      const c0 = await thread.checkpoint();
      expect(c0.problems.map((one) => one.path)).toEqual(["s.sock"]);
      sh(workspace, "echo changed > file.sock; rm becomes; rm -r d; mkdir new");
      listen("becomes");
      listen("new/inner.sock");
      listen("d");
      const result = await thread.rewind({ to: "c0" });
      expect(fs.readFileSync(join(workspace, "file.sock"), "utf8")).toBe("plain\n");
      for (const name of ["s.sock", "becomes", "d", "new/inner.sock"]) {
        expect(fs.lstatSync(join(workspace, name)).isSocket(), name).toBe(true);
      }
      expect(result.notRestored.map((one) => one.path).sort()).toEqual(["becomes", "d", "new", "new/inner.sock"]);
    });

    test("a socket in a folder that replaced a file does not stop the rest", async () => {
      const place = makePlace();
      const { workspace } = place;
      sh(workspace, "echo 1 > x; echo 1 > f");
      const thread = (await useRewind(place)).thread("t");
      await thread.checkpoint();
      sh(workspace, "rm x; mkdir x; echo 2 > f");
      sh(
        workspace,
        `node -e 'require("net").createServer().listen("x/s", () => process.kill(process.pid, 9))' || true`,
      );
      const result = await thread.rewind({ to: "c0" });
      expect(fs.readFileSync(join(workspace, "f"), "utf8")).toBe("1\n");
      expect(result.notRestored.map((one) => one.path).sort()).toEqual(["x", "x/s"]);
    });

    test("sparse files come back, and come back sparse", async () => {
      const { place, thread } = await roundTrip(
        (root) => sh(root, "truncate -s 20M sparse; echo end >> sparse; truncate -s 5000 small"),
        (root) => sh(root, "rm sparse; truncate -s 21M sparse; echo other >> sparse; echo x > small"),
      );
      expect(packedBytes(place.store)).toBeLessThan(2 << 20);
      await thread.rewind({ to: "c0" });
      expect(fs.statSync(join(place.workspace, "sparse")).blocks * 512).toBeLessThan(1 << 20);
    });

    test("F-9: a small edit of a large file stores little", async () => {
      const place = makePlace();
      const large = Buffer.alloc((8 << 20) + 17);
      for (let at = 0; at < large.length; at += 4)
        large.writeUInt32LE((at * 2654435761) >>> 0, Math.min(at, large.length - 4));
      const file = join(place.workspace, "large");
      fs.writeFileSync(file, large);
      const thread = (await useRewind(place)).thread("t");
      const before = digest(place);
      await thread.checkpoint();
      const first = packedBytes(place.store);
      expect(first).toBeGreaterThan(8 << 20);
      const fd = fs.openSync(file, "r+");
      fs.writeSync(fd, "edit", 5 << 20);
      fs.closeSync(fd);
      const c1 = await thread.checkpoint();
      expect(packedBytes(place.store) - first).toBeLessThan(600 << 10);
      expect(c1.timings.bytes).toBeLessThan(600 << 10);
      await thread.rewind({ to: "c0" });
      expect(digest(place)).toEqual(before);
    });

    test("case 14: no file is too large to come back; files around the block size", async () => {
      const block = 256 << 10;
      const sizes = [block - 1, block, block + 1, 2 * block, 11 << 20];
      await roundTrip(
        (root) => {
          for (const size of sizes) fs.writeFileSync(join(root, `${size}`), Buffer.alloc(size, "abcdefg"));
        },
        (root) => {
          for (const size of sizes) fs.appendFileSync(join(root, `${size}`), "x");
        },
      );
    });
  });

  describe("hard links", () => {
    test("F-10, case 43: an edit in place goes back for every name, across folders", async () => {
      await roundTrip(
        (root) => sh(root, "mkdir -p a b/c; echo 1 > a/x; ln a/x b/c/x; ln a/x z; echo s > b/single"),
        (root) => sh(root, "echo 2 > b/c/x"),
      );
    });

    test("one name is deleted, replaced, added, or all are", async () => {
      const make = (root: string): void => void sh(root, "mkdir d; echo 1 > b; ln b d/m; ln b z");
      for (const change of [
        "rm b",
        "rm d/m",
        "rm z",
        "rm b; echo 2 > b",
        "rm z; echo 2 > z",
        "ln b a",
        "ln b a; echo 2 > b",
        "ln b a; rm b",
        "rm b d/m z",
        "rm b d/m z; echo 1 > b; echo 1 > z; mkdir d/m",
        "rm b; mkdir b; ln z b/in",
        "rm z; ln -s b z; echo 3 >> b",
        "cp -p b t; mv t b",
        "rm -r d",
        "mv d e",
        "mv b bb",
        "chmod 600 b",
        "rm b; ln -s z b",
      ]) {
        await roundTrip(make, (root) => sh(root, change));
      }
    });

    test("separate files become one inode, and two groups mix", async () => {
      await roundTrip(
        (root) => sh(root, "echo 1 > a; cp -p a b; echo 2 > c; ln c d; echo 3 > e; ln e f"),
        (root) => sh(root, "ln -f a b; ln -f c f; ln -f e d"),
      );
    });

    test("names of one symbolic link", async () => {
      await roundTrip(
        (root) => sh(root, "ln -s target a; ln a b; mkdir d; ln a d/c"),
        (root) => sh(root, "rm a; ln -s other a; rm d/c"),
      );
    });

    test("a name outside of the workspace keeps its content", async () => {
      const place = makePlace();
      fs.writeFileSync(join(place.base, "outside"), "1");
      fs.linkSync(join(place.base, "outside"), join(place.workspace, "inside"));
      const thread = (await useRewind(place)).thread("t");
      await thread.checkpoint();
      fs.writeFileSync(join(place.workspace, "inside"), "2");
      await thread.rewind({ to: "c0" });
      expect(fs.readFileSync(join(place.workspace, "inside"), "utf8")).toBe("1");
      expect(fs.readFileSync(join(place.base, "outside"), "utf8"), "not the agent's to take back through us").toBe("2");
    });
  });

  describe("trees", () => {
    test("deletions, renames and moves", async () => {
      await roundTrip(
        (root) => sh(root, "mkdir -p a/b/c d; echo 1 > a/b/c/f; echo 2 > a/g; echo 3 > d/h; echo 4 > keep"),
        (root) => sh(root, "mv a/b d/b2; rm -r a; mv d/h a; echo 5 > d/new; mv keep d/keep2"),
      );
    });

    test("case 17: what was deleted at the checkpoint is deleted after the rewind", async () => {
      await roundTrip(
        (root) => fs.writeFileSync(join(root, "keep"), "1"),
        (root) => fs.writeFileSync(join(root, "gone"), "2"),
      );
    });

    test("every kind becomes every other, at the top and deep inside", async () => {
      const kinds: Record<string, string> = {
        absent: ":",
        file: "echo content > $P",
        other: "echo different > $P; chmod 600 $P",
        empty: ": > $P",
        folder: "mkdir $P",
        tree: "mkdir -p $P/x/y; echo 1 > $P/x/y/f; ln -s f $P/x/y/l; mkdir $P/x/e",
        shaped: "mkdir -p $P/x; echo 2 > $P/x/y; ln -s x $P/z",
        symlink: "ln -s nowhere $P",
        linkToTree: "ln -s ../.. $P",
        hardlink: "ln anchor $P",
        ...(portable ? {} : { fifo: "mkfifo $P" }),
      };
      const pairs = Object.keys(kinds).flatMap((from) => Object.keys(kinds).map((to) => [from, to] as const));
      const commands = (side: 0 | 1): string =>
        pairs
          .flatMap((pair) =>
            ["", "deep/er/"].map((folder) => {
              const at = `${folder}${pair[0]}-${pair[1]}`;
              const act = (kinds[pair[side]] as string).replaceAll("$P", at);
              return side === 1 && pair[0] === pair[1] ? ":" : `${side === 1 ? `rm -rf ${at}; ` : ""}${act}`;
            }),
          )
          .join("\n");
      await roundTrip(
        (root) => sh(root, `echo anchor > anchor; mkdir -p deep/er\n${commands(0)}`),
        (root) => sh(root, commands(1)),
      );
    });

    test("F-8, case 45: names of any bytes", async () => {
      const names = [
        "漢字",
        '漢"字',
        "🙂",
        " leading",
        "trailing ",
        "new\nline",
        "tab\t",
        "*",
        "-x",
        "--",
        "\\",
        "'",
        '"quoted"',
        "\\n",
        "$(x)",
        "\x01\x7f",
        "\u00e9",
        "e\u0301",
        "#",
        "~",
        "n".repeat(255),
        "..x",
        "...",
      ].map((name) => Buffer.from(name));
      names.push(Buffer.from([0xff, 0xfe]), Buffer.from([0x61, 0x80]), Buffer.alloc(255, 0xe9), Buffer.from([0xc3]));
      const at = (root: string, ...parts: Buffer[]): Buffer =>
        parts.reduce((path, part) => Buffer.concat([path, Buffer.from("/"), part]), Buffer.from(root));
      await roundTrip(
        (root) => {
          for (const [i, name] of names.entries()) {
            if (i % 3 === 0) fs.writeFileSync(at(root, name), `${i}`);
            else if (i % 3 === 1) fs.symlinkSync(name, at(root, name));
            else {
              fs.mkdirSync(at(root, name));
              fs.writeFileSync(at(root, name, name), `${i}`);
            }
          }
        },
        (root) => {
          for (const [i, name] of names.entries()) {
            fs.rmSync(at(root, name), { recursive: true });
            if (i % 3 !== 0) fs.writeFileSync(at(root, name), `${i} changed`);
          }
          fs.mkdirSync(join(root, "created"));
          for (const name of names) fs.writeFileSync(at(join(root, "created"), name), "new");
        },
      );
    });

    test("F-14: hostile names are shown in a form that leads back to them", async () => {
      const place = makePlace();
      const name = Buffer.concat([Buffer.from('a\n"\\'), Buffer.from([0xff])]);
      const thread = (await useRewind(place)).thread("t");
      await thread.checkpoint();
      fs.writeFileSync(Buffer.concat([Buffer.from(`${place.workspace}/`), name]), "x");
      fs.writeFileSync(join(place.workspace, "é ü"), "x");
      await thread.checkpoint();
      const { files } = await thread.diff("c0", "c1");
      expect(files.added).toEqual(['"a\\n\\"\\\\\\xff"', "é ü"]);
    });

    test("deep trees", async () => {
      const deep = Array.from({ length: 150 }, (_, i) => `level-${i}`).join("/");
      await roundTrip(
        (root) => {
          fs.mkdirSync(join(root, deep), { recursive: true });
          fs.writeFileSync(join(root, deep, "f"), "1");
        },
        (root) => sh(root, "mv level-0 moved; echo 2 > moved/level-1/f"),
      );
    });

    exactly("paths longer than PATH_MAX", async () => {
      const place = makePlace();
      const name = "x".repeat(200);
      const build = `for i in $(seq 30); do mkdir ${name} && cd ${name}; done`;
      sh(place.workspace, `echo 1 > f; ${build}; echo deep > f`);
      const thread = (await useRewind(place)).thread("t");
      await thread.checkpoint();
      sh(place.workspace, "rm -rf x*; echo 2 > f");
      await thread.rewind({ to: "c0" });
      expect(sh(place.workspace, `for i in $(seq 30); do cd ${name}; done; cat f`)).toBe("deep\n");
      expect(fs.readFileSync(join(place.workspace, "f"), "utf8")).toBe("1\n");
    });

    test("3,000 entries in one folder; one changed entry stores little", async () => {
      const place = makePlace();
      const folder = join(place.workspace, "many");
      fs.mkdirSync(folder);
      for (let i = 0; i < 3000; i++) fs.writeFileSync(join(folder, `file-${i}`), `${i}`);
      const thread = (await useRewind(place)).thread("t");
      const before = digest(place);
      await thread.checkpoint();
      const first = packedBytes(place.store);
      fs.writeFileSync(join(folder, "file-1500"), "changed");
      await thread.checkpoint();
      expect(packedBytes(place.store) - first).toBeLessThan(first / 5);
      for (let i = 0; i < 3000; i += 3) fs.rmSync(join(folder, `file-${i}`));
      await thread.rewind({ to: "c0" });
      expect(digest(place)).toEqual(before);
    });

    test("case 11: ignored files are files like any other", async () => {
      await roundTrip(
        (root) =>
          sh(
            root,
            "git init -q .; echo '*.log' > .gitignore; echo 1 > a.log; mkdir node_modules; echo 1 > node_modules/m",
          ),
        (root) => sh(root, "echo secret.env >> .gitignore; echo s > secret.env; rm a.log; echo 2 > node_modules/m"),
      );
    });
  });

  describe("repositories", () => {
    const git = "git -c user.name=t -c user.email=t@example.com";
    const commit = `${git} commit -qm`;

    test("cases 33 to 35: .git folders, nested repositories and .git files", async () => {
      await roundTrip(
        (root) =>
          sh(
            root,
            `git init -q .; git init -q sub; git init -q other; mkdir linked; echo 'gitdir: ../sub/.git' > linked/.git
             echo 1 > sub/f; cd sub; git add f; ${commit} one; cd ..; echo 1 > other/f; echo 1 > linked/f`,
          ),
        (root) =>
          sh(
            root,
            `cd sub; echo 2 > f; git add f; ${commit} two; git branch side; cd ..; rm -rf other/.git; echo 2 > linked/f; rm linked/.git; git init -q linked`,
          ),
      );
    });

    test("a repository is sound after the rewind, with commits made since", async () => {
      const place = makePlace();
      sh(place.workspace, `git init -q .; echo 1 > f; git add f; ${commit} one`);
      const head = sh(place.workspace, "git rev-parse HEAD");
      const thread = (await useRewind(place)).thread("t");
      await thread.checkpoint();
      sh(place.workspace, `echo 2 > f; git add f; ${commit} two; git gc -q`);
      await thread.rewind({ to: "c0" });
      expect(sh(place.workspace, "git rev-parse HEAD")).toBe(head);
      expect(sh(place.workspace, "git fsck --strict 2>&1; git status --porcelain")).toBe("");
    });

    test("cases 37 and 38: nothing of git's environment or configuration takes part", async () => {
      const place = makePlace();
      const decoy = join(place.base, "decoy");
      sh(
        place.base,
        "git init -q decoy; mkdir home; printf '[commit]\\n\\tgpgsign = true\\n[core]\\n\\tautocrlf = true\\n' > home/.gitconfig",
      );
      sh(place.workspace, "git init -q .; printf 'a\\r\\n' > f");
      const seen = digestTree(decoy);
      const before = digest(place);
      const saved = { ...process.env };
      Object.assign(process.env, {
        GIT_DIR: join(decoy, ".git"),
        GIT_WORK_TREE: decoy,
        GIT_INDEX_FILE: join(decoy, ".git/index"),
        GIT_CONFIG_GLOBAL: join(place.base, "home/.gitconfig"),
      });
      try {
        const thread = (await useRewind(place)).thread("t");
        await thread.checkpoint();
        fs.writeFileSync(join(place.workspace, "f"), "b\n");
        await thread.rewind({ to: "c0" });
      } finally {
        for (const name of ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_CONFIG_GLOBAL"])
          delete process.env[name];
        Object.assign(process.env, saved);
      }
      expect(digest(place)).toEqual(before);
      expect(digestTree(decoy)).toEqual(seen);
    });
  });

  describe("without privileges", () => {
    /** A place that an ordinary user owns. */
    function ownedPlace(): Place {
      const place = makePlace();
      if (isRoot) {
        fs.chownSync(place.base, nobody, nobody);
        fs.chownSync(place.workspace, nobody, nobody);
      }
      return place;
    }
    const asUser = (place: Place, command: string): void => {
      execFileSync("bash", ["--norc", "-c", command], {
        cwd: place.workspace,
        stdio: "pipe",
        ...(isRoot ? { uid: nobody, gid: nobody } : {}),
      });
    };
    const run = (place: Place, steps: Parameters<typeof runSteps>[1]) =>
      runSteps({ ...place, env: { ...env, HOME: place.base }, ...(isRoot ? { uid: nobody } : {}) }, steps).results;

    test("F-12, case 47: an unreadable file is named and left alone; the rest comes back", () => {
      const place = ownedPlace();
      asUser(
        place,
        "echo bad > bad.txt; chmod 000 bad.txt; echo good > good.txt; mkdir locked; echo in > locked/f; chmod 000 locked",
      );
      const results = run(place, [
        { op: "open" },
        { op: "checkpoint" },
        { op: "sh", command: "echo edited > good.txt; echo new > new.txt" },
        { op: "rewind", to: "c0" },
        { op: "verify" },
      ]);
      expect(results[1]?.ok.problems.map((one: { path: string }) => one.path)).toEqual(["bad.txt", "locked"]);
      expect(results[1]?.ok.problems[0].reason).toContain("EACCES");
      expect(results[3]?.ok.notRestored).toEqual([]);
      expect(results[4]?.ok).toEqual([]);
      expect(sh(place.workspace, "cat good.txt; ls")).toBe("good\nbad.txt\ngood.txt\nlocked\n");
      expect(fs.statSync(join(place.workspace, "bad.txt")).mode & 0o777).toBe(0);
      if (isRoot) expect(sh(place.workspace, "cat bad.txt locked/f")).toBe("bad\nin\n");
    });

    test("what was unreadable at the checkpoint and changed since is named, never emptied", () => {
      const place = ownedPlace();
      asUser(place, "echo bad > bad.txt; chmod 000 bad.txt; echo gone > gone.txt; chmod 000 gone.txt");
      const results = run(place, [
        { op: "open" },
        { op: "checkpoint" },
        { op: "sh", command: "chmod 644 bad.txt; echo more >> bad.txt; rm -f gone.txt" },
        { op: "rewind", to: "c0" },
      ]);
      const { notRestored, restored } = results[3]?.ok ?? {};
      expect(notRestored.map((one: { path: string }) => one.path)).toEqual(["bad.txt", "gone.txt"]);
      expect(JSON.stringify(restored), "not listed as restored").not.toContain("bad.txt");
      expect(sh(place.workspace, "cat bad.txt")).toBe("bad\nmore\n");
    });

    test("files in read-only folders, also in a read-only workspace", () => {
      const place = ownedPlace();
      asUser(
        place,
        "mkdir -p ro/deep; echo 1 > ro/f; echo 1 > ro/deep/g; ln ro/f ro/h; echo 1 > top; chmod 555 ro/deep ro .",
      );
      const before = digest(place);
      const results = run(place, [
        { op: "open" },
        { op: "checkpoint" },
        {
          op: "sh",
          command:
            "chmod 755 . ro ro/deep; echo 2 > ro/f; rm ro/deep/g top; echo 3 > ro/deep/new; mkdir ro/d; chmod 555 ro/deep ro .",
        },
        { op: "rewind", to: "c0" },
        { op: "verify" },
      ]);
      expect(results[3]?.error, results[3]?.message).toBeUndefined();
      expect(results[3]?.ok.notRestored).toEqual([]);
      expect(results[4]?.ok).toEqual([]);
      expect(digest(place)).toEqual(before);
    });

    exactly("attributes of a read-only file", () => {
      const place = ownedPlace();
      asUser(place, "echo 1 > f");
      setXattr(place.workspace, "f", "user.note", "1");
      asUser(place, "chmod 444 f");
      const before = digest(place);
      const results = run(place, [
        { op: "open" },
        { op: "checkpoint" },
        { op: "sh", command: "rm -f f; echo 2 > f; chmod 444 f" },
        { op: "rewind", to: "c0" },
        { op: "checkpoint" },
      ]);
      expect(results[3]?.ok?.notRestored).toEqual([]);
      expect(digest(place)).toEqual(before);
      expect(getXattrs(place.workspace, "f")).toEqual({ "user.note": "1" });
      expect(results[4]?.ok.environment).toEqual(results[1]?.ok.environment);
    });

    test.skipIf(!isRoot)("what is marked immutable or append-only is reported, the rest comes back", async () => {
      const place = makePlace();
      const { workspace } = place;
      sh(workspace, "mkdir d e; echo 1 > d/f; echo 1 > file; echo 1 > log; echo 1 > run; cp /bin/sleep e/busy");
      const thread = (await useRewind(place)).thread("t");
      await thread.checkpoint();
      sh(workspace, "echo 2 > d/f; echo 2 > d/new; echo 2 > file; echo 2 >> log; echo 2 > run; echo x >> e/busy");
      const busy = spawn(join(workspace, "e/busy"), ["600"]);
      try {
        sh(workspace, "chattr +i d file; chattr +a log");
        const result = await thread.rewind({ to: "c0" });
        expect(sh(workspace, "cat d/f d/new file log run; cmp e/busy /bin/sleep")).toBe("2\n2\n2\n1\n2\n1\n");
        const named = new Map(result.notRestored.map((one) => [one.path, one.reason]));
        expect([...named.keys()].sort()).toEqual(["d", "d/f", "d/new", "file", "log"]);
        if (!portable) expect(named.get("file")).toContain("immutable");
      } finally {
        busy.kill("SIGKILL");
        sh(workspace, "chattr -i d file; chattr -a log");
      }
      expect((await thread.rewind({ to: "c0" })).notRestored).toEqual([]);
      expect(sh(workspace, "cat d/f file log; ls d")).toBe("1\n1\n1\nf\n");
    });

    test.skipIf(!isRoot)("what belongs to somebody else is reported, the rest comes back", () => {
      const place = ownedPlace();
      asUser(place, "echo 1 > mine; mkdir sub; echo 1 > sub/f");
      sh(place.workspace, "echo root > theirs; chmod 644 theirs");
      const results = run(place, [{ op: "open" }, { op: "checkpoint" }]);
      expect(results[1]?.error).toBeUndefined();
      sh(place.workspace, "echo 2 > mine; rm -r sub; mkdir sub; touch sub/theirs; chmod 755 sub");
      const after = run(place, [{ op: "open" }, { op: "rewind", to: "c0" }, { op: "verify" }]);
      expect(after[1]?.error, after[1]?.message).toBeUndefined();
      expect(after[1]?.ok.notRestored.map((one: { path: string }) => one.path)).toContain("sub/theirs");
      expect(after[2]?.ok).toEqual([]);
      expect(sh(place.workspace, "cat mine")).toBe("1\n");
    });
  });

  describe("a restore touches only what differs", () => {
    test("untouched files keep inode and change time; the root keeps its inode", async () => {
      const place = makePlace();
      const { workspace } = place;
      sh(
        workspace,
        "mkdir -p same d; echo 1 > same/f; ln -s f same/l; ln same/f same/h; echo 1 > d/untouched; echo 1 > d/edited",
      );
      const thread = (await useRewind(place)).thread("t");
      await thread.checkpoint();
      const watched = ["same", "same/f", "same/l", "same/h", "d/untouched"].map((name) => join(workspace, name));
      const before = watched.map(identity);
      const root = fs.statSync(workspace).ino;
      sh(workspace, "echo 2 > d/edited; echo 3 > d/new");
      await thread.rewind({ to: "c0" });
      expect(watched.map(identity)).toEqual(before);
      expect(fs.statSync(workspace).ino).toBe(root);
    });

    test("a rewind to the present state changes nothing at all", async () => {
      const place = makePlace();
      sh(place.workspace, "mkdir d; echo 1 > d/f");
      const thread = (await useRewind(place)).thread("t");
      await thread.checkpoint();
      const watched = ["d", "d/f"].map((name) => join(place.workspace, name));
      const before = watched.map(identity);
      await thread.rewind({ to: "c0" });
      expect(watched.map(identity)).toEqual(before);
    });

    test("F-11: equal states have equal snapshots, whatever the way to them", async () => {
      const place = makePlace();
      sh(place.workspace, "mkdir d; echo 1 > d/f; echo 2 > g; ln g h; touch -d 2020-01-01 d/f g d .");
      const thread = (await useRewind(place)).thread("t");
      const c0 = await thread.checkpoint();
      sh(place.workspace, "cp -a d e; rm -r d; mv e d; cp -p g t; ln -f t g; ln -f t h; rm t; touch -d 2020-01-01 .");
      const c1 = await thread.checkpoint();
      expect(c1.environment).toEqual(c0.environment);
    });

    test("a link that was put in place of a folder is not written through", async () => {
      const place = makePlace();
      sh(place.base, "mkdir outside; echo precious > outside/f; echo precious > outside/keep");
      sh(place.workspace, "mkdir -p d/sub; echo 1 > d/f; echo 1 > d/keep; echo 1 > d/sub/g");
      const seen = digestTree(join(place.base, "outside"));
      const thread = (await useRewind(place)).thread("t");
      const before = digest(place);
      await thread.checkpoint();
      sh(place.workspace, "rm -r d; ln -s ../outside d");
      await thread.rewind({ to: "c0" });
      expect(digest(place)).toEqual(before);
      expect(digestTree(join(place.base, "outside"))).toEqual(seen);
    });

    test("case 51: a source and what was built from it go back together", async () => {
      const place = makePlace();
      const { workspace } = place;
      const build = "test out/o -nt s || { mkdir -p out; cat s > out/o; echo built; }";
      fs.writeFileSync(join(workspace, "s"), "v1");
      sh(workspace, `touch -d 2020-01-01 s; ${build}`);
      const thread = (await useRewind(place)).thread("t");
      await thread.checkpoint();
      sh(workspace, `echo v2 > s; rm -r out; ${build}`);
      await thread.rewind({ to: "c0" });
      expect(sh(workspace, `${build}; cat out/o`)).toBe("v1");
    });
  });

  describe("checkpoints that lie between changes", () => {
    test("case 22: each point is its own state, also without a change between", async () => {
      const place = makePlace();
      const file = join(place.workspace, "f");
      const thread = (await useRewind(place)).thread("t");
      fs.writeFileSync(file, "v0");
      await thread.checkpoint();
      fs.writeFileSync(file, "v1");
      await thread.checkpoint();
      await thread.checkpoint();
      fs.writeFileSync(file, "v2");
      for (const [id, text] of [
        ["c0", "v0"],
        ["c1", "v1"],
        ["c2", "v1"],
      ] as const) {
        await thread.rewind({ to: id });
        expect(fs.readFileSync(file, "utf8")).toBe(text);
      }
    });

    test("case 28: a rewind can be taken back, with what was not checkpointed", async () => {
      const place = makePlace();
      const file = join(place.workspace, "f");
      const thread = (await useRewind(place)).thread("t");
      fs.writeFileSync(file, "v1");
      await thread.checkpoint({ context: { messages: ["one"] } });
      fs.writeFileSync(file, "v2");
      await thread.checkpoint({ context: { messages: ["one", "two"] } });
      fs.writeFileSync(file, "v3 by hand");
      const left = digest(place);
      await thread.rewind({ to: "c0" });
      const undone = await thread.undo();
      expect(digest(place)).toEqual(left);
      expect(undone.context.messages).toEqual(["one", "two"]);
      expect(await codeOf(thread.undo())).toBe("NOTHING_TO_UNDO");
    });

    test("case 18: what came after the checkpoint is gone after it", async () => {
      await roundTrip(
        (root) => fs.writeFileSync(join(root, "a.txt"), "1"),
        (root) => fs.writeFileSync(join(root, "b.txt"), "2"),
      );
    });
  });

  describe("damage", () => {
    /** The conversation and the files may lie in packs of their own. */
    const packsOf = (store: string): string[] =>
      fs
        .readdirSync(join(store, "packs"))
        .filter((name) => name.endsWith(".pack"))
        .map((name) => join(store, "packs", name));

    test("F-4, case 55: a damaged object is an error before anything is touched", async () => {
      const place = makePlace();
      sh(place.workspace, "echo stored-content-one > f; echo other > g; mkdir d; echo x > d/x");
      const rewind = await useRewind(place, { damaged: true });
      const thread = rewind.thread("t");
      await thread.checkpoint();
      sh(place.workspace, "echo changed > f; rm g; rm -r d; echo new > n");
      const before = digest(place);
      const pack = packsOf(place.store).find((one) => fs.readFileSync(one).includes("stored-content-one")) as string;
      const bytes = fs.readFileSync(pack);
      const at = bytes.indexOf("stored-content-one");
      expect(at).toBeGreaterThan(0);
      const fd = fs.openSync(pack, "r+");
      fs.writeSync(fd, "S", at);
      fs.closeSync(fd);
      expect(await codeOf(thread.rewind({ to: "c0" }))).toBe("STORE_CORRUPT");
      expect(digest(place)).toEqual(before);
      expect((await rewind.verify()).map((one) => one.where)).toEqual(["t/c0"]);
      expect(thread.head).toBe("c0");
    });

    test("case 56: a store whose bytes are gone is an error, never a deletion", async () => {
      const place = makePlace();
      sh(place.workspace, "echo 1 > f; echo 1 > g");
      const rewind = await useRewind(place, { damaged: true });
      const thread = rewind.thread("t");
      await thread.checkpoint();
      sh(place.workspace, "echo 2 > f; rm g");
      const before = digest(place);
      for (const pack of packsOf(place.store)) fs.truncateSync(pack, 8);
      expect(await codeOf(thread.rewind({ to: "c0" }))).toBe("STORE_CORRUPT");
      expect(digest(place)).toEqual(before);
    });

    test("case 15: a state that cannot be stored is marked unusable, and a rewind to it refused", async () => {
      const place = makePlace();
      sh(place.workspace, "echo 1 > f");
      const rewind = await useRewind(place);
      const thread = rewind.thread("t");
      const aborted = await thread.beginTurn({ messages: ["m"] }, { signal: AbortSignal.abort() });
      const c0 = await aborted.gate();
      expect(c0.state).toBe("not-restorable");
      expect(c0.reason).toBeTruthy();
      sh(place.workspace, "echo 2 > f");
      const before = digest(place);
      expect(await codeOf(thread.rewind({ to: "c0" }))).toBe("NOT_RESTORABLE");
      expect(digest(place)).toEqual(before);
      expect((await thread.context("c0")).messages).toEqual(["m"]);
    });

    test("case 56: a second instance neither clears nor changes what the first stored", async () => {
      const place = makePlace();
      sh(place.workspace, "echo 1 > f");
      const thread = (await useRewind(place)).thread("t");
      await thread.checkpoint();
      sh(place.workspace, "echo 2 > f");
      const other = runSteps({ ...place, env }, [{ op: "open" }]);
      expect(other.results[0]?.error).toBe("ENVIRONMENT_BUSY");
      await thread.rewind({ to: "c0" });
      expect(fs.readFileSync(join(place.workspace, "f"), "utf8")).toBe("1\n");
    });
  });
});

describe("where a workspace and a store may lie", () => {
  test("F-3, case 60: a store inside the workspace and a workspace inside the store are refused", async () => {
    const place = makePlace();
    expect(await codeOf(useRewind(place, { store: join(place.workspace, "s") }))).toBe("STORE_INSIDE_WORKSPACE");
    expect(fs.existsSync(join(place.workspace, "s"))).toBe(false);
    fs.mkdirSync(join(place.store, "w"), { recursive: true });
    expect(await codeOf(useRewind(place, { workspace: join(place.store, "w") }))).toBe("STORE_INSIDE_WORKSPACE");
    fs.symlinkSync(place.workspace, join(place.base, "alias"));
    expect(await codeOf(useRewind(place, { store: join(place.base, "alias", "s") }))).toBe("STORE_INSIDE_WORKSPACE");
  });

  test("case 60: the home folder, its parents and / are refused unless asked for", async () => {
    const place = makePlace();
    for (const workspace of ["/", homedir(), join(homedir(), "..")]) {
      expect(await codeOf(useRewind(place, { workspace }))).toMatch(/WORKSPACE_TOO_BROAD|STORE_INSIDE_WORKSPACE/);
    }
    const home = process.env.HOME;
    process.env.HOME = place.workspace;
    try {
      expect(await codeOf(useRewind(place))).toBe("WORKSPACE_TOO_BROAD");
      const thread = (await useRewind(place, { allowBroadWorkspace: true })).thread("t");
      expect((await thread.checkpoint()).state).toBe("captured");
    } finally {
      process.env.HOME = home;
    }
  });

  test("F-2: the store can be read by its owner only", async () => {
    const place = makePlace();
    fs.writeFileSync(join(place.workspace, "f"), "x");
    const rewind = await useRewind(place);
    await rewind.thread("t").checkpoint();
    const wrong = sh(place.store, "find . -type d ! -perm 700; find . ! -type d ! -perm 600");
    expect(wrong).toBe("");
    expect(sh(place.store, "find . -name '*.pack'")).not.toBe("");
  });
});
