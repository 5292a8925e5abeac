// Contexts to bytes and back, by the serializer of whoever drives the thread.
import { makeBreather } from "../breathe.ts";
import { RewindError } from "../errors.ts";
import { type EncodedContext, getContext, putContext } from "../store/contexts.ts";
import type { Batch, Hash, ObjectReader } from "../store/objects.ts";
import type { Context, Serializer } from "./types.ts";

/** Plain JSON values. */
export const jsonSerializer: Serializer = {
  name: "json@1",
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

/** Puts the context into the batch; returns its name. A long one is stored in slices, so that a stream beside it goes on. */
export async function storeContext(batch: Batch, context: Context, serializer: Serializer): Promise<string> {
  if (!Array.isArray(context?.messages)) {
    throw new RewindError("BAD_ARGUMENT", "A context needs `messages`, an array.", {
      hint: 'For example { messages: [{ role: "user", content: "…" }] }.',
    });
  }
  const breathe = makeBreather();
  const messages: Hash[] = [];
  for (const message of context.messages) {
    messages.push(batch.put(await serializer.encode(message)));
    await breathe();
  }
  const channels: Record<string, Hash> = Object.create(null);
  for (const [name, value] of Object.entries(context.channels ?? {})) {
    if (value !== undefined) channels[name] = batch.put(await serializer.encode(value));
  }
  return putContext(batch, { serializer: serializer.name, messages, channels });
}

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
