// Unix sockets beside a lock: its holder listens, other processes of the same user connect. The folder lets nobody else in.
import { closeSync, existsSync, openSync, statSync } from "node:fs";
import { createConnection, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { remove, rename, setMode } from "./io.ts";

/** Addresses end at 107 bytes; a longer path is reached through its folder's descriptor where /proc is there. */
const addressLimit = 100;

const fileOf = (folder: string, name: string): string => join(folder, `${name}.sock`);

function address(folder: string, name: string): { path: string; release: () => void } {
  const path = fileOf(folder, name);
  if (Buffer.byteLength(path) <= addressLimit || !existsSync("/proc/self/fd")) return { path, release: () => {} };
  const fd = openSync(folder, "r");
  return { path: `/proc/self/fd/${fd}/${name}.sock`, release: () => closeSync(fd) };
}

export interface Listener {
  /** False when somebody has removed the file, or put another in its place: nobody can connect any more. */
  isThere(): boolean;
  /** Takes no more connections, waits for `settled`, ends those that are open and removes the file. */
  close(settled?: () => Promise<unknown>): Promise<void>;
}

/** Listens until closed; never keeps the process alive. The caller holds the lock, so a file that is there is a dead holder's. */
export async function listenAt(
  folder: string,
  name: string,
  onConnection: (socket: Socket) => void,
): Promise<Listener> {
  const file = fileOf(folder, name);
  remove(file);
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => {});
    onConnection(socket);
  });
  const at = address(folder, name);
  let own: number;
  try {
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(at.path, resolve);
    });
    server.unref();
    setMode(file, 0o600);
    own = statSync(file).ino;
  } catch (error) {
    server.close();
    at.release();
    throw error;
  }
  const isThere = (): boolean => statSync(file, { throwIfNoEntry: false })?.ino === own;
  /** Node removes the file when its server closes, also one that another holder has put there since: that one's is kept out of its way. */
  function setAside(): string | undefined {
    if (isThere()) return undefined;
    try {
      rename(file, `${file}.kept`);
      return `${file}.kept`;
    } catch {
      return undefined;
    }
  }
  return {
    isThere,
    async close(settled) {
      const another = setAside();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      await settled?.();
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

/** What says that nobody listens; the last one where the listener ended before it took the connection. */
const nobody = ["ECONNREFUSED", "ENOENT", "ECONNRESET"];

/** Undefined when nobody listens there. */
export async function connectTo(folder: string, name: string): Promise<Socket | undefined> {
  if (!existsSync(fileOf(folder, name))) return undefined;
  const at = address(folder, name);
  try {
    return await connect(at.path);
  } finally {
    at.release();
  }
}

function connect(path: string): Promise<Socket | undefined> {
  return new Promise((resolve, reject) => {
    const socket = createConnection(path);
    socket.once("connect", () => {
      socket.on("error", () => {});
      resolve(socket);
    });
    socket.once("error", (error: NodeJS.ErrnoException) => {
      if (nobody.includes(error.code ?? "")) resolve(undefined);
      else reject(error);
    });
  });
}

/** Calls `onLine` for each line; a peer whose line grows longer than `limit` characters is cut off. */
export function readLines(socket: Socket, limit: number, onLine: (line: string) => void): void {
  let rest = "";
  socket.setEncoding("utf8");
  socket.on("data", (text: string) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop() as string;
    for (const line of lines) {
      if (socket.destroyed) return;
      onLine(line);
    }
    if (rest.length > limit) socket.destroy();
  });
}
