// Names that share an inode, and links that lead anywhere or nowhere.
import * as fs from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { digestInodes, setAttribute } from "../helpers/inode.ts";
import { endSession, makePlace, useRewind } from "../helpers/workspace.ts";
import { onBothPaths, sh, workload } from "./workload.ts";

workload("a group of hard links across folders, deep and at the top", {
  build: (root) =>
    sh(root, "mkdir -p a/b/c z/y; echo 1 > a/b/c/one; ln a/b/c/one z/y/two; ln a/b/c/one three; echo 2 > o"),
  change: (root) => sh(root, "echo changed >> z/y/two; rm three; ln o three; mv a/b/c/one a/one; chmod 600 a/one"),
});

workload("two groups exchange members, and a group falls apart", {
  build: (root) =>
    sh(
      root,
      `mkdir -p p q; echo 1 > p/a; for i in $(seq 20); do ln p/a q/a$i; done; echo 2 > q/b; for i in $(seq 20); do ln q/b p/b$i; done
       echo 3 > c; ln c p/c; ln c q/c`,
    ),
  change: (root) => sh(root, "ln -f q/b q/a7; ln -f p/a p/b3; cp -p p/c t; mv t p/c; cp c t; mv t q/c"),
});

workload("a group's first folder goes, its kinds change", {
  build: (root) => sh(root, "mkdir -p a/x b; echo 1 > a/x/f; ln a/x/f b/f; ln a/x/f f"),
  change: (root) => sh(root, "rm -r a; ln -s b a; rm b/f; mkdir b/f; ln f b/f/f; echo 2 > f"),
});

workload("attributes and modes belong to the inode, not to a name", {
  needs: ["attributes"],
  nativeOnly: true,
  build(root) {
    sh(root, "mkdir d; echo 1 > a; ln a d/b; chmod 4751 a");
    setAttribute(join(root, "a"), "user.note", "one");
  },
  change(root) {
    setAttribute(join(root, "d/b"), "user.note", "two");
    sh(root, "chmod 600 d/b");
  },
});

workload("names that share a symbolic link", {
  build: (root) => sh(root, "mkdir d; ln -s nowhere a; ln a d/b"),
  change: (root) => sh(root, "rm a; ln -s elsewhere a; rm d/b; ln a d/b"),
});

workload("names that share a FIFO or a device", {
  needs: ["root"],
  nativeOnly: true,
  build: (root) => sh(root, "mkdir d; mkfifo p; ln p d/p; mknod n c 1 3; ln n d/n"),
  change: (root) => sh(root, "rm d/p n; mkfifo d/p; mknod n c 1 5"),
});

workload("symbolic links that dangle, loop, are absolute or lead out", {
  build: (root) =>
    sh(
      root,
      `echo t > t; mkdir -p d/d; ln -s none dangling; ln -s loop loop; ln -s b a; ln -s a b; ln -s "$PWD/t" absolute; ln -s "$PWD" d/d/root
       ln -s ../../../../../../etc/passwd out; ln -s / slash; ln -s . d/dot; ln -s .. d/dotdot; ln -s ${"x".repeat(4000)} long; ln -s $'\\xff\\n' bytes`,
    ),
  change: (root) =>
    sh(
      root,
      "for l in dangling loop a absolute out slash long bytes; do rm $l; ln -s t $l; done; rm d/d/root; cp t d/d/root",
    ),
});

onBothPaths("a hard link to a name outside of the workspace", {}, async (times) => {
  const place = makePlace();
  const { base, workspace } = place;
  sh(
    base,
    "mkdir outside; for f in edited replaced untouched; do echo 1 > outside/$f; ln outside/$f workspace/$f; done",
  );
  const thread = (await useRewind(place)).thread("t");
  const before = digestInodes(workspace, { times });
  const inode = fs.statSync(join(workspace, "untouched")).ino;
  await thread.checkpoint();
  sh(workspace, "echo 2 > edited; rm replaced; echo 2 > replaced");
  const outside = digestInodes(join(base, "outside"), { times });
  await thread.rewind({ to: "c0" });
  expect(digestInodes(workspace, { times })).toEqual(before);
  expect(digestInodes(join(base, "outside"), { times }), "what lies outside is nobody's to take back").toEqual(outside);
  expect(fs.statSync(join(workspace, "untouched")).ino, "still the name of one file with the outside").toBe(inode);
});

onBothPaths(
  "a file with names outside of the workspace is replaced: that is told, and they keep what was there",
  {},
  async () => {
    const place = makePlace();
    const { workspace } = place;
    sh(
      workspace,
      "mkdir d; for f in out both inside alone; do echo 1 > $f; done; ln out ../out; ln both ../both; ln both d/both; ln inside d/inside",
    );
    const thread = (await useRewind(place)).thread("t");
    await thread.checkpoint();
    sh(workspace, "for f in out both inside alone; do echo 2 > $f; done; echo new > new; ln new ../new");
    await thread.checkpoint();
    const plan = await thread.rewind({ to: "c0", dryRun: true });
    const back = await thread.rewind({ to: "c0" });
    const reason = "went back; names outside of the workspace still lead to the file that was there";
    expect(back.notRestored).toEqual(["both", "out", "d/both"].map((path) => ({ path, reason })));
    expect(plan.notRestored).toEqual(back.notRestored);
    expect(back.restored.changed).toEqual(["alone", "both", "d/inside", "out"]);
    expect(
      sh(workspace, "cat out both d/both inside d/inside alone ../out ../both ../new; stat -c %h out both inside"),
    ).toBe("1\n1\n1\n1\n1\n1\n2\n2\nnew\n1\n2\n2\n");
    expect((await thread.rewind({ to: "c0" })).notRestored).toEqual([]);
  },
);

onBothPaths("names outside of the workspace are known to the next process as well", {}, async () => {
  const place = makePlace();
  sh(place.workspace, "echo 1 > f; ln f ../f");
  const first = await useRewind(place);
  await first.thread("t").checkpoint();
  sh(place.workspace, "echo 2 > f");
  await first.thread("t").checkpoint();
  await new Promise((resolve) => setTimeout(resolve, 100));
  await first.thread("t").checkpoint();
  await endSession(first);
  const { notRestored } = await (await useRewind(place)).thread("t").rewind({ to: "c0" });
  expect(notRestored.map((one) => one.path)).toEqual(["f"]);
});
