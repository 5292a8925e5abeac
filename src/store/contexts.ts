// Contexts: lists of opaque items that share their storage with every other version of the conversation (F-15).
import type { Batch, Hash, ObjectReader } from "./objects.ts";
import { content, type Kind, kindBit } from "./reach.ts";
import {
  chunkEdges,
  putSequence,
  readSequence,
  type SequenceItem,
  type StoredSequence,
  sequenceObjects,
} from "./sequence.ts";

/** A context whose items are stored: what the adapter's serializer made of each. */
export interface NamedContext {
  readonly serializer: string;
  readonly messages: StoredSequence;
  readonly channels: Readonly<Record<string, Hash>>;
}

/** A context as bytes. */
export interface EncodedContext {
  readonly serializer: string;
  readonly messages: readonly Uint8Array[];
  readonly channels: Readonly<Record<string, Uint8Array>>;
}

interface Header {
  readonly serializer: string;
  readonly messages: string;
  readonly count: number;
  readonly channels: string;
}

/** Stores a context, whose items are in the batch or the store, and returns its name in hex; the caller commits. */
export function putContext(batch: Batch, context: NamedContext): string {
  const channels = putSequence(
    batch,
    Object.keys(context.channels)
      .sort()
      .map((name) => channelItem(name, context.channels[name] as Hash)),
  );
  const header: Header = {
    serializer: context.serializer,
    messages: context.messages.name.toString("hex"),
    count: context.messages.length,
    channels: channels.toString("hex"),
  };
  return batch.put(Buffer.from(JSON.stringify(header))).toString("hex");
}

export function getContext(objects: ObjectReader, name: string): EncodedContext {
  const header = readHeader(objects, name);
  const messages = [...readSequence(objects, Buffer.from(header.messages, "hex"))].map((hash) => objects.get(hash));
  const channels: Record<string, Uint8Array> = Object.create(null);
  for (const item of readSequence(objects, Buffer.from(header.channels, "hex"))) {
    const { channel, hash } = readChannelItem(item);
    channels[channel] = objects.get(hash);
  }
  return { serializer: header.serializer, messages, channels };
}

/** The names of a context's items in hex: equal names are equal bytes. */
export function itemNames(
  objects: ObjectReader,
  name: string,
): { messages: string[]; channels: Record<string, string> } {
  const header = readHeader(objects, name);
  const messages = [...readSequence(objects, Buffer.from(header.messages, "hex"))].map((hash) => hash.toString("hex"));
  const channels: Record<string, string> = Object.create(null);
  for (const item of readSequence(objects, Buffer.from(header.channels, "hex"))) {
    const { channel, hash } = readChannelItem(item);
    channels[channel] = hash.toString("hex");
  }
  return { messages, channels };
}

/** Every object that a context needs. */
export function* contextObjects(objects: ObjectReader, name: string): Generator<Hash> {
  yield Buffer.from(name, "hex");
  const header = readHeader(objects, name);
  const messages = Buffer.from(header.messages, "hex");
  const channels = Buffer.from(header.channels, "hex");
  yield* sequenceObjects(objects, messages);
  yield* readSequence(objects, messages);
  yield* sequenceObjects(objects, channels);
  for (const item of readSequence(objects, channels)) yield readChannelItem(item).hash;
}

/** How gc walks a context (reach.ts). */
export const messagesKind: Kind = {
  bit: kindBit.messages,
  edges: (bytes, visit) =>
    chunkEdges(
      bytes,
      (hash) => visit(messagesKind, hash),
      (item) => visit(content, item),
    ),
};
export const channelsKind: Kind = {
  bit: kindBit.channels,
  edges: (bytes, visit) =>
    chunkEdges(
      bytes,
      (hash) => visit(channelsKind, hash),
      (item) => visit(content, readChannelItem(item).hash),
    ),
};
export const contextKind: Kind = {
  bit: kindBit.context,
  edges(bytes, visit) {
    const header = JSON.parse(bytes.toString("utf8")) as Header;
    visit(messagesKind, Buffer.from(header.messages, "hex"));
    visit(channelsKind, Buffer.from(header.channels, "hex"));
  },
};

function readHeader(objects: ObjectReader, name: string): Header {
  return JSON.parse(objects.get(Buffer.from(name, "hex")).toString("utf8")) as Header;
}

function channelItem(channel: string, hash: Hash): SequenceItem {
  const name = Buffer.from(channel, "utf8");
  const bytes = Buffer.allocUnsafe(2 + name.length + 32);
  bytes.writeUInt16LE(name.length, 0);
  name.copy(bytes, 2);
  hash.copy(bytes, 2 + name.length);
  return { bytes, boundary: hash.readUInt32LE(0) };
}

function readChannelItem(item: Buffer): { channel: string; hash: Hash } {
  const length = item.readUInt16LE(0);
  return { channel: item.toString("utf8", 2, 2 + length), hash: item.subarray(2 + length) };
}
