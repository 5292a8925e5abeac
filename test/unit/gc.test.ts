// gc at the level of the store: what is reached, what a use pins, which packs may be touched.
import { existsSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { type Entry, encodeEntry, entryType } from "../../src/environment/directory/entry.ts";
import { snapshotKind } from "../../src/environment/directory/reach.ts";
import { loadNative } from "../../src/native.ts";
import { putContext } from "../../src/store/contexts.ts";
import { openDatabase } from "../../src/store/database.ts";
import { collect, type GcOptions } from "../../src/store/gc.ts";
import { softLimitOf } from "../../src/store/limit.ts";
import { takeLock } from "../../src/store/lock.ts";
import type { Hash, Objects } from "../../src/store/objects.ts";
import { extendSequence, putSequence } from "../../src/store/sequence.ts";
import type { Store } from "../../src/store/store.ts";
import { lacking } from "../capabilities.ts";
import { temporaryStore } from "./store.ts";

interface Scene {
  readonly path: string;
  readonly store: Store;
  readonly objects: Objects;
  /** Makes a checkpoint of the snapshot and a context of one message. */
  checkpoint(snapshot: Hash | null, message: Hash, writer?: Objects): Promise<void>;
  gc(options?: Partial<GcOptions>): ReturnType<typeof collect>;
}

function makeScene(): Scene {
  const { path, store } = temporaryStore();
  store.sql.exec(
    `INSERT INTO workspace VALUES ('w', '/w', '', '', ''); INSERT INTO environment (id, workspace, kind) VALUES ('e1', 'w', 'directory')`,
  );
  const { catalog, objects } = store.open("e1");
  const thread = catalog.makeThread("t");
  return {
    path,
    store,
    objects,
    async checkpoint(snapshot, message, writer = objects) {
      const batch = writer.batch();
      const context = putContext(batch, {
        serializer: "json@1",
        messages: extendSequence(batch, undefined, 0, [message]),
        channels: {},
      });
      await batch.commit();
      catalog.addCheckpoint(
        {
          thread: thread.id,
          seq: catalog.takeSeq(thread.id),
          parent: null,
          turn: 1,
          kind: "turn",
          state: "captured",
          reason: null,
          label: null,
          anchor: null,
          context,
          messages: 1,
          serializer: "json@1",
          manifest: snapshot === null ? null : { files: snapshot.toString("hex"), processes: null },
          changes: null,
          activity: {},
          problems: [],
          timings: {},
          lessons: [],
        },
        0,
      );
    },
    gc: (options = {}) =>
      collect({
        layout: store.layout,
        snapshots: snapshotKind,
        askToSeal: async () => objects.seal(),
        punchHole: loadNative().native?.punchHole ?? null,
        ...options,
      }),
  };
}

async function stored(objects: Objects, ...texts: string[]): Promise<Hash[]> {
  const batch = objects.batch();
  const hashes = texts.map((text) => batch.put(Buffer.from(text)));
  await batch.commit();
  return hashes;
}

const entry = (name: string, type: Entry["type"], content: Hash): Entry => ({
  name,
  type,
  content,
  flags: 0,
  mode: 0o644,
  uid: 0,
  gid: 0,
  mtimeNs: 0n,
  size: 1,
  rdevMajor: 0,
  rdevMinor: 0,
  tail: "",
  xattrs: [],
});

const condemned = ({ store }: Scene): number =>
  store.sql.prepare("SELECT count(*) FROM object WHERE condemned = 1").pluck().get() as number;

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await sleep(2);
}

test("F-34: what a checkpoint needs stays, the rest goes, and a second gc finds nothing", async () => {
  const scene = makeScene();
  const [kept, lost] = (await stored(scene.objects, "kept", "lost".repeat(100_000))) as [Hash, Hash];
  await scene.checkpoint(null, kept);
  expect(await scene.gc()).toMatchObject({ objects: 1, packs: { deleted: 0, rewritten: 1 }, postponed: [] });
  expect(scene.objects.has(lost)).toBe(false);
  expect(scene.objects.get(kept).toString()).toBe("kept");
  expect(await scene.gc()).toEqual({
    objects: 0,
    bytes: 0,
    catalog: 0,
    packs: { deleted: 0, rewritten: 0 },
    leftOver: 0,
    postponed: [],
  });
});

test("F-33: what a use that began before finds and then commits is not deleted", async () => {
  const scene = makeScene();
  const [kept, found] = (await stored(scene.objects, "kept", "nobody needs it yet")) as [Hash, Hash];
  await scene.checkpoint(null, kept);
  let gc: ReturnType<typeof collect> | undefined;
  await scene.objects.use(async () => {
    expect((await stored(scene.objects, "nobody needs it yet"))[0]?.equals(found)).toBe(true);
    gc = scene.gc();
    await until(() => condemned(scene) > 0);
    await sleep(50);
    expect(scene.objects.has(found), "gc waits").toBe(true);
    await scene.checkpoint(null, found);
  });
  expect(await gc).toMatchObject({ objects: 0, postponed: [] });
  expect(scene.objects.get(found).toString()).toBe("nobody needs it yet");
  expect(condemned(scene)).toBe(0);
});

test("F-33: a writer stores anew what is condemned", async () => {
  const scene = makeScene();
  const [kept, again] = (await stored(scene.objects, "kept", "goes and comes")) as [Hash, Hash];
  await scene.checkpoint(null, kept);
  let gc: ReturnType<typeof collect> | undefined;
  await scene.objects.use(async () => {
    gc = scene.gc();
    await until(() => condemned(scene) > 0);
    await stored(scene.objects, "goes and comes");
    expect(condemned(scene)).toBe(0);
  });
  expect(await gc).toMatchObject({ objects: 0 });
  expect(scene.objects.get(again).toString()).toBe("goes and comes");
});

test("F-32: a use that does not end in time postpones gc, and harms nothing", async () => {
  const scene = makeScene();
  const [kept, lost] = (await stored(scene.objects, "kept", "lost")) as [Hash, Hash];
  await scene.checkpoint(null, kept);
  await scene.objects.use(async () => {
    const { objects, postponed } = await scene.gc({ patienceMs: 20 });
    expect(objects).toBe(0);
    expect(postponed.join()).toContain("another process");
    expect(scene.objects.get(lost).toString()).toBe("lost");
  });
  expect(await scene.gc()).toMatchObject({ objects: 1 });
});

test("F-34: a file with the bytes of a tree does not hide what the tree leads to", async () => {
  const scene = makeScene();
  const batch = scene.objects.batch();
  const deep = batch.put(Buffer.from("deep"));
  const list = (entries: Entry[]): Hash =>
    putSequence(
      batch,
      entries.map((one) => ({ bytes: encodeEntry(one), boundary: 1 })),
    );
  const folder = list([entry("deep", entryType.file, deep)]);
  const root = list([
    entry("a", entryType.file, folder),
    entry("b", entryType.directory, folder),
    entry("c", entryType.file, folder),
  ]);
  const snapshot = batch.put(Buffer.concat([Buffer.from([3, 0]), encodeEntry(entry("", entryType.directory, root))]));
  const message = batch.put(Buffer.from("m"));
  await batch.commit();
  await scene.checkpoint(snapshot, message);
  expect(await scene.gc()).toMatchObject({ objects: 0 });
  expect(scene.objects.has(deep)).toBe(true);
});

test("F-34: where something that is reached cannot be read, nothing is deleted", async () => {
  const scene = makeScene();
  const [message, lost] = (await stored(scene.objects, "m", "lost")) as [Hash, Hash];
  await scene.checkpoint(null, message);
  const context = scene.store.sql.prepare("SELECT context FROM checkpoint").pluck().get() as string;
  scene.store.sql.prepare("UPDATE object SET length = length - 1 WHERE hash = ?").run(Buffer.from(context, "hex"));
  await expect(scene.gc()).rejects.toMatchObject({ code: "STORE_CORRUPT" });
  expect(scene.objects.has(lost)).toBe(true);
});

test("F-35: the packs of a holder that does not seal them are left alone; a dead holder's are not", async () => {
  const scene = makeScene();
  await stored(scene.objects, "lost");
  const lock = takeLock(scene.store.layout.locks, "e1");
  expect(await scene.gc({ askToSeal: async () => false })).toMatchObject({ objects: 1, packs: { deleted: 0 } });
  expect(readdirSync(scene.store.layout.packs)).toHaveLength(1);
  // Its writer goes on in the same pack.
  const [kept] = (await stored(scene.objects, "kept")) as [Hash];
  await scene.checkpoint(null, kept);
  expect(scene.objects.seal()).toBe(true);
  lock.release();
  expect(await scene.gc({ liveRatio: 1 })).toMatchObject({ packs: { rewritten: 1 } });
  expect(scene.objects.get(kept).toString()).toBe("kept");
  const [later] = (await stored(scene.objects, "later")) as [Hash];
  expect(readdirSync(scene.store.layout.packs), "a sealed pack is written no more").toHaveLength(2);
  expect(scene.objects.get(later).toString()).toBe("later");
});

test("F-35: a pack that loses rows to another writer while it gets as many new ones is not taken for known", async () => {
  const scene = makeScene();
  const other = scene.store.open("e2").objects;
  const [kept, again] = (await stored(scene.objects, "kept", "goes and comes", "lost".repeat(100_000))) as [Hash, Hash];
  await scene.checkpoint(null, kept);
  const lock = takeLock(scene.store.layout.locks, "e1");
  let later: Hash | undefined;
  await scene.gc({
    async askToSeal() {
      expect(condemned(scene)).toBe(2);
      await stored(other, "goes and comes");
      await scene.checkpoint(null, again, other);
      [later] = (await stored(scene.objects, "later")) as [Hash];
      await scene.checkpoint(null, later, other);
      return scene.objects.seal();
    },
  });
  lock.release();
  for (const [hash, text] of [
    [kept, "kept"],
    [again, "goes and comes"],
    [later, "later"],
  ] as const) {
    expect(scene.objects.get(hash as Hash).toString()).toBe(text);
  }
  await scene.gc();
  expect(scene.objects.get(later as Hash).toString()).toBe("later");
});

test("F-36: files that no row names go; one gc at a time", async () => {
  const scene = makeScene();
  const orphan = join(scene.store.layout.packs, "0123456789abcdef.pack");
  writeFileSync(orphan, "ARWPACK1");
  const lock = takeLock(scene.store.layout.locks, "gc");
  await expect(scene.gc()).rejects.toMatchObject({ code: "GC_RUNNING" });
  lock.release();
  expect(await scene.gc()).toMatchObject({ leftOver: 1 });
  expect(existsSync(orphan)).toBe(false);
});

test("F-36: many small packs are joined", async () => {
  const scene = makeScene();
  const kept: Hash[] = [];
  for (let i = 0; i < 12; i++) {
    const [one] = (await stored(scene.objects, `kept ${i}`)) as [Hash];
    await scene.checkpoint(null, one);
    kept.push(one);
    scene.objects.seal();
  }
  expect(readdirSync(scene.store.layout.packs)).toHaveLength(12);
  expect(await scene.gc()).toMatchObject({ packs: { rewritten: 12 } });
  expect(readdirSync(scene.store.layout.packs)).toHaveLength(1);
  kept.forEach((hash, i) => {
    expect(scene.objects.get(hash).toString()).toBe(`kept ${i}`);
  });
});

const onDisk = ({ store }: Scene): number =>
  readdirSync(store.layout.packs)
    .map((name) => statSync(join(store.layout.packs, name)))
    .reduce((sum, { size, blocks }) => sum + Math.min(size, blocks * 512), 0);

describe("a pack more than half of which is alive", () => {
  const large = (text: string): string => text.repeat(1_500_000 / text.length);
  async function half(): Promise<{ scene: Scene; kept: [Hash, string][] }> {
    const scene = makeScene();
    const texts = [large("kept"), large("lost"), "small", large("last!")];
    const hashes = await stored(scene.objects, ...texts);
    const kept = texts
      .map((text, i): [Hash, string] => [hashes[i] as Hash, text])
      .filter(([, text]) => text !== texts[1]);
    for (const [hash] of kept) await scene.checkpoint(null, hash);
    return { scene, kept };
  }

  test.skipIf(lacking("native"))("F-39: the room of what is dead goes back to the disk, in place", async () => {
    const { scene, kept } = await half();
    const before = onDisk(scene);
    const { bytes, ...rest } = await scene.gc();
    expect(rest).toMatchObject({ objects: 1, packs: { deleted: 0, rewritten: 0 }, postponed: [] });
    expect(bytes).toBeGreaterThan(1_490_000);
    expect(onDisk(scene)).toBe(before - bytes);
    for (const [hash, text] of kept) expect(scene.objects.get(hash).toString()).toBe(text);
    expect(await scene.gc(), "nothing is left to do").toMatchObject({ objects: 0, bytes: 0, postponed: [] });
    expect((await stored(scene.objects, large("lost")))[0]).toBeDefined();
    expect(await scene.gc()).toMatchObject({ objects: 1 });
    for (const [hash, text] of kept) expect(scene.objects.get(hash).toString()).toBe(text);
  });

  test("F-39: where no part of a file can be freed, that is said", async () => {
    for (const punchHole of [
      null,
      () => {
        throw Object.assign(new Error("no"), { code: "EOPNOTSUPP" });
      },
    ]) {
      const { scene, kept } = await half();
      const collected = await scene.gc({ punchHole });
      expect(collected.postponed.join()).toMatch(/^1 pack is dead in part, and a part of a file/);
      for (const [hash, text] of kept) expect(scene.objects.get(hash).toString()).toBe(text);
    }
  });
});

const pragma = ({ store }: Scene, name: string): number => store.sql.pragma(name, { simple: true }) as number;
const catalogSize = ({ store }: Scene): number => statSync(store.layout.catalog).size;

/** One of a hundred stays. */
async function manyObjects(scene: Scene, count: number): Promise<Hash[]> {
  const hashes = await stored(scene.objects, ...Array.from({ length: count }, (_, i) => `${i}`));
  const kept = hashes.filter((_, i) => i % 100 === 0);
  for (const hash of kept) await scene.checkpoint(null, hash);
  return kept;
}

test("F-38: the catalog's free pages go back to the disk, while another connection reads and writes", async () => {
  const scene = makeScene();
  const kept = await manyObjects(scene, 4000);
  scene.store.sql.pragma("wal_checkpoint(PASSIVE)");
  const before = catalogSize(scene);
  const reader = openDatabase(scene.store.layout.catalog);
  const rowsThen = reader.prepare("SELECT hash FROM object ORDER BY hash").pluck().iterate();
  rowsThen.next();
  const collected = await scene.gc();
  expect(pragma(scene, "freelist_count")).toBe(0);
  expect([...rowsThen], "a reader goes on in its moment").toHaveLength(
    (scene.store.sql.prepare("SELECT count(*) FROM object").pluck().get() as number) + collected.objects - 1,
  );
  reader.close();
  scene.store.sql.pragma("wal_checkpoint(PASSIVE)");
  expect(collected.catalog).toBeGreaterThan(100_000);
  expect(catalogSize(scene)).toBeLessThan(before - 100_000);
  for (const hash of kept) expect(scene.objects.check(hash)).toBeUndefined();
  expect(scene.store.sql.pragma("integrity_check", { simple: true })).toBe("ok");
});

test("F-38: a catalog of an older version is made anew by a process that may, when no session is open", async () => {
  const scene = makeScene();
  scene.store.sql.pragma("auto_vacuum = NONE");
  scene.store.sql.exec("VACUUM");
  expect(pragma(scene, "auto_vacuum")).toBe(0);
  scene.store.sql.exec(
    "CREATE TABLE filler AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 6000) SELECT randomblob(1000) FROM n",
  );
  scene.store.sql.exec("DROP TABLE filler");
  const [kept] = (await stored(scene.objects, "kept")) as [Hash];
  await scene.checkpoint(null, kept);
  const free = pragma(scene, "freelist_count");
  expect(free).toBeGreaterThan(1024);
  expect((await scene.gc()).catalog, "it may not").toBe(0);
  const lock = takeLock(scene.store.layout.locks, "e1");
  expect((await scene.gc({ mayBlock: true })).catalog, "a session is open").toBe(0);
  lock.release();
  expect(pragma(scene, "freelist_count")).toBe(free);
  expect((await scene.gc({ mayBlock: true })).catalog).toBeGreaterThan(free * 4000);
  expect(pragma(scene, "freelist_count")).toBe(0);
  expect(pragma(scene, "auto_vacuum")).toBe(2);
  expect(catalogSize(scene)).toBeLessThan(1 << 20);
  expect(scene.objects.get(kept).toString()).toBe("kept");
});

test("the soft limit is bytes or a size in words", () => {
  expect(softLimitOf(undefined, {})).toBe(20 * 2 ** 30);
  expect(softLimitOf(undefined, { AGENTREWIND_SOFT_LIMIT: "500M" })).toBe(500 * 2 ** 20);
  expect(softLimitOf(undefined, { AGENTREWIND_SOFT_LIMIT: "1.5 GiB" })).toBe(1.5 * 2 ** 30);
  expect(softLimitOf(undefined, { AGENTREWIND_SOFT_LIMIT: "0" })).toBe(Number.POSITIVE_INFINITY);
  expect(softLimitOf(7, { AGENTREWIND_SOFT_LIMIT: "500M" })).toBe(7);
  expect(() => softLimitOf(undefined, { AGENTREWIND_SOFT_LIMIT: "lots" })).toThrow(
    expect.objectContaining({ code: "BAD_ARGUMENT" }),
  );
});
