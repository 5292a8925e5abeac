// A cgroup of a test's own, and a program in it that does one thing at a time (test/fixtures/deeds.c).
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { cgroup2Mount } from "../../src/environment/sandbox/mount-table.ts";

export interface Group {
  readonly path: string;
  /** Ends what is in it. */
  remove(): Promise<void>;
}

export function makeGroup(parent?: string): Group {
  const path = join(parent ?? cgroup2Mount() ?? "/none", `arw-test-${randomBytes(6).toString("hex")}`);
  mkdirSync(path);
  return {
    path,
    async remove() {
      writeFileSync(join(path, "cgroup.kill"), "1");
      while (/^populated 1$/m.test(readFileSync(join(path, "cgroup.events"), "utf8"))) await sleep(5);
      rmdirSync(path);
    },
  };
}

export interface Deed {
  readonly result: number;
  readonly errno: number;
  /** Of the file that was made for it. */
  readonly ino: bigint;
}

export class Actor {
  readonly folder: string;
  readonly pid: number;
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;

  private constructor(child: ChildProcess, folder: string) {
    this.folder = folder;
    this.pid = child.pid ?? 0;
    this.#child = child;
    if (child.stdout === null) throw new Error("no output");
    this.#lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  }

  /** `group`: null leaves it where this process is. */
  static start(program: string, group: Group | null, below: string): Actor {
    const folder = mkdtempSync(join(below, "deeds-"));
    const enter = group === null ? "" : `echo $$ > ${group.path}/cgroup.procs && `;
    const child = spawn("sh", ["-c", `${enter}exec "$0"`, program], {
      cwd: folder,
      stdio: ["pipe", "pipe", "inherit"],
    });
    return new Actor(child, folder);
  }

  async #line(): Promise<string> {
    const { value, done } = await this.#lines.next();
    if (done) throw new Error("the actor has ended");
    return value;
  }

  /** Everything is prepared when it resolves; what it gives does the deed. */
  async ready(name: string): Promise<() => Promise<Deed>> {
    this.#child.stdin?.write(`${name}\n`);
    const ino = BigInt((await this.#line()).split(" ")[1] ?? 0);
    return async () => {
      this.begin();
      const [result, errno] = (await this.#line()).split(" ").map(Number);
      if (result === undefined || errno === undefined || Number.isNaN(result)) throw new Error(`no deed ${name}`);
      return { result, errno, ino };
    };
  }

  /** Without waiting for the end of what is ready. */
  begin(): void {
    this.#child.stdin?.write("go\n");
  }

  async do(name: string): Promise<Deed> {
    return (await this.ready(name))();
  }

  async end(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      const ended = new Promise((done) => this.#child.once("exit", done));
      this.#child.kill("SIGKILL");
      await ended;
    }
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export interface Place {
  readonly base: string;
  readonly deeds: string;
  remove(): void;
}

/** A folder with the compiled program. */
export function makePlace(): Place {
  const base = mkdtempSync(join(tmpdir(), "arw-effects-"));
  const deeds = join(base, "deeds");
  execFileSync("cc", ["-O1", "-o", deeds, resolve(import.meta.dirname, "../fixtures/deeds.c")]);
  return { base, deeds, remove: () => rmSync(base, { recursive: true, force: true }) };
}
