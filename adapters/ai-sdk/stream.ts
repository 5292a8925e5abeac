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

export class Outgoing {
  readonly stream: ReadableStream<StreamPart>;
  readonly #live: boolean;
  #controller: ReadableStreamDefaultController<StreamPart> | undefined;
  #attempt = 0;
  #held: StreamPart[] = [];
  /** Words of replies that did not count. */
  #before = "";
  /** Words of this one. */
  #shown = "";

  constructor(live: boolean, onCancel: () => void) {
    this.#live = live;
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
    const collected = new Collected();
    for await (const part of parts as unknown as AsyncIterable<StreamPart>) {
      if (part.type === "error") throw part.error;
      collected.push(part);
      if (begins.has(part.type) && this.#attempt > 1) continue;
      holds ||= !words.has(part.type) && !begins.has(part.type);
      const own = this.#renamed(part);
      if (holds) this.#held.push(own);
      else {
        if (part.type === "text-delta") this.#shown += part.delta;
        this.#controller?.enqueue(own);
      }
    }
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
      this.#controller?.enqueue(part.type === "finish" ? { ...part, finishReason } : part);
    }
    this.#controller?.close();
  }

  /** A recorded reply. */
  again(raw: Raw, dropped: ReadonlySet<string>): void {
    for (const part of partsFor(without(raw, dropped))) this.#controller?.enqueue(part);
    this.#controller?.close();
  }

  fail(error: unknown): void {
    this.#controller?.error(error);
  }

  /** Blocks of another model call have names of their own. */
  #renamed(part: StreamPart): StreamPart {
    return this.#attempt > 1 && words.has(part.type)
      ? ({ ...part, id: `${this.#attempt}-${(part as { id: string }).id}` } as StreamPart)
      : part;
  }
}
