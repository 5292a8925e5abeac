import * as fs from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openDirectory } from "../../src/environment/directory/directory.ts";
import { encodeEntry, entryFlag, entryType } from "../../src/environment/directory/entry.ts";
import type { Hash } from "../../src/store/objects.ts";
import { putSequence } from "../../src/store/sequence.ts";
import { openStore } from "../../src/store/store.ts";
import { lacking } from "../capabilities.ts";
import { digestTree } from "../helpers/digest.ts";
import { useFileSystem } from "../helpers/file-system.ts";
import { digestInodes, setAttribute } from "../helpers/inode.ts";
import { codeOf, endSession, makePlace, useRewind } from "../helpers/workspace.ts";
import { makeRandom, type Random } from "../power/log.ts";
import { destroy, onBothPaths, sh } from "./workload.ts";

const page = 4096;
const block = 256 << 10;

type Stretch = "hole" | "zeros" | "text";

/** A file of stretches, in pages; the last may end early. */
function plant(path: string, stretches: readonly (readonly [Stretch, number])[], cut = 0): void {
  const fd = fs.openSync(path, "w");
  const pages = stretches.reduce((sum, [, count]) => sum + count, 0);
  fs.ftruncateSync(fd, pages * page - cut);
  let at = 0;
  for (const [kind, count] of stretches) {
    const length = Math.min(count * page, pages * page - cut - at);
    if (kind !== "hole") fs.writeSync(fd, Buffer.alloc(length, kind === "zeros" ? 0 : `${at} `), 0, length, at);
    at += count * page;
  }
  fs.closeSync(fd);
}

const kinds = ["hole", "zeros", "text"] as const;

function plantRandom(path: string, random: Random): void {
  const most = [4, 64, 300][random(3)] as number;
  const stretches: [Stretch, number][] = [];
  for (let i = 1 + random(6); i > 0; i--) stretches.push([kinds[random(3)] as Stretch, 1 + random(most)]);
  plant(path, stretches, random(2) * random(page));
}

const seed = Number(process.env.AGENTREWIND_SEED ?? 1);

describe.each(["the disk", "tmpfs"] as const)("on %s", (where) => {
  const on = useFileSystem(where);
  const skip = lacking("native", "python") || on.lacks;

  /** The tree comes back after `change`, after that is undone, and after all was lost; what the change made as well. */
  async function comesBack(build: (root: string) => void, change: (root: string) => void): Promise<void> {
    const { workspace, store } = makePlace(on.parent);
    build(workspace);
    const before = digestInodes(workspace);
    const thread = (await useRewind({ base: "", workspace, store })).thread("t");
    const c0 = await thread.checkpoint();
    expect(digestInodes(workspace), "a capture changes nothing").toEqual(before);
    change(workspace);
    const after = digestInodes(workspace);
    expect(after).not.toEqual(before);
    expect((await thread.rewind({ to: "c0" })).notRestored).toEqual([]);
    expect(digestInodes(workspace), "changed and rewound").toEqual(before);
    await thread.undo();
    expect(digestInodes(workspace), "undone").toEqual(after);
    destroy(workspace);
    await thread.rewind({ to: "c0" });
    expect(digestInodes(workspace), "destroyed and rewound").toEqual(before);
    expect((await thread.checkpoint()).environment, "equal states have equal snapshots").toEqual(c0.environment);
  }

  test.skipIf(skip)(`F-9: files of holes, zeros and content, at random (seed ${seed})`, () => {
    const random = makeRandom(seed);
    return comesBack(
      (root) => {
        for (let i = 0; i < 40; i++) plantRandom(join(root, `f${i}`), random);
      },
      (root) => {
        for (let i = 0; i < 40; i += 2) plantRandom(join(root, `f${i}`), random);
      },
    );
  });

  test.skipIf(skip)("holes at every edge of a page, a block and a file", () =>
    comesBack(
      (root) => {
        plant(join(root, "one byte"), [["hole", 1]], page - 1);
        plant(join(root, "one page"), [["hole", 1]]);
        plant(join(root, "zero page"), [["zeros", 1]]);
        plant(join(root, "end in a page"), [["text", 1], ["hole", 1]], 100); // biome-ignore format: one line each
        plant(join(root, "starts"), [["hole", 1], ["text", 1]], 100); // biome-ignore format: one line each
        plant(join(root, "a block"), [["hole", 64]]);
        plant(join(root, "two blocks"), [["hole", 64], ["zeros", 64]]); // biome-ignore format: one line each
        plant(join(root, "over a block"), [["text", 63], ["hole", 2], ["text", 63]], 1); // biome-ignore format: one line each
        plant(join(root, "last page of a block"), [["text", 63], ["hole", 1]]); // biome-ignore format: one line each
        plant(join(root, "zeros to the end"), [["hole", 64], ["zeros", 1]], 4000); // biome-ignore format: one line each
        plant(join(root, "blocks and a byte"), [["text", 128], ["hole", 1]], page - 1); // biome-ignore format: one line each
      },
      (root) => sh(root, 'for f in *; do cp --sparse=always "$f" t; cat t > "$f"; echo x >> "$f"; done; rm t'),
    ),
  );

  test.skipIf(skip)("a file whose other blocks make up for its holes", () =>
    comesBack(
      (root) => {
        plant(join(root, "reserved"), [["text", 1], ["hole", 2], ["text", 1]]); // biome-ignore format: one line each
        sh(root, "fallocate -n -o 16384 -l 65536 reserved");
        expect(fs.statSync(join(root, "reserved")).blocks * 512).toBeGreaterThan(4 * page);
        plant(join(root, "attributes"), [["hole", 1]]);
        if (where === "the disk") setAttribute(join(root, "attributes"), "user.long", "x".repeat(3000));
      },
      (root) => sh(root, "cat reserved > t; mv t reserved; rm attributes"),
    ),
  );

  test.skipIf(skip)("room that is reserved and was never written is a hole; its content is exact", () =>
    comesBack(
      (root) => {
        sh(root, "fallocate -l 1M reserved; fallocate -l 1M begun; fallocate -l 100000 inside");
        sh(root, "yes begun | head -c 300000 | dd of=begun conv=notrunc status=none");
        sh(root, "head -c 4096 /dev/zero | dd of=inside bs=4096 seek=5 conv=notrunc status=none");
        sh(root, "yes punched | head -c 400000 > punched; fallocate -p -o 8192 -l 100000 punched");
        if (where === "the disk") sh(root, "yes zero | head -c 400000 > zeroed; fallocate -z -o 8192 -l 100000 zeroed");
        sh(root, "sync -f .");
      },
      (root) => sh(root, "echo x >> reserved; : > begun; rm inside; cat punched > t; mv t punched"),
    ),
  );

  test.skipIf(skip)("F-9: a change of holes alone is a change", async () => {
    const place = makePlace(on.parent);
    plant(join(place.workspace, "f"), [["text", 3], ["zeros", 100], ["text", 1]]); // biome-ignore format: one line
    plant(join(place.workspace, "g"), [["text", 1], ["zeros", 1]]); // biome-ignore format: one line
    const thread = (await useRewind(place)).thread("t");
    const states = [digestInodes(place.workspace)];
    await thread.checkpoint();
    for (const command of [
      "fallocate -p -o 16384 -l 8192 f; fallocate -p -o 4096 -l 4096 g",
      "head -c 4096 /dev/zero | dd of=f bs=4096 seek=4 conv=notrunc status=none",
    ]) {
      sh(place.workspace, command);
      states.push(digestInodes(place.workspace));
      expect((await thread.checkpoint()).changes?.changed).toContain("f");
    }
    expect(new Set(states.map((lines) => lines.join("\n"))).size).toBe(3);
    for (const at of [0, 2, 1]) {
      await thread.rewind({ to: `c${at}` });
      expect(digestInodes(place.workspace), `c${at}`).toEqual(states[at]);
    }
  });
});

onBothPaths("a comb of holes stores its data only, and gc keeps that", {}, async (times) => {
  const place = makePlace();
  const teeth = Array.from({ length: 256 }, (_, i): [Stretch, number] => [i % 8 === 0 ? "text" : "hole", 8]);
  plant(join(place.workspace, "comb"), teeth);
  const before = digestInodes(place.workspace, { times });
  const rewind = await useRewind(place);
  const thread = rewind.thread("t");
  const { timings } = await thread.checkpoint({ label: "comb" });
  expect(timings.bytes).toBeLessThan(256 * page + 64 * 1024);
  for (const text of ["one", "two", "three"]) {
    fs.writeFileSync(join(place.workspace, "comb"), text);
    await thread.checkpoint();
  }
  expect((await rewind.prune({ keepLast: 1 })).pruned.length).toBe(2);
  await thread.rewind({ to: "c0" });
  expect(digestInodes(place.workspace, { times })).toEqual(before);
});

describe.skipIf(lacking("native", "python", "loop"))("file systems that count in other units", () => {
  for (const options of ["-b 1024", "-b 4096 -I 256 -O inline_data"]) {
    test(`ext4 with ${options}: the content is exact`, async () => {
      const { base } = makePlace();
      const disk = join(base, "disk");
      fs.mkdirSync(disk);
      sh(base, `truncate -s 64M image && mkfs.ext4 -q ${options} image && mount -o loop image disk`);
      try {
        const place = { base: disk, workspace: join(disk, "workspace"), store: join(base, "store") };
        fs.mkdirSync(place.workspace);
        const random = makeRandom(seed);
        for (let i = 0; i < 12; i++) plantRandom(join(place.workspace, `f${i}`), random);
        sh(
          place.workspace,
          "echo tiny > tiny; head -c 50 /dev/zero > zeros; truncate -s 60 hole; truncate -s 5000 small",
        );
        sh(
          place.workspace,
          "truncate -s 9000 quarter; printf x | dd of=quarter bs=1 seek=5000 conv=notrunc status=none",
        );
        const before = digestTree(place.workspace);
        const rewind = await useRewind(place);
        await rewind.thread("t").checkpoint();
        destroy(place.workspace);
        await rewind.thread("t").rewind({ to: "c0" });
        expect(digestTree(place.workspace)).toEqual(before);
        await endSession(rewind);
      } finally {
        sh(base, "umount -l disk");
      }
    });
  }
});

describe.each(["native", "portable"] as const)("what is stored, %s", (way) => {
  if (way === "portable") {
    beforeAll(() => {
      process.env.AGENTREWIND_NATIVE = "off";
    });
    afterAll(() => {
      delete process.env.AGENTREWIND_NATIVE;
    });
  }
  const skip = lacking("python") || (way === "native" && lacking("native"));
  const times = way === "native" ? "ns" : "us";

  interface Planted {
    readonly name: string;
    readonly flags: number;
    readonly size: number;
    readonly content: Hash;
  }

  /** An environment whose store holds a snapshot of these files. */
  async function stored(files: (put: (bytes: Buffer) => Hash, list: (...items: Buffer[]) => Hash) => Planted[]) {
    const place = makePlace();
    const store = openStore(place.store);
    const { objects } = store.open("e1");
    const batch = objects.batch();
    const list = (...items: Buffer[]): Hash =>
      putSequence(batch, items.map((bytes) => ({ bytes, boundary: 1 }))); // biome-ignore format: one line
    const blank = {
      mode: 0o644,
      uid: 0,
      gid: 0,
      mtimeNs: 10n ** 18n,
      rdevMajor: 0,
      rdevMinor: 0,
      tail: "",
      xattrs: [],
    };
    const owner = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
    const entries = files((bytes) => batch.put(bytes), list).map((file) =>
      encodeEntry({ ...blank, ...owner, ...file, type: entryType.file }),
    );
    const root = { ...blank, ...owner, mode: 0o755, name: "", flags: 0, size: 0, type: entryType.directory };
    const snapshot = batch.put(
      Buffer.concat([Buffer.from([3, 15]), encodeEntry({ ...root, content: list(...entries) })]),
    );
    await batch.commit();
    const environment = openDirectory({
      root: place.workspace,
      objects,
      id: "e1",
      exclude: [],
      cacheFile: join(place.base, "cache"),
      isHeld: () => false,
      raiseGeneration: () => 1,
      watches: false,
    });
    const manifest = { files: snapshot.toString("hex"), processes: null };
    return { place, restore: () => environment.restore(manifest), close: () => store.close() };
  }

  const text = Buffer.alloc(page, "text");
  const zeros = Buffer.alloc(page);
  const data = (hash: Hash): Buffer => Buffer.concat([Buffer.from([1]), hash]);
  const ranges = (root: string, name: string): string =>
    /data (\S*)/.exec(digestInodes(root).find((line) => line.includes(`'${name}'`)) as string)?.[1] ?? "";

  test.skipIf(skip)(
    "F-1: entries of format 3 come back as they did: pages of zeros in sparse files are holes",
    async () => {
      const { place, restore, close } = await stored((put, list) => {
        const mixed = Buffer.concat([text, zeros, text, zeros.subarray(1)]);
        const full = Buffer.concat([zeros, Buffer.alloc(block - page, "full")]);
        const sequence = list(data(put(full)), Buffer.from([0]), data(put(text)));
        return [
          { name: "dense", flags: 0, size: mixed.length, content: put(mixed) },
          { name: "large", flags: entryFlag.blocks | entryFlag.sparse, size: 2 * block + page, content: sequence },
          { name: "small", flags: entryFlag.sparse, size: mixed.length, content: put(mixed) },
        ];
      });
      expect((await restore()).notRestored).toEqual([]);
      const read = (name: string): Buffer => fs.readFileSync(join(place.workspace, name));
      expect(read("small").equals(read("dense"))).toBe(true);
      expect(read("small").equals(Buffer.concat([text, zeros, text, zeros.subarray(1)]))).toBe(true);
      expect(read("large").length).toBe(2 * block + page);
      expect(ranges(place.workspace, "dense")).toBe(`0-${4 * page - 1}`);
      expect(ranges(place.workspace, "small")).toBe(`0-${page},${2 * page}-${3 * page}`);
      expect(ranges(place.workspace, "large")).toBe(`${page}-${block},${2 * block}-${2 * block + page}`);
      close();
    },
  );

  test.skipIf(skip)(
    "a block of a kind that this version does not know is refused, and nothing is touched",
    async () => {
      const { place, restore, close } = await stored((put, list) => [
        {
          name: "f",
          flags: entryFlag.blocks,
          size: page,
          content: list(Buffer.concat([Buffer.from([9]), put(text), Buffer.alloc(8)])),
        },
      ]);
      fs.writeFileSync(join(place.workspace, "mine"), "mine");
      const before = digestTree(place.workspace, { times });
      expect(await codeOf(restore())).toBe("STORE_CORRUPT");
      expect(digestTree(place.workspace, { times })).toEqual(before);
      close();
    },
  );

  test.skipIf(skip)("a map of more or fewer pages than are stored is damage", async () => {
    for (const pages of [1, 7]) {
      const { place, restore, close } = await stored((put, list) => {
        const map = Buffer.from([pages, 0, 0, 0, 0, 0, 0, 0]);
        const content = list(Buffer.concat([Buffer.from([2]), put(Buffer.concat([text, text])), map]));
        return [{ name: "f", flags: entryFlag.blocks, size: 8 * page, content }];
      });
      expect(await codeOf(restore()), `${pages}`).toBe("STORE_CORRUPT");
      expect(fs.readdirSync(place.workspace)).toEqual([]);
      close();
    }
  });
});
