// Sequences and contexts: F-7, F-15.
import fc from "fast-check";
import { expect, test } from "vitest";
import { contextObjects, getContext, putContext } from "../../src/store/contexts.ts";
import { hashOf, type Objects } from "../../src/store/objects.ts";
import {
  differingItems,
  extendSequence,
  putSequence,
  readSequence,
  type SequenceItem,
  sequenceObjects,
} from "../../src/store/sequence.ts";
import { temporaryStore } from "./store.ts";

const item = (text: string): SequenceItem => ({
  bytes: Buffer.from(text),
  boundary: hashOf(Buffer.from(text)).readUInt32LE(0),
});
const items = (count: number, from = 0): SequenceItem[] =>
  Array.from({ length: count }, (_, i) => item(`item ${from + i}`));
const texts = (objects: Objects, hash: Buffer): string[] => [...readSequence(objects, hash)].map(String);

async function put(objects: Objects, list: SequenceItem[]): Promise<{ hash: Buffer; bytes: number }> {
  const batch = objects.batch();
  const hash = putSequence(batch, list);
  return { hash, bytes: await batch.commit() };
}

test("F-7: every length comes back in order, and equal lists have equal names", async () => {
  const { objects } = temporaryStore().store.open("e1");
  for (const count of [0, 1, 2, 63, 64, 65, 500, 5_000]) {
    const { hash } = await put(objects, items(count));
    expect(texts(objects, hash)).toEqual(Array.from({ length: count }, (_, i) => `item ${i}`));
    expect((await put(objects, items(count))).hash.equals(hash)).toBe(true);
  }
});

test("F-7: a chunk ends at 512 items also when no item is a boundary", async () => {
  const { objects } = temporaryStore().store.open("e1");
  const { hash } = await put(
    objects,
    Array.from({ length: 2_000 }, (_, i) => ({ bytes: Buffer.from(`${i}`), boundary: 1 })),
  );
  const [inner, leaves] = [1, 2].map((mark) =>
    [...sequenceObjects(objects, hash)].filter((one) => objects.get(one)[0] === (mark === 1 ? 2 : 1)),
  );
  expect(leaves).toHaveLength(4);
  expect(inner?.length).toBeGreaterThan(0);
  expect(texts(objects, hash)).toHaveLength(2_000);
});

test("F-7: an appended or inserted item rewrites the chunks around it only", async () => {
  const { objects } = temporaryStore().store.open("e1");
  const list = items(20_000);
  const whole = (await put(objects, list)).bytes;
  const appended = (await put(objects, [...list, item("new")])).bytes;
  const inserted = (await put(objects, [...list.slice(0, 9_000), item("inside"), ...list.slice(9_000)])).bytes;
  expect(appended).toBeLessThan(whole / 20);
  expect(inserted).toBeLessThan(whole / 20);
});

test("F-7: items that differ are found without reading what is shared", async () => {
  const { objects } = temporaryStore().store.open("e1");
  const list = items(5_000);
  const from = (await put(objects, list)).hash;
  const changed = [...list];
  changed[2_500] = item("other");
  const to = (await put(objects, changed)).hash;
  const lazy = differingItems(objects, from, to);
  const found = { from: [...lazy.from], to: [...lazy.to] };
  expect(found.from.map(String)).toContain("item 2500");
  expect(found.to.map(String)).toContain("other");
  expect(found.from.length).toBeLessThan(1_500);
  expect(differingItems(objects, from, from)).toEqual({ from: [], to: [] });
});

test("F-15: a context comes back byte for byte, with its channels", async () => {
  const { objects } = temporaryStore().store.open("e1");
  const context = {
    serializer: "test@1",
    messages: [Buffer.from([0, 255, 10]), Buffer.from("ä"), Buffer.alloc(0), Buffer.from("ä")],
    channels: {
      "": Buffer.from("empty name"),
      todos: Buffer.from("[]"),
      __proto__x: Buffer.from("p"),
      ünïcode: Buffer.alloc(70_000, 3),
    },
  };
  const batch = objects.batch();
  const name = putContext(batch, {
    ...context,
    messages: extendSequence(
      batch,
      undefined,
      0,
      context.messages.map((bytes) => batch.put(bytes)),
    ),
    channels: Object.fromEntries(Object.entries(context.channels).map(([key, bytes]) => [key, batch.put(bytes)])),
  });
  await batch.commit();
  const back = getContext(objects, name);
  expect(back.serializer).toBe("test@1");
  expect(back.messages.map((bytes) => Buffer.from(bytes))).toEqual(context.messages);
  expect({ ...back.channels }).toEqual(context.channels);
  for (const hash of contextObjects(objects, name)) expect(objects.check(hash)).toBeUndefined();
});

test("F-15: a long conversation stores what each turn adds", async () => {
  const { objects } = temporaryStore().store.open("e1");
  const messages = Array.from({ length: 3_000 }, (_, i) => Buffer.from(`message ${i} ${"x".repeat(200)}`));
  let largest = 0;
  for (let count = 2_970; count <= 3_000; count++) {
    const batch = objects.batch();
    putContext(batch, {
      serializer: "t",
      messages: extendSequence(
        batch,
        undefined,
        0,
        messages.slice(0, count).map((bytes) => batch.put(bytes)),
      ),
      channels: {},
    });
    const bytes = await batch.commit();
    if (count > 2_970) largest = Math.max(largest, bytes);
  }
  expect(largest).toBeLessThan(40_000);
});

test("F-7: a list that is stored as the continuation of another has the name that it would have alone", async () => {
  const { objects } = temporaryStore().store.open("e1");
  const names = Array.from({ length: 3_000 }, (_, i) => hashOf(Buffer.from(`name ${i}`)));
  const plain = (list: readonly Buffer[]): SequenceItem[] =>
    list.map((bytes) => ({ bytes, boundary: bytes.readUInt32LE(0) }));
  await fc.assert(
    fc.asyncProperty(
      fc.nat(1_500),
      fc.nat(1_500),
      fc.nat(200),
      fc.boolean(),
      async (length, shared, added, understated) => {
        const batch = objects.batch();
        const first = names.slice(0, length);
        const before = extendSequence(batch, undefined, 0, first);
        const kept = Math.min(shared, length);
        const second = [...first.slice(0, kept), ...names.slice(2_000, 2_000 + added)];
        const after = extendSequence(batch, before, understated ? kept >> 1 : kept, second);
        expect(after.name.equals(putSequence(batch, plain(second)))).toBe(true);
        expect(after.leaves.reduce((sum, { count }) => sum + count, 0)).toBe(second.length);
        await batch.commit();
      },
    ),
    { numRuns: 60 },
  );
});
