// A long conversation is stored at the cost of what is new in it, and never as it was before somebody edited it.
import { expect, test } from "vitest";
import { ContextWriter } from "../../src/session/context-writer.ts";
import { jsonSerializer, loadContext } from "../../src/session/serializer.ts";
import type { Serializer } from "../../src/session/types.ts";
import type { Objects } from "../../src/store/objects.ts";
import { temporaryStore } from "./store.ts";

interface Message {
  role: string;
  content: string | { text: string }[];
}

const conversation = (length: number): Message[] =>
  Array.from({ length }, (_, at) => ({ role: "user", content: [{ text: `message ${at}` }] }));

const inside = (messages: Message[], at: number): { text: string } =>
  ((messages[at] as Message).content as [{ text: string }])[0];

async function store(writer: ContextWriter, objects: Objects, messages: readonly unknown[]): Promise<unknown> {
  return objects.use(async () => {
    const batch = objects.batch();
    const name = await writer.put(batch, { messages }, objects.generation());
    await batch.commit();
    writer.keep();
    return (await loadContext(objects, name, jsonSerializer)).messages;
  });
}

function counting(): { serializer: Serializer; encoded: () => number } {
  let count = 0;
  const serializer: Serializer = {
    ...jsonSerializer,
    encode(item) {
      count++;
      return jsonSerializer.encode(item);
    },
  };
  return { serializer, encoded: () => count };
}

test("a turn encodes what it adds and a few to check, not the whole conversation", async () => {
  const { objects } = temporaryStore().store.open("e1");
  const { serializer, encoded } = counting();
  const writer = new ContextWriter(serializer);
  const messages = conversation(2_000);
  await store(writer, objects, messages);
  const before = encoded();
  expect(await store(writer, objects, [...messages, { role: "user", content: "more" }])).toHaveLength(2_001);
  expect(encoded() - before).toBeLessThanOrEqual(9);
});

test("a field that was set in place, a message that was put in the place of another, one that was taken out", async () => {
  const { objects } = temporaryStore().store.open("e1");
  const writer = new ContextWriter(jsonSerializer);
  const messages = conversation(500);
  await store(writer, objects, messages);
  (messages[100] as Message).content = "edited";
  expect(await store(writer, objects, messages)).toEqual(messages);
  messages[200] = { role: "user", content: "replaced" };
  expect(await store(writer, objects, messages)).toEqual(messages);
  messages.splice(300, 1);
  expect(await store(writer, objects, messages)).toEqual(messages);
  messages.length = 10;
  expect(await store(writer, objects, messages)).toEqual(messages);
  Object.assign(messages[3] as Message, { added: true });
  expect(await store(writer, objects, messages)).toEqual(messages);
});

test("the inside of one of the newest messages, and then of any", async () => {
  const { objects } = temporaryStore().store.open("e1");
  const writer = new ContextWriter(jsonSerializer);
  const messages = conversation(50);
  await store(writer, objects, messages);
  inside(messages, 49).text = "the newest";
  inside(messages, 7).text = "an old one";
  expect(await store(writer, objects, messages)).toEqual(messages);
});

test("the inside of an old message is found within a few turns", async () => {
  const { objects } = temporaryStore().store.open("e1");
  const writer = new ContextWriter(jsonSerializer);
  const messages = conversation(60);
  await store(writer, objects, messages);
  inside(messages, 30).text = "edited";
  let stored: unknown;
  for (let turn = 0; turn < 20; turn++) stored = await store(writer, objects, messages);
  expect(stored).toEqual(messages);
});

test("another generation of the store: everything is put again", async () => {
  const { objects } = temporaryStore().store.open("e1");
  const { serializer, encoded } = counting();
  const writer = new ContextWriter(serializer);
  const messages = conversation(100);
  await store(writer, objects, messages);
  const before = encoded();
  await objects.use(async () => {
    const batch = objects.batch();
    await writer.put(batch, { messages }, objects.generation() + 1);
    await batch.commit();
  });
  expect(encoded() - before).toBe(100);
});

test("what was put and not committed is not relied on", async () => {
  const { objects } = temporaryStore().store.open("e1");
  const writer = new ContextWriter(jsonSerializer);
  const messages = conversation(100);
  await objects.use(async () => {
    const batch = objects.batch();
    await writer.put(batch, { messages }, objects.generation());
    batch.discard();
  });
  expect(await store(writer, objects, messages)).toEqual(messages);
});
