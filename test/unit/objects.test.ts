// Objects and packs: F-4 to F-6, F-21, F-25.
import {
  closeSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { type Hash, hashOf } from "../../src/store/objects.ts";
import { openStore } from "../../src/store/store.ts";
import { armWriteFault } from "../../src/write-faults.ts";
import { temporaryStore } from "./store.ts";

const packOf = (path: string): string => join(path, "packs", readdirSync(join(path, "packs"))[0] as string);

const packBytes = (path: string): number =>
  readdirSync(join(path, "packs")).reduce((sum, name) => sum + statSync(join(path, "packs", name)).size, 0);

test("F-2: folders and files of a store are readable by their owner only", async () => {
  const { path, store } = temporaryStore();
  const { objects } = store.open("e1");
  objects.batch().put(Buffer.from("a"));
  const batch = objects.batch();
  batch.put(Buffer.from("b"));
  await batch.commit();
  for (const folder of ["", "packs", "locks", "cache"]) expect(statSync(join(path, folder)).mode & 0o777).toBe(0o700);
  for (const file of ["catalog.db", "catalog.db-wal", "catalog.db-shm"]) {
    expect(statSync(join(path, file)).mode & 0o777).toBe(0o600);
  }
  expect(statSync(packOf(path)).mode & 0o777).toBe(0o600);
});

test("F-4: an object is named by its bytes, and damage is reported, never returned", async () => {
  const { path, store } = temporaryStore();
  const { objects } = store.open("e1");
  const batch = objects.batch();
  const hash = batch.put(Buffer.from("precious"));
  await batch.commit();
  expect(hash.equals(hashOf(Buffer.from("precious")))).toBe(true);
  expect(objects.get(hash).toString()).toBe("precious");
  const fd = openSync(packOf(path), "r+");
  writeSync(fd, "X", 9);
  closeSync(fd);
  expect(() => objects.get(hash)).toThrow(expect.objectContaining({ code: "STORE_CORRUPT" }));
  expect(objects.check(hash)).toContain("damaged");
  truncateSync(packOf(path), 10);
  expect(objects.check(hash)).toContain("cut short");
});

test("F-4: a missing pack or object is named", async () => {
  const { path, store } = temporaryStore();
  const { objects } = store.open("e1");
  expect(objects.check(hashOf(Buffer.from("never")))).toBe("it is missing");
  const batch = objects.batch();
  const hash = batch.put(Buffer.from("a"));
  await batch.commit();
  rmSync(packOf(path));
  expect(objects.check(hash)).toContain("cannot be read");
});

test("F-5: a pack starts with its mark; bytes behind its length are overwritten by the next holder", async () => {
  const { path, store } = temporaryStore();
  const { objects } = store.open("e1");
  const first = objects.batch();
  const kept = first.put(Buffer.from("kept"));
  await first.commit();
  store.close();
  const pack = packOf(path);
  expect(readFileSync(pack, "latin1")).toBe("ARWPACK1kept");
  writeFileSync(pack, Buffer.concat([readFileSync(pack), Buffer.from("left by a killed writer")]));
  const again = openStore(path);
  const opened = again.open("e1").objects;
  const batch = opened.batch();
  const next = batch.put(Buffer.from("next"));
  await batch.commit();
  expect(readFileSync(pack, "latin1").slice(0, 16)).toBe("ARWPACK1keptnext");
  expect(opened.get(kept).toString()).toBe("kept");
  expect(opened.get(next).toString()).toBe("next");
  again.close();
});

test("F-6: nothing of a batch is visible before its commit, and a dropped batch does not disturb another", async () => {
  const { store } = temporaryStore();
  const { objects } = store.open("e1");
  const dropped = objects.batch();
  const lost = dropped.put(Buffer.alloc(3 << 20, 1));
  const batch = objects.batch();
  const kept = batch.put(Buffer.alloc(2 << 20, 2));
  expect(objects.has(kept)).toBe(false);
  await batch.commit();
  expect(objects.has(lost)).toBe(false);
  expect(objects.check(kept)).toBeUndefined();
});

test("F-6: equal bytes are stored once, also across environments", async () => {
  const { path, store } = temporaryStore();
  const one = store.open("e1").objects.batch();
  one.put(Buffer.alloc(100_000, 7));
  expect(await one.commit()).toBe(100_000);
  const other = store.open("e2").objects.batch();
  other.put(Buffer.alloc(100_000, 7));
  expect(await other.commit()).toBe(0);
  expect(readdirSync(join(path, "packs"))).toHaveLength(1);
});

test("F-21: sync marks what it has put on disk", async () => {
  const { store } = temporaryStore();
  const { objects } = store.open("e1");
  const batch = objects.batch();
  batch.put(Buffer.from("durable"));
  await batch.commit();
  const lengths = (): unknown => store.sql.prepare("SELECT length, synced FROM pack").get();
  expect(lengths()).toEqual({ length: 15, synced: 0 });
  await objects.sync();
  await store.syncLog();
  expect(lengths()).toEqual({ length: 15, synced: 15 });
});

test("F-21: a sync beside a batch that has still to write its bytes does not count them as written", async () => {
  const { path, store } = temporaryStore();
  const { objects } = store.open("e1");
  const slow = objects.batch();
  const bytes = Buffer.from("written late");
  const { fd, offsets } = slow.reserve(hashOf(bytes), Uint32Array.of(bytes.length));
  const quick = objects.batch();
  quick.put(Buffer.from("quick"));
  await quick.commit();
  await objects.sync();
  writeSync(fd, bytes, 0, bytes.length, offsets[0]);
  await slow.commit();
  const unsynced = store.sql.prepare("SELECT sum(length - synced) FROM pack").pluck();
  expect(unsynced.get()).toBe(bytes.length);
  await objects.sync();
  expect(unsynced.get()).toBe(0);
  const next = objects.batch();
  next.put(Buffer.from("next"));
  await next.commit();
  expect(readdirSync(join(path, "packs")), "packs are used again").toHaveLength(2);
});

test("F-21: what an fsync failed on is written again before it counts, and never counts when it is lost", async () => {
  const { path, store } = temporaryStore();
  const { objects } = store.open("e1");
  const batch = objects.batch();
  batch.put(Buffer.from("precious"));
  await batch.commit();
  const synced = store.sql.prepare("SELECT synced FROM pack").pluck();
  armWriteFault("EIO:1");
  await expect(objects.sync()).rejects.toMatchObject({ code: "WRITE_FAILED" });
  armWriteFault(undefined);
  expect(synced.get()).toBe(0);
  const whole = readFileSync(packOf(path));
  writeFileSync(packOf(path), Buffer.alloc(whole.length));
  await expect(objects.sync()).rejects.toMatchObject({ code: "STORE_CORRUPT" });
  expect(synced.get()).toBe(0);
  writeFileSync(packOf(path), whole);
  await objects.sync();
  expect(synced.get()).toBe(whole.length);
});

test("F-25: after a restart of the machine only whole objects keep their row", async () => {
  const { path, store } = temporaryStore();
  const { objects } = store.open("e1");
  const first = objects.batch();
  const durable = first.put(Buffer.from("durable"));
  await first.commit();
  await objects.sync();
  const second = objects.batch();
  const whole = second.put(Buffer.from("whole"));
  const torn = second.put(Buffer.from("torn by the power cut"));
  await second.commit();
  store.sql.prepare("UPDATE pack SET boot = 'an earlier one'").run();
  store.close();
  truncateSync(packOf(path), statSync(packOf(path)).size - 3);
  const again = openStore(path);
  const opened = again.open("e1").objects;
  expect([durable, whole, torn].map((hash) => opened.has(hash))).toEqual([true, true, false]);
  again.close();
});

test("F-5: a batch that is given up, or left by a killed writer, gives its bytes back to the disk", async () => {
  const { path, store } = temporaryStore();
  const { objects } = store.open("e1");
  const first = objects.batch();
  const kept = first.put(Buffer.from("kept"));
  await first.commit();
  const size = packBytes(path);
  const dropped = objects.batch();
  dropped.put(Buffer.alloc(3 << 20, 1));
  const beside = objects.batch();
  const also = beside.put(Buffer.alloc(2 << 20, 2));
  dropped.discard();
  await beside.commit();
  expect(objects.check(also)).toBeUndefined();
  const committed = packBytes(path);
  const last = objects.batch();
  last.put(Buffer.alloc(4 << 20, 3));
  expect(packBytes(path)).toBeGreaterThan(committed);
  last.discard();
  expect(packBytes(path)).toBe(committed);
  expect(committed).toBe(size + 8 + (2 << 20));
  writeFileSync(packOf(path), Buffer.alloc(1 << 20), { flag: "a" });
  store.open("e1");
  expect(packBytes(path)).toBe(committed);
  expect(objects.get(kept).toString()).toBe("kept");
});

test("a pack that got the number of a deleted one is not taken for it", async () => {
  const { path, store } = temporaryStore();
  const { objects } = store.open("e1");
  const put = async (text: string): Promise<Hash> => {
    const batch = objects.batch();
    const hash = batch.put(Buffer.from(text));
    await batch.commit();
    return hash;
  };
  const pack = (): unknown => store.sql.prepare("SELECT id, name FROM pack").get();
  const other = openStore(path);
  onTestFinished(() => other.close());
  const { objects: reader } = other.open("e2");
  const first = await put("first");
  expect(reader.get(first).toString()).toBe("first");
  const { id, name } = pack() as { id: number; name: string };
  await reader.use(async () => {
    objects.seal();
    store.sql.exec("DELETE FROM object; DELETE FROM pack");
    rmSync(join(path, "packs", name));
    const second = await put("a longer second one");
    expect(pack()).toMatchObject({ id });
    expect(reader.get(second).toString()).toBe("a longer second one");
  });
});
