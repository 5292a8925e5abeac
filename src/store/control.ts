// The control socket: other processes hand their requests to the holder of an environment's lock. One JSON object a line, both ways.
import type { Socket } from "node:net";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { type ErrorCode, isRewindError, RewindError } from "../errors.ts";
import { connectTo, listenAt } from "./socket.ts";

export interface ControlRequest {
  readonly command: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}

/** @param mayBegin called once, right before the request is carried out: false when its caller has gone or was told that it will not be. */
export type ControlHandler = (request: ControlRequest, mayBegin: () => boolean) => Promise<unknown>;

type Reply =
  | { readonly ok: unknown }
  | { readonly error: { code: ErrorCode; message: string; hint?: string; details?: Record<string, unknown> } };

export interface ControlServer {
  /** Takes no more requests, refuses those that have not begun (CLOSED), answers the others, and ends. */
  close(): Promise<void>;
}

/** Serves requests until closed. The caller holds the lock, so a socket file that is there is a dead holder's. */
export async function serveControl(
  folder: string,
  environment: string,
  handle: ControlHandler,
): Promise<ControlServer> {
  const underWay = new Set<Promise<unknown>>();
  let closing = false;
  let refuse = (): void => {};
  const refused = new Promise<void>((resolve) => {
    refuse = resolve;
  });
  const handleUntilClosed: ControlHandler = async (request, mayBegin) => {
    if (closing) throw closedError();
    let begun = false;
    const handled = handle(request, () => {
      begun = !closing && mayBegin();
      return begun;
    });
    handled.catch(() => {});
    return Promise.race([
      handled,
      refused.then(() => {
        if (begun) return handled;
        throw closedError();
      }),
    ]);
  };
  const listener = await listenAt(folder, environment, (socket) => {
    void answerAll(socket, (line) => {
      const answered = answer(socket, line, handleUntilClosed);
      underWay.add(answered);
      return answered.finally(() => underWay.delete(answered));
    }).catch(() => {});
  });
  return {
    close() {
      closing = true;
      return listener.close(() => {
        refuse();
        return Promise.all(underWay);
      });
    },
  };
}

function closedError(): RewindError {
  return new RewindError("CLOSED", "This workspace was closed.", { hint: "Send the request again." });
}

async function answerAll(socket: Socket, answerLine: (line: string) => Promise<void>): Promise<void> {
  for await (const line of createInterface({ input: socket })) await answerLine(line);
}

async function answer(socket: Socket, line: string, handle: ControlHandler): Promise<void> {
  let reply: Reply;
  try {
    reply = { ok: await handle(JSON.parse(line) as ControlRequest, () => !socket.destroyed) };
  } catch (error) {
    reply = {
      error: isRewindError(error) ? error.toJSON() : { code: "CONTROL_FAILED", message: (error as Error).message },
    };
  }
  if (!socket.destroyed) socket.write(`${JSON.stringify(reply)}\n`);
}

/** True when a process holds the environment and answers. */
export async function isHeld(folder: string, environment: string): Promise<boolean> {
  const socket = await connectTo(folder, environment);
  socket?.destroy();
  return socket !== undefined;
}

/** False when nothing answers for so long: the holder is stopped or hangs. One that begins or ends is waited for. */
export async function answers(folder: string, environment: string, ms: number): Promise<boolean> {
  const deadline = Date.now() + ms;
  for (let left = ms; left > 0; left = deadline - Date.now()) {
    // Again and again: the socket that was there may have been another's.
    if (await answersOnce(folder, environment, Math.min(left, tryMs))) return true;
    await sleep(pauseMs);
  }
  return false;
}
const tryMs = 500;
const pauseMs = 50;

async function answersOnce(folder: string, environment: string, ms: number): Promise<boolean> {
  const socket = await connectTo(folder, environment);
  if (socket === undefined) return false;
  try {
    // Whatever it answers, it lives.
    socket.write(`${JSON.stringify({ command: "ping", arguments: {} } satisfies ControlRequest)}\n`);
    const answered = firstLine(socket).then(
      () => true,
      () => false,
    );
    return await Promise.race([answered, sleep(ms, false)]);
  } finally {
    socket.destroy();
  }
}

/**
 * Hands a request to the holder; undefined when nobody holds the environment.
 * @throws what the holder answered; CONTROL_FAILED with `details.ended` when it ended before: what it had begun may be done or not
 */
export async function askHolder(
  folder: string,
  environment: string,
  request: ControlRequest,
): Promise<{ ok: unknown } | undefined> {
  const socket = await connectTo(folder, environment);
  if (socket === undefined) return undefined;
  socket.write(`${JSON.stringify(request)}\n`);
  const line = await firstLine(socket);
  socket.destroy();
  const reply = JSON.parse(line) as Reply;
  if ("ok" in reply) return { ok: reply.ok };
  const { code, message, hint, details } = reply.error;
  throw new RewindError(code, message, {
    ...(hint === undefined ? {} : { hint }),
    ...(details === undefined ? {} : { details }),
  });
}

async function firstLine(socket: Socket): Promise<string> {
  let cause: unknown;
  try {
    for await (const line of createInterface({ input: socket })) return line;
  } catch (error) {
    // EPIPE or ECONNRESET, which the interface passes on.
    cause = error;
  }
  throw new RewindError("CONTROL_FAILED", "The process that holds this workspace ended before it answered.", {
    hint: "Run the command again.",
    details: { ended: true },
    cause,
  });
}
