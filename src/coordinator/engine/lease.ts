// Whoever holds the lease grants for all: its own jobs by calls, those of other processes through the socket beside the lock.
import type { Socket } from "node:net";
import { type Lock, tryLock } from "../../store/lock.ts";
import { type Listener, listenAt } from "../../store/socket.ts";
import type { Place } from "./engine.ts";
import {
  type AskerSays,
  beatsInSilence,
  type HoldersLine,
  holdersLine,
  leaseName,
  protocolVersion,
} from "./protocol.ts";
import type { Queue } from "./queue.ts";

/** Of one process. */
const placesAtMost = 10_000;

/** Undefined when another process holds it. The kernel drops it with its holder. */
export const tryLease = (folder: string): Lock | undefined => tryLock(folder, leaseName);

export interface Serving {
  close(): Promise<void>;
}

/**
 * Grants the jobs of other processes out of `queue`. Needs the lease. Listens anew where the socket's file has gone; lets go of processes that hold
 * what others wait for and do not answer.
 * @param failed called when nobody can be reached, once until that is mended
 */
export function serveLease(
  folder: string,
  queue: Queue,
  { silenceMs }: { readonly silenceMs: number },
  failed: (error: unknown) => void,
): Serving {
  const askers = new Set<Asker>();
  let listener: Listener | undefined;
  let told = false;
  const listen = async (): Promise<void> => {
    if (listener?.isThere() === true) return;
    try {
      // The connections that it has end: their owners come to the new one.
      await listener?.close();
      listener = undefined;
      listener = await listenAt(folder, leaseName, (socket) => {
        // An idle connection keeps nobody alive.
        socket.unref();
        const asker = new Asker(socket, queue, () => askers.delete(asker));
        askers.add(asker);
      });
      told = false;
    } catch (error) {
      if (!told) failed(error);
      told = true;
    }
  };
  let listening = listen();
  const timer = setInterval(() => {
    listening = listening.then(listen);
    if (queue.waiting > 0) for (const asker of askers) asker.beat();
  }, silenceMs / beatsInSilence);
  timer.unref();
  return {
    async close() {
      clearInterval(timer);
      await listening;
      await listener?.close();
    },
  };
}

/** A process that asks. Its end is the end of all that it had. */
class Asker {
  readonly #line: HoldersLine;
  readonly #queue: Queue;
  readonly #places = new Map<number, Place>();
  #greeted = false;

  constructor(socket: Socket, queue: Queue, gone: () => void) {
    this.#queue = queue;
    this.#line = holdersLine(
      socket,
      (said) => this.#hear(said),
      () => {
        gone();
        for (const place of [...this.#places.values()]) place.end();
        this.#places.clear();
      },
    );
  }

  beat(): void {
    if (this.#places.size > 0 && !this.#line.beat()) this.#line.close();
  }

  #hear(said: AskerSays): void {
    if (said.say === "hello") {
      if (said.version !== protocolVersion) {
        this.#line.say({ say: "refused", version: protocolVersion });
        this.#line.close();
      } else {
        this.#greeted = true;
        this.#line.say({ say: "welcome" });
      }
    } else if (!this.#greeted || this.#places.size > placesAtMost) this.#line.close();
    else if (said.say === "ask") this.#ask(said);
    else if (said.say === "promote") this.#places.get(said.id)?.promote();
    else if (said.say === "end") {
      const place = this.#places.get(said.id);
      this.#places.delete(said.id);
      place?.end();
    }
  }

  #ask(said: Extract<AskerSays, { say: "ask" }>): void {
    const { id } = said;
    if (this.#places.has(id)) this.#line.close();
    else
      this.#places.set(
        id,
        this.#queue.ask(said, () => this.#line.say({ say: "granted", id })),
      );
  }
}
