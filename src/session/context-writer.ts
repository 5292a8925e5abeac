// Stores the contexts of one thread: what a turn adds costs what it adds, however long the conversation is (F-15).
import { type Breathe, makeBreather } from "../breathe.ts";
import { RewindError } from "../errors.ts";
import { putContext } from "../store/contexts.ts";
import { type Batch, type Hash, hashOf } from "../store/objects.ts";
import { extendSequence, type StoredSequence } from "../store/sequence.ts";
import type { Context, Serializer } from "./types.ts";

/**
 * Of messages that are the same objects as last time, how many are looked at all the same, to see that nobody has edited them: half of them the newest, the others
 * in turn, so that each comes again. `marked`: their fields are compared; `encoded`: all that is in them.
 */
const looks = { marked: 256, encoded: 8 };

interface Kept {
  /** Of the store: what was stored in an older one may be gone. */
  readonly generation: number;
  readonly messages: readonly unknown[];
  /** What `Serializer.mark` made of each. */
  readonly marks: readonly unknown[];
  readonly names: readonly Hash[];
  readonly sequence: StoredSequence;
}

export class ContextWriter {
  readonly #serializer: Serializer;
  #kept: Kept | undefined;
  #pending: Kept | undefined;
  /** Where the next look at older messages begins. */
  readonly #next = { marked: 0, encoded: 0 };

  constructor(serializer: Serializer) {
    this.#serializer = serializer;
  }

  /** Puts the context into the batch; returns its name. Call `keep` when the batch was committed. A long one is stored in slices, so that a stream beside it goes on. */
  async put(batch: Batch, context: Context, generation: number): Promise<string> {
    if (!Array.isArray(context?.messages)) {
      throw new RewindError("BAD_ARGUMENT", "A context needs `messages`, an array.", {
        hint: 'For example { messages: [{ role: "user", content: "…" }] }.',
      });
    }
    this.#pending = undefined;
    const { messages } = context;
    const breathe = makeBreather();
    const kept = this.#kept?.generation === generation ? this.#kept : undefined;
    const shared = kept === undefined ? 0 : await this.#shared(kept, messages);
    const names = kept === undefined ? [] : kept.names.slice(0, shared);
    const marks = kept === undefined ? [] : kept.marks.slice(0, shared);
    for (let at = shared; at < messages.length; at++) {
      names.push(batch.put(await this.#serializer.encode(messages[at])));
      marks.push(this.#serializer.mark?.(messages[at]));
      await breathe();
    }
    const sequence = extendSequence(batch, kept?.sequence, shared, names);
    const channels = await this.#channels(batch, context, breathe);
    this.#pending = { generation, messages: [...messages], marks, names, sequence };
    return putContext(batch, { serializer: this.#serializer.name, messages: sequence, channels });
  }

  /** What was put last is in the store. */
  keep(): void {
    this.#kept = this.#pending;
  }

  async #channels(batch: Batch, context: Context, breathe: Breathe): Promise<Record<string, Hash>> {
    const channels: Record<string, Hash> = Object.create(null);
    for (const [name, value] of Object.entries(context.channels ?? {})) {
      if (value !== undefined) channels[name] = batch.put(await this.#serializer.encode(value));
      await breathe();
    }
    return channels;
  }

  /** How many messages at the beginning are those of last time. */
  async #shared(kept: Kept, messages: readonly unknown[]): Promise<number> {
    const { isMarked } = this.#serializer;
    if (isMarked === undefined) return 0;
    const most = Math.min(kept.messages.length, messages.length);
    let shared = 0;
    while (shared < most && messages[shared] === kept.messages[shared]) shared++;
    for (const at of this.#toLookAt("marked", shared)) {
      if (!isMarked(messages[at], kept.marks[at])) return this.#firstEdited(kept, messages, shared);
    }
    for (const at of this.#toLookAt("encoded", shared)) {
      if (!(await this.#isSame(kept, messages, at))) return this.#firstEdited(kept, messages, shared);
    }
    return shared;
  }

  *#toLookAt(how: keyof typeof looks, shared: number): Generator<number> {
    const newest = Math.min(looks[how] >> 1, shared);
    const older = shared - newest;
    for (let back = 1; back <= newest; back++) yield shared - back;
    for (let n = Math.min(newest, older); n > 0; n--) yield this.#next[how]++ % older;
  }

  async #isSame({ names }: Kept, messages: readonly unknown[], at: number): Promise<boolean> {
    return hashOf(await this.#serializer.encode(messages[at])).equals(names[at] as Hash);
  }

  /** Somebody edits messages in place: none of them is taken on trust. */
  async #firstEdited(kept: Kept, messages: readonly unknown[], shared: number): Promise<number> {
    for (let at = 0; at < shared; at++) if (!(await this.#isSame(kept, messages, at))) return at;
    return shared;
  }
}
