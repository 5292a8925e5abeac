// The owner's side of the keeper: starts sandboxes, and CRIU inside of them. What goes over the wire is in native/sandbox/program.h.
import { type ChildProcess, spawn } from "node:child_process";
import type { Socket } from "node:net";
import { getSystemErrorName } from "node:util";
import { RewindError } from "../../errors.ts";
import type { CriuChannel } from "./processes/criu-channel.ts";

const frame = { start: 1, criu: 2, data: 3, close: 4, ended: 5, started: 6, failed: 7, steps: 8 } as const;
const headLength = 9;

/** How a process ended: the wait status of the kernel. */
export interface Ended {
  readonly exitCode: number | null;
  readonly signal: number | null;
}

export interface Started {
  /** In the host's pid namespace. */
  readonly pid: number;
  readonly ended: Promise<Ended>;
}

export interface CriuPlace {
  /** Host pid of the sandbox's init. */
  readonly init: number;
  /** Host path of the folder for images, which CRIU sees as descriptor 9. */
  readonly images: string;
  /** Host path of the folder that CRIU's command names as descriptor 8. */
  readonly prefix: string;
  /** Host path of the cgroup that it runs in, and what it restores with it. */
  readonly cgroup: string;
  /** Folders of more groups that it joins. */
  readonly joined: readonly string[];
  /** Its pid inside; 0: any. */
  readonly pid: number;
  /** Host path of a library that is loaded into it; undefined for none. */
  readonly library: string | undefined;
  /** The library protects the memory of the processes, so that the next dump finds what was written since. */
  readonly tracks: boolean;
  readonly command: readonly string[];
}

interface Waiting {
  resolve(pid: number): void;
  reject(error: unknown): void;
}

/** Receives the frames of one id. */
interface Listener {
  onData(bytes: Buffer): void;
  onEnded(status: number): void;
}

export class Keeper {
  readonly #process: ChildProcess;
  readonly #socket: Socket;
  readonly #waiting = new Map<number, Waiting>();
  readonly #listeners = new Map<number, Listener>();
  readonly #gone: Promise<void>;
  #next = 1;
  #answers = 0;
  #received: Buffer = Buffer.alloc(0);
  #closed = false;

  private constructor(process: ChildProcess) {
    this.#process = process;
    this.#socket = process.stdio[3] as Socket;
    this.#gone = new Promise((resolve) => {
      process.once("exit", () => {
        this.#lost();
        resolve();
      });
    });
    process.once("error", () => this.#lost());
    this.#socket.on("error", () => {});
    this.#socket.on("data", (bytes: Buffer) => this.#take(bytes));
    process.unref();
    this.#socket.unref();
  }

  /** What waits for an answer keeps the owner's event loop alive; a sandbox that only lives does not: an agent that is done ends. */
  #waits(by: 1 | -1): void {
    this.#answers += by;
    if (this.#answers > 0) this.#socket.ref();
    else this.#socket.unref();
  }

  static open(program: string): Keeper {
    return new Keeper(spawn(program, ["keep"], { cwd: "/", env: {}, stdio: ["ignore", "ignore", "inherit", "pipe"] }));
  }

  /** Makes a sandbox; see native/sandbox/launch.c for the instructions. */
  async start(instructions: readonly string[]): Promise<Started> {
    const id = this.#next++;
    const ended = this.#listen(id, () => {});
    const pid = await this.#request(id, frame.start, instructions);
    return { pid, ended };
  }

  /** Changes the view of a sandbox that lives; paths are those inside. */
  async change(init: number, steps: readonly string[]): Promise<void> {
    await this.#request(this.#next++, frame.steps, [`${init}`, ...steps]);
  }

  async criu(place: CriuPlace): Promise<CriuChannel> {
    const id = this.#next++;
    const messages: Uint8Array[] = [];
    let over = false;
    let wake: (() => void) | undefined;
    const ended = this.#listen(id, (bytes) => {
      messages.push(bytes);
      wake?.();
    });
    void ended.then(() => {
      over = true;
      wake?.();
    });
    await this.#request(id, frame.criu, [
      `${place.init}`,
      place.images,
      place.prefix,
      place.cgroup,
      place.joined.join("\n"),
      `${place.pid}`,
      place.library ?? "",
      place.tracks ? "memory" : "",
      ...place.command,
    ]);
    return {
      send: (message) => this.#put(id, frame.data, message),
      receive: async () => {
        this.#waits(1);
        while (messages.length === 0 && !over) {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
        this.#waits(-1);
        return messages.shift() ?? null;
      },
      close: async () => {
        if (!over) this.#put(id, frame.close, new Uint8Array());
        await this.wait(ended);
      },
    };
  }

  /** Waits for the end of what it started, and keeps the owner's event loop alive meanwhile. */
  async wait(ended: Promise<Ended>): Promise<Ended> {
    this.#waits(1);
    try {
      return await ended;
    } finally {
      this.#waits(-1);
    }
  }

  /** Ends it, and every sandbox that it made. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#socket.end();
    if (this.#process.exitCode === null && this.#process.signalCode === null) {
      this.#process.ref();
      await this.#gone;
    }
  }

  #listen(id: number, onData: (bytes: Buffer) => void): Promise<Ended> {
    return new Promise((resolve) => {
      this.#listeners.set(id, {
        onData,
        onEnded: (status) => {
          this.#listeners.delete(id);
          const signal = status & 0x7f;
          resolve(signal === 0 ? { exitCode: (status >> 8) & 0xff, signal: null } : { exitCode: null, signal });
        },
      });
    });
  }

  async #request(id: number, kind: number, strings: readonly string[]): Promise<number> {
    if (strings.some((one) => one.includes("\0"))) throw new TypeError("a string for the keeper holds a NUL");
    this.#waits(1);
    try {
      return await new Promise<number>((resolve, reject) => {
        this.#waiting.set(id, { resolve, reject });
        this.#put(id, kind, Buffer.from(strings.map((one) => `${one}\0`).join(""), "latin1"));
      });
    } finally {
      this.#waits(-1);
    }
  }

  #put(id: number, kind: number, payload: Uint8Array): void {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null || this.#socket.destroyed) {
      this.#lost();
      return;
    }
    const head = Buffer.alloc(headLength);
    head.writeUInt32LE(5 + payload.length, 0);
    head.writeUInt32LE(id, 4);
    head.writeUInt8(kind, 8);
    this.#socket.write(Buffer.concat([head, payload]));
  }

  #take(bytes: Buffer): void {
    this.#received = this.#received.length === 0 ? bytes : Buffer.concat([this.#received, bytes]);
    while (this.#received.length >= headLength) {
      const total = this.#received.readUInt32LE(0);
      if (this.#received.length < 4 + total) return;
      const payload = Buffer.from(this.#received.subarray(headLength, 4 + total));
      this.#dispatch(this.#received.readUInt32LE(4), this.#received.readUInt8(8), payload);
      this.#received = this.#received.subarray(4 + total);
    }
  }

  #dispatch(id: number, kind: number, payload: Buffer): void {
    const waiting = this.#waiting.get(id);
    if (kind === frame.data) this.#listeners.get(id)?.onData(payload);
    else if (kind === frame.ended) this.#listeners.get(id)?.onEnded(payload.readInt32LE(0));
    else if (kind === frame.started) {
      this.#waiting.delete(id);
      waiting?.resolve(payload.readInt32LE(0));
    } else if (kind === frame.failed) {
      this.#waiting.delete(id);
      this.#listeners.delete(id);
      const name = getSystemErrorName(-payload.readInt32LE(0));
      waiting?.reject(
        new RewindError("SANDBOX_FAILED", `The sandbox could not be made: ${payload.toString("utf8", 4)}: ${name}.`, {
          hint: "Run `agentrewind doctor`: it names what this machine lacks for sandboxes.",
          details: { error: name },
        }),
      );
    }
  }

  #lost(): void {
    const error = new RewindError("SANDBOX_FAILED", "The process that keeps the sandbox has ended.", {
      hint: this.#closed
        ? "It was closed; open the workspace again."
        : "Open the workspace again: the last pair comes back.",
    });
    for (const [, waiting] of this.#waiting) waiting.reject(error);
    this.#waiting.clear();
    for (const [, listener] of this.#listeners) listener.onEnded(9);
  }
}
