// The stored process images of one sandbox: a folder each, named when it is complete.
import { randomBytes } from "node:crypto";
import { closeSync, existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { basename, join } from "node:path";
import { systemCode } from "../../../errors.ts";
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
import { parentLink } from "./image-pages.ts";
import type { Still } from "./still.ts";

/** What is kept beside CRIU's files (F-64). */
export interface ImageAbout {
  /** "memory": CRIU's files, with which the processes go on. "table": only what is told here, with which they are started again. */
  readonly kind: "memory" | "table";
  /** The state of the files with which it was made. */
  readonly files: string;
  /** Highest number of a process in it, in the sandbox's numbering. */
  readonly lastPid: number;
  readonly processes: readonly ImageProcess[];
  /** Where nothing but waiting shells was there. */
  readonly still?: Still;
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
const isName = (name: string): boolean => /^p-[\w-]+$/.test(name);

export class ImageStore {
  readonly #folder: string;
  /** Of complete images: the one that has the pages that they do not hold. */
  readonly #parents = new Map<string, string | undefined>();
  readonly #synced = new Set<string>();
  /** Nobody needs them but images that were made from them. */
  readonly #givenUp = new Set<string>();

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
    this.#givenUp.delete(this.parent(name) ?? "");
    return name;
  }

  /** The image that has the pages which this one does not hold. */
  parent(name: string): string | undefined {
    if (!this.#parents.has(name)) this.#parents.set(name, parentIn(this.path(name)));
    return this.#parents.get(name);
  }

  /** How many images a restore of this one reads; 1 where it holds all of its pages. */
  chain(name: string): number {
    const parent = this.parent(name);
    return parent === undefined ? 1 : 1 + this.chain(parent);
  }

  path(name: string): string {
    return join(this.#folder, name);
  }

  has(name: string): boolean {
    if (!isName(name) || !existsSync(join(this.path(name), aboutName))) return false;
    const parent = this.parent(name);
    return parent === undefined || this.has(parent);
  }

  about(name: string): ImageAbout {
    return JSON.parse(readFileSync(join(this.path(name), aboutName), "utf8")) as ImageAbout;
  }

  names(): string[] {
    return readdirSync(this.#folder).filter((name) => isName(name) && existsSync(join(this.path(name), aboutName)));
  }

  /** With those that it was made from. */
  async sync(name: string): Promise<void> {
    if (this.#synced.has(name)) return;
    const parent = this.parent(name);
    if (parent !== undefined) await this.sync(parent);
    for (const file of readdirSync(this.path(name)))
      if (file !== parentLink) await syncFile(join(this.path(name), file));
    await syncFolder(this.path(name));
    await syncFolder(this.#folder);
    this.#synced.add(name);
  }

  /** It stays while another one was made from it that is needed. */
  async drop(name: string): Promise<void> {
    const names = this.names();
    if (!names.includes(name)) return;
    for (const one of names) this.parent(one);
    this.#givenUp.add(name);
    for (let one: string | undefined = name; one !== undefined && this.#givenUp.has(one); ) {
      if ([...this.#parents.values()].includes(one)) return;
      const parent = this.parent(one);
      await removeTree(this.path(one));
      this.#givenUp.delete(one);
      this.#parents.delete(one);
      one = parent;
    }
  }

  discard(folder: string): Promise<void> {
    return removeTree(folder);
  }

  async clean(): Promise<void> {
    for (const name of readdirSync(this.#folder)) if (name.startsWith(".")) await removeTree(join(this.#folder, name));
  }
}

function parentIn(folder: string): string | undefined {
  try {
    return basename(readlinkSync(join(folder, parentLink)));
  } catch (error) {
    if (systemCode(error) === "ENOENT" || systemCode(error) === "EINVAL") return undefined;
    throw error;
  }
}
