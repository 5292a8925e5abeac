// The stored process images of one sandbox: a folder each, named when it is complete.
import { randomBytes } from "node:crypto";
import { closeSync, existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import {
  makeFolder,
  makeNewFolder,
  openForWriting,
  removeTree,
  rename,
  syncFile,
  syncFolder,
  writeAll,
} from "../../../store/io.ts";
import type { ProcessDescription } from "../../processes/description.ts";

/** What is kept beside CRIU's files (F-64). */
export interface ImageAbout {
  /** "memory": CRIU's files, with which the processes go on. "table": only what is told here, with which they are started again. */
  readonly kind: "memory" | "table";
  /** The state of the files with which it was made. */
  readonly files: string;
  /** Highest number of a process in it, in the sandbox's numbering. */
  readonly lastPid: number;
  readonly processes: readonly ImageProcess[];
  /** TCP ports of the host's network that something in it listens on. */
  readonly ports: readonly number[];
  readonly criu: string;
  readonly kernel: string;
}

/** All numbers are the sandbox's. */
export interface ImageProcess extends ProcessDescription {
  readonly pid: number;
  readonly parent: number;
  /** The tree's root, a persistent shell, a shell's own fork, what one of these has started, or anything below that. */
  readonly role: "root" | "shell" | "subshell" | "background" | "inner";
  /** TCP ports that it listens on. */
  readonly ports: readonly number[];
  /** Processors that it may run on, and its personality(2): CRIU restores neither. */
  readonly cpus: string;
  readonly personality: string;
}

const aboutName = "about.json";

export class ImageStore {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
    makeFolder(folder, 0o700);
  }

  /** An empty folder for a dump; what a killed process left of others is removed by `clean`. */
  begin(): string {
    const folder = join(this.#folder, `.${randomBytes(6).toString("hex")}`);
    makeNewFolder(folder, 0o700);
    return folder;
  }

  /** Gives the finished dump its name. */
  commit(folder: string, about: ImageAbout): string {
    const fd = openForWriting(join(folder, aboutName), "w");
    try {
      writeAll(fd, Buffer.from(JSON.stringify(about)), 0);
    } finally {
      closeSync(fd);
    }
    const name = `p-${Date.now().toString(36)}-${randomBytes(4).toString("hex")}`;
    rename(folder, this.path(name));
    return name;
  }

  path(name: string): string {
    return join(this.#folder, name);
  }

  has(name: string): boolean {
    return /^p-[\w-]+$/.test(name) && existsSync(join(this.path(name), aboutName));
  }

  about(name: string): ImageAbout {
    return JSON.parse(readFileSync(join(this.path(name), aboutName), "utf8")) as ImageAbout;
  }

  names(): string[] {
    return readdirSync(this.#folder).filter((name) => this.has(name));
  }

  async sync(name: string): Promise<void> {
    for (const file of readdirSync(this.path(name))) await syncFile(join(this.path(name), file));
    await syncFolder(this.path(name));
    await syncFolder(this.#folder);
  }

  drop(name: string): Promise<void> {
    return this.has(name) ? removeTree(this.path(name)) : Promise.resolve();
  }

  discard(folder: string): Promise<void> {
    return removeTree(folder);
  }

  async clean(): Promise<void> {
    for (const name of readdirSync(this.#folder)) if (name.startsWith(".")) await removeTree(join(this.#folder, name));
  }
}
