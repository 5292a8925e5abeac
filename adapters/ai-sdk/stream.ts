// A stream of the AI SDK below which the model may be asked several times: words pass, calls wait for the gate.
import type { Part } from "./format.ts";
import { Collected, partsFor, type Raw, type StreamPart, without } from "./reply.ts";

const begins: ReadonlySet<string> = new Set(["stream-start", "response-metadata"]);
const words: ReadonlySet<string> = new Set([
  "text-start",
  "text-delta",
  "text-end",
  "reasoning-start",
  "reasoning-delta",
  "reasoning-end",
]);

/** What the model says instead of the rest of its reply, and how its stream ends then. */
export class Failed extends Error {
  readonly parts: readonly StreamPart[];

  constructor(parts: readonly StreamPart[]) {
    super("The model broke its reply off with an error.");
    this.parts = parts;
  }
}

const says = (part: StreamPart): boolean =>
  (part.type === "text-delta" || part.type === "reasoning-delta") && part.delta !== "";

export class Outgoing {
  readonly stream: ReadableStream<StreamPart>;
  readonly #live: boolean;
  #controller: ReadableStreamDefaultController<StreamPart> | undefined;
  readonly #onBegin: () => void;
  #begun = false;
  #attempt = 0;
  /** What has not been given yet. */
  #held: StreamPart[] = [];
  /** Words of replies that did not count. */
  #before = "";
  /** Words of this one. */
  #shown = "";

  /** @param onBegin until then nothing has been given, and the model may refuse as if it had not begun */
  constructor(live: boolean, { onBegin, onCancel }: { onBegin: () => void; onCancel: () => void }) {
    this.#live = live;
    this.#onBegin = onBegin;
    this.stream = new ReadableStream<StreamPart>({
      start: (controller) => {
        this.#controller = controller;
      },
      cancel: onCancel,
    });
  }

  /** What stands in the caller's message before the words of the reply that counts. */
  get before(): string {
    return this.#before;
  }

  /** One model call. */
  async take(parts: ReadableStream<StreamPart>): Promise<Raw> {
    this.#attempt++;
    this.#before += this.#shown;
    this.#shown = "";
    this.#held = [];
    let holds = !this.#live;
    let said = false;
    const failed: StreamPart[] = [];
    const collected = new Collected();
    for await (const part of parts as unknown as AsyncIterable<StreamPart>) {
      if (failed.length > 0 || part.type === "error") {
        failed.push(part);
        continue;
      }
      collected.push(part);
      if (begins.has(part.type) && this.#begun) continue;
      holds ||= !words.has(part.type) && !begins.has(part.type);
      said ||= says(part);
      this.#held.push(this.#renamed(part));
      if (holds || !said) continue;
      if (part.type === "text-delta") this.#shown += part.delta;
      for (const passing of this.#held.splice(0)) this.#give(passing);
    }
    if (failed.length > 0) throw new Failed(failed);
    const { reply } = collected;
    if (reply === undefined) throw new Error("The model's stream ended before the reply was whole.");
    return reply;
  }

  /** The reply counts. */
  end(raw: Raw, dropped: ReadonlySet<string>): void {
    const { finishReason } = without(raw, dropped);
    for (const part of this.#held) {
      const { id, toolCallId } = part as { id?: string } & Part;
      if (dropped.has(toolCallId ?? "") || (part.type.startsWith("tool-input") && dropped.has(id ?? ""))) continue;
      this.#give(part.type === "finish" ? { ...part, finishReason } : part);
    }
    this.#controller?.close();
  }

  /** A recorded reply. */
  again(raw: Raw, dropped: ReadonlySet<string>): void {
    for (const part of partsFor(without(raw, dropped))) this.#give(part);
    this.#controller?.close();
  }

  /** @returns whether the caller gets it by the stream */
  fail(error: unknown): boolean {
    if (error instanceof Failed) {
      for (const part of error.parts) this.#give(part);
      this.#controller?.close();
    } else if (this.#begun) this.#controller?.error(error);
    return this.#begun;
  }

  #give(part: StreamPart): void {
    this.#controller?.enqueue(part);
    if (!this.#begun) this.#onBegin();
    this.#begun = true;
  }

  /** Blocks of another model call have names of their own. */
  #renamed(part: StreamPart): StreamPart {
    return this.#attempt > 1 && words.has(part.type)
      ? ({ ...part, id: `${this.#attempt}-${(part as { id: string }).id}` } as StreamPart)
      : part;
  }
}
