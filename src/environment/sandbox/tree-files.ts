// Files of the workspace as a running sandbox sees it, read and written by the owner: links are followed as inside, and none leads out of the workspace.
import {
  closeSync,
  constants,
  fchmodSync,
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

/** O_PATH, which Node does not name: the place alone, whatever it is. */
const openPath = 0o10000000;

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
    return this.#open(path, this.inside(path), constants.O_RDONLY, (fd) => readFileSync(fd));
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
        if (before !== undefined) fchmodSync(fd, before.mode & 0o7777);
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
    return this.#within(path, this.inside(path), (folder) =>
      readdirSync(folder, { withFileTypes: true }).map((entry) => ({ name: entry.name, type: typeOf(entry) })),
    );
  }

  /** Where a file of that name is or will be, free of links; its folder is there. */
  #target(path: string): string {
    const wanted = this.inside(path);
    try {
      return this.#open(path, wanted, openPath, (_, real) => real);
    } catch (error) {
      if (systemCode((error as RewindError).cause) !== "ENOENT") throw error;
    }
    const folder = this.#makeFolders(path, dirname(wanted));
    const target = join(folder, basename(wanted));
    const dangling = this.#within(path, folder, (at) =>
      lstatSync(join(at, basename(wanted)), { throwIfNoEntry: false }),
    );
    if (dangling !== undefined) throw outside(path);
    return target;
  }

  #makeFolders(path: string, folder: string): string {
    try {
      return this.#open(path, folder, openPath | constants.O_DIRECTORY, (_, real) => real);
    } catch (error) {
      if (systemCode((error as RewindError).cause) !== "ENOENT" || folder === this.#workspace) throw error;
    }
    const parent = this.#makeFolders(path, dirname(folder));
    this.#within(path, parent, (at) => mkdirSync(join(at, basename(folder))));
    return join(parent, basename(folder));
  }

  #within<T>(path: string, folder: string, work: (folder: string) => T): T {
    return this.#open(path, folder, constants.O_RDONLY | constants.O_DIRECTORY, (fd) => work(`/proc/self/fd/${fd}`));
  }

  /** @param work gets the descriptor and the path inside that it leads to */
  #open<T>(path: string, inside: string, flags: number, work: (fd: number, real: string) => T): T {
    const root = openSync(this.#root(), constants.O_RDONLY | constants.O_DIRECTORY);
    try {
      const fd = this.#native.openInside(root, Buffer.from(inside), flags, 0);
      try {
        const real = readlinkSync(`/proc/self/fd/${fd}`);
        if (real !== this.#workspace && !real.startsWith(`${this.#workspace}/`)) throw outside(path);
        if ((flags & constants.O_DIRECTORY) === 0 && (flags & openPath) === 0 && fstatSync(fd).isDirectory())
          throw Object.assign(new Error(`EISDIR: ${path} is a folder`), { code: "EISDIR" });
        return work(fd, real);
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
