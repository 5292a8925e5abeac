// Many checkpoints and large files: what is stored grows with the change, not with the tree.
import { randomBytes } from "node:crypto";
import * as fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { digestTree } from "../helpers/digest.ts";
import { endSession, makePlace, type Place, useRewind } from "../helpers/workspace.ts";

const KiB = 1 << 10;
const MiB = 1 << 20;
const long = process.env.AGENTREWIND_LONG !== undefined;

const stored = ({ store }: Place): { packs: number; catalog: number } => {
  const folder = join(store, "packs");
  const sizes = fs.readdirSync(folder).map((name) => fs.statSync(join(folder, name)).size);
  const catalog = ["catalog.db", "catalog.db-wal"].map(
    (name) => fs.statSync(join(store, name), { throwIfNoEntry: false })?.size ?? 0,
  );
  return { packs: sizes.reduce((a, b) => a + b, 0), catalog: Math.max(...catalog) };
};

/** `folders` times 20 small files. */
function plant(place: Place, folders: number): void {
  for (let folder = 0; folder < folders; folder++) {
    fs.mkdirSync(join(place.workspace, `d${folder}`));
    for (let file = 0; file < 20; file++)
      fs.writeFileSync(join(place.workspace, `d${folder}/f${file}`), randomBytes(2 * KiB));
  }
}
const edit = (place: Place, folders: number, i: number): void =>
  fs.writeFileSync(join(place.workspace, `d${i % folders}/f${i % 20}`), `edit ${i}`);

test("a thousand checkpoints: each stores its change; any of them comes back", async () => {
  const place = makePlace(fs.existsSync("/dev/shm") ? "/dev/shm" : undefined);
  const folders = 10;
  plant(place, folders);
  let rewind = await useRewind(place);
  let thread = rewind.thread("t");
  /** Closing moves all of the log to the catalog: how long it grows meanwhile is the machine's load. */
  const measure = async (): Promise<ReturnType<typeof stored>> => {
    await endSession(rewind);
    const sizes = stored(place);
    rewind = await useRewind(place);
    thread = rewind.thread("t");
    return sizes;
  };
  await thread.checkpoint();
  const first = await measure();
  const states = new Map<string, string[]>();
  let reported = 0;
  for (let i = 1; i <= 1000; i++) {
    edit(place, folders, i);
    const made = await thread.checkpoint();
    reported += made.timings.bytes;
    if (i === 1 || i === 500 || i === 777) states.set(made.id, digestTree(place.workspace));
  }
  const last = await measure();
  const tree = folders * 20 * 2 * KiB;
  expect((last.packs - first.packs) / 1000).toBeLessThan(8 * KiB);
  expect((last.packs - first.packs) / 1000, "the tree itself is shared").toBeLessThan(tree / 40);
  expect((last.catalog - first.catalog) / 1000).toBeLessThan(8 * KiB);
  expect(reported, "the checkpoints say what they wrote").toBeGreaterThanOrEqual(last.packs - first.packs);
  for (const [id, state] of states) {
    expect((await thread.rewind({ to: id })).notRestored).toEqual([]);
    expect(digestTree(place.workspace)).toEqual(state);
  }
});

test("a tree of ten times the size stores no more for the same change", async () => {
  const growth: number[] = [];
  for (const folders of [8, 80]) {
    const place = makePlace();
    plant(place, folders);
    const thread = (await useRewind(place)).thread("t");
    await thread.checkpoint();
    const first = stored(place).packs;
    for (let i = 0; i < 20; i++) {
      edit(place, folders, i);
      await thread.checkpoint();
    }
    growth.push((stored(place).packs - first) / 20);
  }
  const [small, large] = growth as [number, number];
  expect(large).toBeLessThan(1.5 * small + 4 * KiB);
});

test("what is moved, copied or put back stores no content twice", async () => {
  const place = makePlace();
  plant(place, 2);
  fs.writeFileSync(join(place.workspace, "large"), randomBytes(3 * MiB));
  const thread = (await useRewind(place)).thread("t");
  await thread.checkpoint();
  const first = stored(place).packs;
  fs.renameSync(join(place.workspace, "d0"), join(place.workspace, "moved"));
  fs.cpSync(join(place.workspace, "d1"), join(place.workspace, "copied"), { recursive: true });
  fs.copyFileSync(join(place.workspace, "large"), join(place.workspace, "copied/large"));
  await thread.checkpoint();
  await thread.rewind({ to: "c0" });
  await thread.rewind({ to: "c1" });
  expect(stored(place).packs - first).toBeLessThan(64 * KiB);
});

test("a small change inside a large file stores at most 1 MiB", async () => {
  const place = makePlace();
  const file = join(place.workspace, "large");
  const size = (long ? 1024 : 64) * MiB + 12345;
  const part = randomBytes(MiB);
  const fd = fs.openSync(file, "w+");
  for (let at = 0; at < size; at += MiB) {
    part.writeUInt32LE(at / MiB, 0);
    part.writeUInt32LE(at / MiB, 300_000);
    part.writeUInt32LE(at / MiB, 600_000);
    part.writeUInt32LE(at / MiB, 900_000);
    fs.writeSync(fd, part, 0, Math.min(MiB, size - at), at);
  }
  const thread = (await useRewind(place)).thread("t");
  await thread.checkpoint();
  expect(stored(place).packs).toBeGreaterThan(size);
  const changes: Record<string, () => void> = {
    "some bytes inside": () => fs.writeSync(fd, "changed", Math.floor(size / 3)),
    "across a block's end": () => fs.writeSync(fd, "changed", 40 * 256 * KiB - 3),
    "the first byte": () => fs.writeSync(fd, "c", 0),
    "bytes behind the end": () => fs.writeSync(fd, "more", size),
    "cut at the end": () => fs.ftruncateSync(fd, size - 1),
  };
  for (const [what, change] of Object.entries(changes)) {
    change();
    const before = stored(place).packs;
    const made = await thread.checkpoint();
    const grown = stored(place).packs - before;
    expect(grown, what).toBeGreaterThan(0);
    expect(grown, what).toBeLessThanOrEqual(MiB);
    expect(made.timings.bytes, what).toBeLessThanOrEqual(MiB);
  }
  fs.closeSync(fd);
  const last = digestTree(place.workspace);
  await thread.rewind({ to: "c0" });
  expect(fs.statSync(file).size).toBe(size);
  await thread.undo();
  expect(digestTree(place.workspace)).toEqual(last);
});
