// The control socket: other processes hand their requests to the holder of an environment's lock. One JSON object a line, both ways.
import { closeSync, existsSync, openSync, statSync } from "node:fs";
import { createConnection, createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { type ErrorCode, isRewindError, RewindError } from "../errors.ts";
import { remove, rename, setMode } from "./io.ts";

export interface ControlRequest {
  readonly command: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}

/** @param mayBegin called once, right before the request is carried out: false when its caller has gone or was told that it will not be. */
export type ControlHandler = (request: ControlRequest, mayBegin: () => boolean) => Promise<unknown>;

type Reply =
  | { readonly ok: unknown }
  | { readonly error: { code: ErrorCode; message: string; hint?: string; details?: Record<string, unknown> } };

/** Unix socket addresses end at 107 bytes; a longer path is reached through its folder's descriptor where /proc is there. */
const addressLimit = 100;

function address(folder: string, environment: string): { path: string; release: () => void } {
  const path = join(folder, `${environment}.sock`);
  if (Buffer.byteLength(path) <= addressLimit || !existsSync("/proc/self/fd")) return { path, release: () => {} };
  const fd = openSync(folder, "r");
  return { path: `/proc/self/fd/${fd}/${environment}.sock`, release: () => closeSync(fd) };
}

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
  remove(join(folder, `${environment}.sock`));
  const sockets = new Set<Socket>();
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
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => {});
    void answerAll(socket, (line) => {
      const answered = answer(socket, line, handleUntilClosed);
      underWay.add(answered);
      return answered.finally(() => underWay.delete(answered));
    }).catch(() => {});
  });
  const at = address(folder, environment);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(at.path, resolve);
  });
  const file = join(folder, `${environment}.sock`);
  setMode(file, 0o600);
  const own = statSync(file).ino;
  server.unref();
  /** Node removes the file when its server closes, also one that another holder has put there since: that one's is kept out of its way. */
  function setAside(): string | undefined {
    if (statSync(file, { throwIfNoEntry: false })?.ino === own) return undefined;
    try {
      rename(file, `${file}.kept`);
      return `${file}.kept`;
    } catch {
      return undefined;
    }
  }
  return {
    async close() {
      closing = true;
      const another = setAside();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      refuse();
      await Promise.all(underWay);
      for (const socket of sockets) socket.destroySoon();
      await closed;
      at.release();
      try {
        if (another !== undefined) rename(another, file);
        else remove(file);
      } catch {
        // Nobody listens there, and the next holder takes its place.
      }
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
  if (!existsSync(join(folder, `${environment}.sock`))) return false;
  const at = address(folder, environment);
  try {
    const socket = await connect(at.path);
    socket?.destroy();
    return socket !== undefined;
  } finally {
    at.release();
  }
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
  if (!existsSync(join(folder, `${environment}.sock`))) return false;
  const at = address(folder, environment);
  let socket: Socket | undefined;
  try {
    socket = await connect(at.path);
    if (socket === undefined) return false;
    // Whatever it answers, it lives.
    socket.write(`${JSON.stringify({ command: "ping", arguments: {} } satisfies ControlRequest)}\n`);
    const answered = firstLine(socket).then(
      () => true,
      () => false,
    );
    return await Promise.race([answered, sleep(ms, false)]);
  } finally {
    socket?.destroy();
    at.release();
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
  if (!existsSync(join(folder, `${environment}.sock`))) return undefined;
  const at = address(folder, environment);
  try {
    const socket = await connect(at.path);
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
  } finally {
    at.release();
  }
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

function connect(path: string): Promise<Socket | undefined> {
  return new Promise((resolve, reject) => {
    const socket = createConnection(path);
    socket.once("connect", () => {
      socket.on("error", () => {});
      resolve(socket);
    });
    socket.once("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "ECONNREFUSED" || error.code === "ENOENT") resolve(undefined);
      else reject(error);
    });
  });
}
