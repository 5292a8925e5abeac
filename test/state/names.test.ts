// Where things lie: swaps of kinds, names of any bytes, depth, and folders that are made again while somebody stands in them.
import { spawn } from "node:child_process";
import { once } from "node:events";
import * as fs from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { digestInodes } from "../helpers/inode.ts";
import { makePlace, useRewind } from "../helpers/workspace.ts";
import { destroy, onBothPaths, sh, workload } from "./workload.ts";

const levels = Array.from({ length: 12 }, (_, i) => `l${i}`);
const at = (depth: number): string => levels.slice(0, depth + 1).join("/");

for (const depth of [0, 5, 11]) {
  const folder = at(depth);
  const becomes: Record<string, string> = {
    file: `echo file > ${folder}`,
    link: `ln -s "$PWD/../other" ${folder}`,
    loop: `ln -s ${levels[depth]} ${folder}`,
    exchanged: `mkdir -p ${folder}; echo 1 > ${folder}/l${depth + 1}; mkdir ${folder}/f`,
    back: `mv keep/moved ${folder}; echo new > ${folder}/new`,
    gone: ":",
  };
  workload(`in deep trees, the folder at level ${depth} becomes a file, links, a tree of other kinds`, {
    build: (root) =>
      sh(
        root,
        `mkdir other; echo o > other/f; for t in ${Object.keys(becomes).join(" ")}; do
         mkdir -p $t/${at(11)}; echo deep > $t/${at(11)}/f; echo x > $t/${at(11)}/x; done`,
      ),
    change(root) {
      for (const [tree, make] of Object.entries(becomes)) {
        sh(join(root, tree), `mkdir keep; mv ${folder} keep/moved; ${make}`);
      }
    },
  });
}

workload("names that differ in case only, renamed and exchanged", {
  build: (root) =>
    sh(root, "echo 1 > Readme; echo a > a; echo A > A; mkdir -p Dir/Sub dir; echo 1 > Dir/Sub/f; echo 2 > dir/F"),
  change: (root) =>
    sh(root, "mv Readme README; mv a t; mv A a; mv t A; mv Dir DIR; mv DIR/Sub DIR/sub; mv dir/F dir/f; mv dir Dir"),
});

const names = ["new\nline", "\n", "tab\t", " ", "漢字\u202e", "n".repeat(255), "-rf", "*", "\\"].map((name) =>
  Buffer.from(name),
);
names.push(Buffer.from([0xff, 0xfe]), Buffer.from([0x80]), Buffer.alloc(255, 0xe9), Buffer.from([0xed, 0xa0, 0x80]));
const below = (root: string, ...parts: Buffer[]): Buffer =>
  parts.reduce((path, part) => Buffer.concat([path, Buffer.from("/"), part]), Buffer.from(root));

workload("names with newlines, of invalid UTF-8, of 255 bytes: files, folders, links and hard links", {
  build(root) {
    for (const name of names) {
      fs.mkdirSync(below(root, name));
      fs.writeFileSync(below(root, name, name), name);
      fs.linkSync(below(root, name, name), below(root, name, Buffer.from("hard")));
      fs.symlinkSync(name, below(root, name, Buffer.from("soft")));
    }
  },
  change(root) {
    for (const [i, name] of names.entries()) {
      if (i % 2 === 0) fs.writeFileSync(below(root, name, name), "changed");
      else fs.renameSync(below(root, name), below(root, Buffer.from(`moved-${i}`)));
      fs.writeFileSync(
        below(root, name.length < 250 ? Buffer.concat([name, Buffer.from("2")]) : Buffer.from(`n${i}`)),
        "new",
      );
    }
  },
});

const long = "x".repeat(200);
const dig = (end: string): string => `for i in $(seq 30); do mkdir -p ${long}; cd ${long}; done; ${end}`;

workload("paths beyond PATH_MAX", {
  nativeOnly: true,
  build: (root) => sh(root, `echo 1 > f; ${dig("echo deep > f; ln f g; ln -s f l; mkdir e")}`),
  change: (root) => sh(root, `echo 2 > f; ${dig("echo changed > f; rm l; rmdir e; mkdir n; echo 1 > n/n")}`),
});

onBothPaths("what lies beyond PATH_MAX never stops the rest", {}, async (times) => {
  const place = makePlace();
  const { workspace } = place;
  sh(workspace, `echo 1 > f; ${dig("echo deep > f")}`);
  const thread = (await useRewind(place)).thread("t");
  const c0 = await thread.checkpoint();
  expect(c0.state).toBe("captured");
  sh(workspace, `echo 2 > f; ${dig("echo changed > f")}`);
  const back = await thread.rewind({ to: c0.id });
  expect(sh(workspace, "cat f")).toBe("1\n");
  const deep = sh(workspace, `${dig("cat f")}`);
  if (times === "ns") expect(deep).toBe("deep\n");
  else {
    expect(deep, "left alone").toBe("changed\n");
    expect([...c0.problems, ...back.notRestored].map((one) => one.path.startsWith(long))).toContain(true);
  }
});

onBothPaths(
  "a shell stands in a folder: in the root, in one that stays, in one that was deleted and made again",
  {},
  async (times) => {
    const place = makePlace();
    const { workspace } = place;
    sh(workspace, "mkdir stays again; echo 1 > f; echo 1 > stays/f; echo 1 > again/f");
    const thread = (await useRewind(place)).thread("t");
    const before = digestInodes(workspace, { times });
    await thread.checkpoint();
    const shells = ["", "stays", "again"].map((folder) =>
      spawn("bash", ["--norc", "-c", "read line; cat f; pwd -P"], {
        cwd: join(workspace, folder),
        stdio: ["pipe", "pipe", "pipe"],
      }),
    );
    sh(workspace, "echo 2 > f; echo 2 > stays/f; rm -r again; mkdir again; echo 2 > again/f");
    await thread.rewind({ to: "c0" });
    expect(digestInodes(workspace, { times })).toEqual(before);
    const said = await Promise.all(
      shells.map(async (shell) => {
        let text = "";
        shell.stdout.on("data", (part) => {
          text += part;
        });
        shell.stdin.end("go\n");
        await once(shell, "close");
        return text;
      }),
    );
    expect(said.slice(0, 2)).toEqual([`1\n${workspace}\n`, `1\n${workspace}/stays\n`]);
    expect(said[2], "its own folder is gone for good").not.toMatch(/^[12]$/m);
  },
);

onBothPaths("the workspace itself is deleted and made again", {}, async (times) => {
  const place = makePlace();
  const { workspace } = place;
  sh(workspace, "mkdir -p d/e; echo 1 > d/f; ln d/f d/g; echo 1 > h; chmod 750 .");
  const thread = (await useRewind(place)).thread("t");
  const before = digestInodes(workspace, { times });
  const c0 = await thread.checkpoint();
  // The same names and times in other inodes, as a rebuild or a checkout makes them.
  sh(place.base, "cp -a workspace copy; rm -r workspace; mv copy workspace; echo 2 > workspace/d/f");
  const c1 = await thread.checkpoint();
  expect(c1.state).toBe("captured");
  const changed = digestInodes(workspace, { times });
  expect((await thread.rewind({ to: c0.id })).notRestored).toEqual([]);
  expect(digestInodes(workspace, { times })).toEqual(before);
  await thread.rewind({ to: c1.id });
  expect(digestInodes(workspace, { times })).toEqual(changed);
  fs.rmSync(workspace, { recursive: true });
  await thread.rewind({ to: c0.id });
  expect(digestInodes(workspace, { times })).toEqual(before);
  destroy(workspace);
  await thread.rewind({ to: c1.id });
  expect(digestInodes(workspace, { times })).toEqual(changed);
});
