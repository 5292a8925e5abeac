// The folder through which a sandbox is talked to, /run/agentrewind inside. Whoever is root inside can put anything there: no link is followed, nothing but a regular file is
// read, and nobody is waited for.
import { closeSync, constants, fchmodSync, fstatSync, ftruncateSync, openSync, readSync, writeSync } from "node:fs";
import { join } from "node:path";
import { asWriteFailure, RewindError, systemCode } from "../../errors.ts";
import { decodeEntries, type Native } from "../../native.ts";
import { isDirectory } from "./lower.ts";

/** Where it lies below the live folder, and inside. */
export const runLayer = "run";
export const runPath = "/run/agentrewind";

const bytes = (path: string): Buffer => Buffer.from(path);
/** What an entry that is not there, or is something else than it should be, is told by. */
const absent = ["ENOENT", "ENOTDIR", "ELOOP", "EXDEV", "ENXIO", "EISDIR"];
const longest = 1 << 20;

export class RunFolder {
  /** On the host. */
  readonly path: string;
  readonly #native: Native;

  constructor(path: string, native: Native) {
    this.path = path;
    this.#native = native;
  }

  /** Host path, to be watched only. */
  at(path: string): string {
    return join(this.path, path);
  }

  /** [] where there is no such folder. */
  names(folder: string): string[] {
    const records = this.#unlessAbsent((root) => this.#native.readDirectory(root, bytes(folder)));
    return records === undefined ? [] : decodeEntries(records).map(({ name }) => Buffer.from(name).toString());
  }

  has(path: string): boolean {
    return this.#unlessAbsent((root) => this.#native.stat(root, bytes(path))) != null;
  }

  /** undefined where there is no such file. */
  read(path: string): string | undefined {
    return this.#onFile(path, (fd, size) => readPart(fd, 0, Math.min(size, longest)).toString("latin1"));
  }

  /** Changes with the file's content; two subvolumes that hold the same unchanged file give the same. undefined where there is no such file. */
  identity(path: string): string | undefined {
    return this.#unlessAbsent((root) => {
      const fd = this.#native.open(root, bytes(path), constants.O_RDONLY | constants.O_NONBLOCK, 0);
      try {
        const { ino, size, ctimeNs } = fstatSync(fd, { bigint: true });
        return `${ino} ${size} ${ctimeNs}`;
      } finally {
        closeSync(fd);
      }
    });
  }

  size(path: string): number {
    return this.#onFile(path, (_, size) => size) ?? 0;
  }

  /** At most `length` bytes from `offset` on. */
  part(path: string, offset: number, length: number): Buffer {
    return (
      this.#onFile(path, (fd, size) => readPart(fd, offset, Math.max(0, Math.min(length, size - offset)))) ??
      Buffer.alloc(0)
    );
  }

  /** @throws COMMAND_FAILED where the folder is not what it was, DISK_FULL and the like */
  write(path: string, content: string | Uint8Array, mode = 0o600): void {
    const data = typeof content === "string" ? Buffer.from(content) : content;
    this.#change((root) => {
      const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_NONBLOCK;
      const fd = this.#native.open(root, bytes(path), flags, 0o600);
      try {
        if (!fstatSync(fd).isFile()) throw Object.assign(new Error(`${path} is no file`), { code: "ENOTDIR" });
        ftruncateSync(fd, 0);
        fchmodSync(fd, mode);
        for (let done = 0; done < data.length; ) done += writeSync(fd, data, done);
      } finally {
        closeSync(fd);
      }
    });
  }

  /** What is there stays. */
  makeFolder(path: string): void {
    this.#change((root) => this.#unlessThere(() => this.#native.makeDirectory(root, bytes(path), 0o700)));
  }

  makeFifo(path: string): void {
    this.#change((root) => this.#unlessThere(() => this.#native.makeNode(root, bytes(path), 0o10600, 0, 0)));
  }

  /** Writes whole lines into a named pipe that somebody inside reads. @throws ENXIO when nobody does */
  tell(pipe: string, lines: string): void {
    this.#withRoot((root) => {
      const fd = this.#native.open(root, bytes(pipe), constants.O_WRONLY | constants.O_NONBLOCK, 0);
      try {
        if (!fstatSync(fd).isFIFO()) throw Object.assign(new Error(`${pipe} is no pipe`), { code: "ENOTSUP" });
        writeSync(fd, `${lines}\n`);
      } finally {
        closeSync(fd);
      }
    });
  }

  /** With all that is below it; nothing where it is not there. */
  remove(path: string): void {
    const found = this.#unlessAbsent((root) => this.#native.stat(root, bytes(path)));
    const [entry] = found == null ? [] : decodeEntries(found);
    if (entry === undefined) return;
    if (isDirectory(entry)) this.#removeFolder(path);
    else this.#unlessAbsent((root) => this.#native.unlink(root, bytes(path)));
  }

  /** What ended in there may still be written down meanwhile. */
  #removeFolder(path: string): void {
    for (let tries = 1; ; tries++) {
      for (const name of this.names(path)) this.remove(`${path}/${name}`);
      try {
        this.#unlessAbsent((root) => this.#native.removeDirectory(root, bytes(path)));
        return;
      } catch (error) {
        if (systemCode(error) !== "ENOTEMPTY") throw error;
        if (tries === mostTries) throw busyError(error);
      }
    }
  }

  #withRoot<T>(work: (root: number) => T): T {
    const root = openSync(this.path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
    try {
      return work(root);
    } finally {
      closeSync(root);
    }
  }

  #onFile<T>(path: string, work: (fd: number, size: number) => T): T | undefined {
    return this.#unlessAbsent((root) => {
      const fd = this.#native.open(root, bytes(path), constants.O_RDONLY | constants.O_NONBLOCK, 0);
      try {
        const stat = fstatSync(fd);
        return stat.isFile() ? work(fd, stat.size) : undefined;
      } finally {
        closeSync(fd);
      }
    });
  }

  #unlessAbsent<T>(work: (root: number) => T): T | undefined {
    try {
      return this.#withRoot(work);
    } catch (error) {
      if (absent.includes(systemCode(error) ?? "")) return undefined;
      throw error;
    }
  }

  #unlessThere(work: () => void): void {
    try {
      work();
    } catch (error) {
      if (systemCode(error) !== "EEXIST") throw error;
    }
  }

  #change(work: (root: number) => void): void {
    try {
      this.#withRoot(work);
    } catch (error) {
      if (absent.includes(systemCode(error) ?? "")) throw goneError(error);
      throw asWriteFailure(error, this.path);
    }
  }
}

const mostTries = 20;

const busyError = (cause: unknown): RewindError =>
  new RewindError("COMMAND_FAILED", "Something in the sandbox keeps making files below /run/agentrewind.", {
    hint: "End it: that folder is the sandbox's own.",
    cause,
  });

export const goneError = (cause?: unknown): RewindError =>
  new RewindError("COMMAND_FAILED", "A command removed or replaced /run/agentrewind, through which commands are run.", {
    hint: "Leave that folder alone: rewind, or open the workspace again.",
    cause,
  });

function readPart(fd: number, offset: number, length: number): Buffer {
  const buffer = Buffer.allocUnsafe(length);
  return buffer.subarray(0, readSync(fd, buffer, 0, length, offset));
}
