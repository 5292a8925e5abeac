// Contexts to bytes and back, by the serializer of whoever drives the thread.
import { RewindError } from "../errors.ts";
import { type EncodedContext, getContext } from "../store/contexts.ts";
import type { ObjectReader } from "../store/objects.ts";
import type { Context, Serializer } from "./types.ts";

/** Plain JSON values. An object is taken for unchanged while its fields are the same ones. */
export const jsonSerializer: Serializer = {
  name: "json@1",
  mark: (item) => (typeof item === "object" && item !== null ? { ...item } : item),
  isMarked: isSameShallow,
  encode(item) {
    let text: string | undefined;
    let cause: unknown;
    try {
      text = JSON.stringify(item);
    } catch (error) {
      cause = error;
    }
    if (text !== undefined) return Buffer.from(text);
    throw new RewindError(
      "BAD_ARGUMENT",
      "A context holds something that is not JSON (undefined, a function, a bigint, a circle).",
      {
        hint: "Give plain values, or a serializer of your own.",
        cause,
      },
    );
  },
  decode: (bytes) => JSON.parse(Buffer.from(bytes).toString("utf8")),
};

/** For who moves contexts about without looking into them: items stay bytes, of whatever serializer. */
export const opaqueSerializer: Serializer = {
  name: "opaque",
  encode() {
    throw new RewindError("SERIALIZER_MISMATCH", "A context cannot be stored from here.", {
      hint: "Use the thread's own adapter.",
    });
  },
  decode: (bytes) => bytes,
};

export async function loadContext(objects: ObjectReader, name: string, serializer: Serializer): Promise<Context> {
  const encoded: EncodedContext = getContext(objects, name);
  const empty = encoded.messages.length === 0 && Object.keys(encoded.channels).length === 0;
  if (!empty && encoded.serializer !== serializer.name && serializer !== opaqueSerializer) {
    throw new RewindError(
      "SERIALIZER_MISMATCH",
      `This checkpoint's conversation was stored as ${encoded.serializer}; this thread reads ${serializer.name}.`,
      { hint: "Open the thread through the adapter that made the checkpoint." },
    );
  }
  const messages: unknown[] = [];
  for (const bytes of encoded.messages) messages.push(await serializer.decode(bytes));
  const channels: Record<string, unknown> = {};
  for (const [channel, bytes] of Object.entries(encoded.channels)) channels[channel] = await serializer.decode(bytes);
  return { messages, channels };
}

/** Equal in every field, by reference. */
function isSameShallow(item: unknown, mark: unknown): boolean {
  if (typeof item !== "object" || item === null) return item === mark;
  let fields = 0;
  for (const name in item) {
    if ((item as Record<string, unknown>)[name] !== (mark as Record<string, unknown>)[name]) return false;
    fields++;
  }
  return fields === Object.keys(mark as object).length;
}
