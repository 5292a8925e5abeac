// What processes that share an engine say to each other: one JSON object a line, both ways. A process that asks says hello first.
import type { Socket } from "node:net";
import { z } from "zod";
import { readLines } from "../../store/socket.ts";

/** Raised with every change after which an older process would understand something else. */
export const protocolVersion = 1;

/** Of the lock and the socket in the store's folder of locks. */
export const leaseName = "engine";

const id = z.int().min(0);
const name = z.string().max(256);

const ping = z.strictObject({ say: z.literal("ping") });
const pong = z.strictObject({ say: z.literal("pong") });

const askerSays = z.discriminatedUnion("say", [
  z.strictObject({ say: z.literal("hello"), version: z.int() }),
  z.strictObject({
    say: z.literal("ask"),
    id,
    kind: z.enum(["capture", "persist", "restore"]),
    environment: name,
    device: name,
    promoted: z.boolean(),
    running: z.boolean(),
  }),
  z.strictObject({ say: z.literal("promote"), id }),
  z.strictObject({ say: z.literal("end"), id }),
  ping,
  pong,
]);

const holderSays = z.discriminatedUnion("say", [
  z.strictObject({ say: z.literal("welcome") }),
  // Of every version there will be.
  z.object({ say: z.literal("refused"), version: z.int() }),
  z.strictObject({ say: z.literal("granted"), id }),
  ping,
  pong,
]);

export type AskerSays = z.infer<typeof askerSays>;
export type HolderSays = z.infer<typeof holderSays>;

const lineLimit = 4096;

/** So many beats without an answer, and the other end counts as stopped. */
export const beatsInSilence = 4;

/** One end of a connection. */
export class Line<In, Out> {
  readonly #socket: Socket;
  readonly #form: z.ZodType<In>;
  #unanswered = 0;
  #open = true;

  /** @param ended called once, also when `close` was called; `sense` is false when what came was none */
  constructor(socket: Socket, form: z.ZodType<In>, heard: (said: In) => void, ended: (sense: boolean) => void) {
    this.#socket = socket;
    this.#form = form;
    const end = (sense: boolean): void => {
      if (!this.#open) return;
      this.#open = false;
      socket.destroy();
      ended(sense);
    };
    socket.on("close", () => end(true));
    readLines(socket, lineLimit, (line) => {
      if (!this.#open) return;
      const said = this.#parse(line);
      if (said === undefined) return end(false);
      this.#unanswered = 0;
      const word = (said as AskerSays | HolderSays).say;
      if (word === "ping") this.#write({ say: "pong" });
      else if (word !== "pong") heard(said);
    });
    this.close = () => end(true);
  }

  readonly close: () => void;

  say(said: Out): void {
    this.#write(said);
  }

  #write(said: unknown): void {
    if (this.#open) this.#socket.write(`${JSON.stringify(said)}\n`);
  }

  /**
   * Call it again and again while something is expected of the other end: false when it does not answer. Counts the calls and not the time: where
   * this process itself stood still, the answers may lie unread.
   */
  beat(): boolean {
    if (this.#unanswered === 0) this.#write({ say: "ping" });
    return ++this.#unanswered <= beatsInSilence;
  }

  #parse(line: string): In | undefined {
    try {
      return this.#form.parse(JSON.parse(line));
    } catch {
      return undefined;
    }
  }
}

export type AskersLine = Line<HolderSays, AskerSays>;
export type HoldersLine = Line<AskerSays, HolderSays>;

export const askersLine = (
  socket: Socket,
  heard: (said: HolderSays) => void,
  ended: (sense: boolean) => void,
): AskersLine => new Line(socket, holderSays, heard, ended);

export const holdersLine = (
  socket: Socket,
  heard: (said: AskerSays) => void,
  ended: (sense: boolean) => void,
): HoldersLine => new Line(socket, askerSays, heard, ended);
