// Files of the workspace as a running sandbox sees it, read and written by the owner: links are followed as inside, and none leads out of the workspace.
import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { RewindError, systemCode } from "../../errors.ts";
import type { Native } from "../../native.ts";
import { callerPath, toBytes } from "../directory/names.ts";
import type { DirectoryEntry } from "../environment.ts";

/** As the kernel allows on the way to one file. */
const mostLinks = 40;

export class TreeFiles {
  readonly #native: Native;
  readonly #workspace: string;
  readonly #root: () => string;

  /** @param root host path of the sandbox's root directory, now */
  constructor(native: Native, workspace: string, root: () => string) {
    this.#native = native;
    this.#workspace = workspace;
    this.#root = root;
  }

  /** Absolute, inside. @throws PATH_OUTSIDE */
  inside(path: string): string {
    const below = toBytes(callerPath(path)).toString("utf8");
    return below === "" ? this.#workspace : join(this.#workspace, below);
  }

  readFile(path: string): Uint8Array {
    // Nobody is waited for at a named pipe.
    return this.#open(path, this.#resolve(path), constants.O_RDONLY | constants.O_NONBLOCK, (fd) => readFileSync(fd));
  }

  /** The file is replaced whole, with the mode and owner of the one that was there; folders on the way are made. */
  writeFile(path: string, data: string | Uint8Array): void {
    const target = this.#target(path);
    const bytes = typeof data === "string" ? Buffer.from(data) : data;
    this.#within(path, dirname(target), (folder) => {
      const place = join(folder, basename(target));
      const before = lstatSync(place, { throwIfNoEntry: false });
      const unfinished = join(folder, `.agentrewind-${process.pid}`);
      const fd = openSync(unfinished, "wx", 0o666);
      try {
        for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done);
        if (before !== undefined) {
          fchownSync(fd, before.uid, before.gid);
          fchmodSync(fd, before.mode & 0o7777);
        }
        renameSync(unfinished, place);
      } catch (error) {
        rmSync(unfinished, { force: true });
        throw error;
      } finally {
        closeSync(fd);
      }
    });
  }

  list(path: string): DirectoryEntry[] {
    return this.#within(path, this.#resolve(path), (folder) =>
      readdirSync(folder, { withFileTypes: true }).map((entry) => ({ name: entry.name, type: typeOf(entry) })),
    );
  }

  /** The real path of the file that is there or is to be; folders on the way are made. */
  #target(path: string): string {
    const real = this.#resolve(path);
    this.#makeFolders(path, dirname(real));
    return real;
  }

  #makeFolders(path: string, folder: string): void {
    if (folder.length <= this.#workspace.length) return;
    this.#makeFolders(path, dirname(folder));
    this.#within(path, dirname(folder), (at) => {
      const place = join(at, basename(folder));
      if (lstatSync(place, { throwIfNoEntry: false }) === undefined) mkdirSync(place);
    });
  }

  /** Where the path leads inside, with all links followed, whether anything is there or not. @throws PATH_OUTSIDE */
  #resolve(path: string): string {
    const root = openSync(this.#root(), constants.O_RDONLY | constants.O_DIRECTORY);
    try {
      let done: string[] = [];
      const left = this.inside(path).split("/");
      for (let links = 0; left.length > 0; ) {
        const part = left.shift() as string;
        if (part === "" || part === ".") continue;
        if (part === "..") {
          done.pop();
          continue;
        }
        const target = linkAt(this.#native, root, [...done, part].join("/"));
        if (target === undefined) {
          done.push(part);
          continue;
        }
        if (++links > mostLinks) throw outside(path);
        if (target.startsWith("/")) done = [];
        left.unshift(...target.split("/"));
      }
      const real = `/${done.join("/")}`;
      if (real !== this.#workspace && !real.startsWith(`${this.#workspace}/`)) throw outside(path);
      return real;
    } finally {
      closeSync(root);
    }
  }

  #within<T>(path: string, folder: string, work: (folder: string) => T): T {
    return this.#open(path, folder, constants.O_RDONLY | constants.O_DIRECTORY, (fd) => work(`/proc/self/fd/${fd}`));
  }

  #open<T>(path: string, inside: string, flags: number, work: (fd: number) => T): T {
    const root = openSync(this.#root(), constants.O_RDONLY | constants.O_DIRECTORY);
    try {
      const fd = this.#native.openInside(root, Buffer.from(inside), flags, 0);
      try {
        // Somebody inside may have put a link in the way since it was resolved.
        const real = readlinkSync(`/proc/self/fd/${fd}`);
        if (real !== this.#workspace && !real.startsWith(`${this.#workspace}/`)) throw outside(path);
        if ((flags & constants.O_DIRECTORY) === 0 && fstatSync(fd).isDirectory())
          throw Object.assign(new Error(`EISDIR: ${path} is a folder`), { code: "EISDIR" });
        return work(fd);
      } finally {
        closeSync(fd);
      }
    } catch (error) {
      const code = systemCode(error);
      if (code === "ENOENT" || code === "ENOTDIR") {
        throw new RewindError("NO_FILE", `There is no ${path === "" ? "workspace" : path}.`, {
          hint: "List the folder to see what is there.",
          cause: error,
        });
      }
      throw error;
    } finally {
      closeSync(root);
    }
  }
}

/** undefined where no link is. */
function linkAt(native: Native, root: number, path: string): string | undefined {
  try {
    return native.readLink(root, Buffer.from(path)).toString();
  } catch (error) {
    if (["EINVAL", "ENOENT", "ENOTDIR"].includes(systemCode(error) ?? "")) return undefined;
    throw error;
  }
}

const outside = (path: string): RewindError =>
  new RewindError("PATH_OUTSIDE", `${path} leads out of the workspace.`, {
    hint: "Give a path below the workspace; what lies elsewhere in the sandbox is reached by commands.",
  });

function typeOf(entry: {
  isFile(): boolean;
  isDirectory(): boolean;
  isSymbolicLink(): boolean;
}): DirectoryEntry["type"] {
  if (entry.isFile()) return "file";
  if (entry.isDirectory()) return "directory";
  return entry.isSymbolicLink() ? "symlink" : "other";
}
