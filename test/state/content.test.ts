// What files hold: holes, sizes beyond 4 GiB, changes that hide behind old sizes and times.
import * as fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { lacking } from "../capabilities.ts";
import { digestInodes } from "../helpers/inode.ts";
import { makePlace, useRewind } from "../helpers/workspace.ts";
import { onBothPaths, sh, workload } from "./workload.ts";

const MiB = 1 << 20;

/** Writes text at places of a file whose rest is a hole. */
function sparse(path: string, size: number, ...places: number[]): void {
  const fd = fs.openSync(path, "w");
  fs.ftruncateSync(fd, size);
  for (const at of places) fs.writeSync(fd, Buffer.alloc(4096, `data at ${at} `), 0, Math.min(4096, size - at), at);
  fs.closeSync(fd);
}

workload("holes at the start, between data and at the end", {
  build(root) {
    sparse(join(root, "start"), 3 * MiB, 3 * MiB - 4096);
    sparse(join(root, "middle"), 3 * MiB, 0, 4096, 2 * MiB);
    sparse(join(root, "end"), 3 * MiB, 0);
    sparse(join(root, "all"), 3 * MiB + 17);
    sparse(join(root, "odd-end"), 2 * MiB + 100, 2 * MiB);
  },
  change: (root) => sh(root, "echo x >> start; : > middle; rm end; echo y > all; truncate -s 1M odd-end"),
});

workload("holes of one page, and files that are smaller than a block", {
  build(root) {
    sparse(join(root, "page"), 3 * 4096, 0, 2 * 4096);
    sparse(join(root, "small"), 5000);
    sparse(join(root, "comb"), 64 * 4096, ...Array.from({ length: 32 }, (_, i) => i * 2 * 4096));
  },
  change: (root) => sh(root, "echo x >> page; echo x > small; rm comb; echo x > comb"),
});

workload("zeros that were written are data, beside holes too", {
  guessedHoles: true,
  build(root) {
    fs.writeFileSync(join(root, "zeros"), Buffer.alloc(MiB));
    sparse(join(root, "both"), 4 * MiB, 0);
    const fd = fs.openSync(join(root, "both"), "r+");
    fs.writeSync(fd, Buffer.alloc(MiB), 0, MiB, 2 * MiB);
    fs.closeSync(fd);
  },
  change: (root) => sh(root, "rm zeros both; echo x > zeros; echo x > both"),
});

onBothPaths(
  "a file larger than 4 GiB, with data on both sides of the limit",
  // Without the addon holes are read.
  { nativeOnly: process.env.AGENTREWIND_LONG === undefined },
  async (times) => {
    const place = makePlace();
    const file = join(place.workspace, "huge");
    sparse(file, 4096 * MiB + 3 * MiB, 0, 4096 * MiB - 4096, 4096 * MiB, 4098 * MiB);
    const thread = (await useRewind(place)).thread("t");
    const before = digestInodes(place.workspace, { times });
    await thread.checkpoint();
    const fd = fs.openSync(file, "r+");
    fs.writeSync(fd, "changed", 4097 * MiB);
    fs.closeSync(fd);
    expect((await thread.rewind({ to: "c0" })).notRestored).toEqual([]);
    expect(digestInodes(place.workspace, { times })).toEqual(before);
  },
);

// Of the long form only: it writes all of them.
if (process.env.AGENTREWIND_LONG !== undefined)
  test.skipIf(lacking("python"))("a file larger than 4 GiB without holes", async () => {
    const place = makePlace();
    sh(place.workspace, "head -c 4300000000 /dev/urandom > huge");
    const thread = (await useRewind(place)).thread("t");
    const before = digestInodes(place.workspace);
    await thread.checkpoint();
    sh(place.workspace, "printf changed | dd of=huge bs=1 seek=4299999000 conv=notrunc status=none");
    expect((await thread.checkpoint()).timings.bytes).toBeLessThan(MiB);
    expect((await thread.rewind({ to: "c0" })).notRestored).toEqual([]);
    expect(digestInodes(place.workspace)).toEqual(before);
  });

workload("content and size change and the time is put back", {
  build(root) {
    fs.writeFileSync(join(root, "same-size"), "one");
    fs.writeFileSync(join(root, "grown"), "one");
    fs.writeFileSync(join(root, "in-place"), Buffer.alloc(MiB, "a"));
    sh(root, "touch -d 2001-02-03 *; touch -d 2001-02-03 .");
  },
  change: (root) =>
    sh(
      root,
      `for f in *; do touch -r $f ../$f.time; done
       printf two > same-size; printf four > grown; printf b | dd of=in-place bs=1 seek=777777 conv=notrunc status=none
       for f in *; do touch -r ../$f.time $f; rm ../$f.time; done; touch -d 2001-02-03 .`,
    ),
});

workload("a file is born again under its name: other content, or the same", {
  build: (root) =>
    sh(
      root,
      "mkdir d; for f in other same moved d/deep; do echo one > $f; touch -d 2001-02-03 $f; done; echo one > in",
    ),
  change: (root) =>
    sh(
      root,
      `rm other d/deep; echo two > other; echo two > d/deep; touch -d 2001-02-03 other d/deep
       cp -p same t; mv t same; mv moved kept; echo one > moved; touch -r kept moved; echo 2 > in`,
    ),
});

workload("empty files and empty folders", {
  build: (root) => sh(root, "mkdir -p e/e/e f; : > empty; : > f/empty; mkdir -p .git/refs/tags"),
  change: (root) =>
    sh(root, "rm -r e .git; rmdir e 2>/dev/null; rm f/empty; mkdir f/empty; echo 1 > empty; mkdir -p n/n"),
});
