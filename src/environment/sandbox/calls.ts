// Commands inside of a sandbox, through files and one named pipe (native/sandbox/root.c): nothing inside ever holds a descriptor to the outside.
import { randomBytes } from "node:crypto";
import {
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  watch,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { RewindError, systemCode } from "../../errors.ts";
import { shellEnd } from "./shell-settings.ts";

/** How a command ended, as `done` says. */
export type CallEnd =
  | { readonly kind: "exit"; readonly code: number }
  | { readonly kind: "signal"; readonly signal: number }
  | { readonly kind: "error"; readonly errno: number };

export interface CallRequest {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Absolute, inside. */
  readonly cwd: string;
}

/** What is looked at when the kernel tells of no change: a watch can miss what happened before it began. */
const lookAgainMs = 50;

const strings = (list: readonly string[]): string => list.map((one) => `${one}\0`).join("");

/** A folder with everything of one command. */
export class Call {
  readonly id: string;
  /** On the host. */
  readonly folder: string;
  /** The same inside. */
  readonly inside: string;

  constructor(run: string, id = `${Date.now().toString(36)}-${randomBytes(4).toString("hex")}`) {
    this.id = id;
    this.folder = join(run, "calls", id);
    this.inside = `/run/agentrewind/calls/${id}`;
  }

  make(): void {
    mkdirSync(this.folder, { recursive: true, mode: 0o700 });
  }

  put(name: string, content: string | Uint8Array): void {
    writeFileSync(join(this.folder, name), content, { mode: 0o600 });
  }

  /** Takes back what was put. */
  take(name: string): void {
    rmSync(join(this.folder, name), { force: true });
  }

  request({ argv, env, cwd }: CallRequest): void {
    this.put("argv", strings(argv));
    this.put("env", strings(Object.entries(env).map(([name, value]) => `${name}=${value}`)));
    this.put("cwd", cwd);
  }

  /** In the sandbox's pid namespace; undefined while it has not begun. */
  pid(): number | undefined {
    const text = this.#read("pid");
    return text === undefined ? undefined : Number(text);
  }

  end(): CallEnd | undefined {
    const line = this.#read("done");
    if (line === undefined) return undefined;
    const [kind, number] = line.split(" ");
    if (kind === "exit") return { kind, code: Number(number) };
    if (kind === "signal") return { kind, signal: Number(number) };
    return { kind: "error", errno: Number(number) };
  }

  /** Of a line in a persistent shell. @throws COMMAND_FAILED */
  endInShell(): CallEnd | undefined {
    for (const name of this.#names()) {
      const [, kind, number] = shellEnd.exec(name) ?? [];
      if (kind === "exit") return { kind, code: Number(number) };
      if (kind === "signal") return { kind, signal: Number(number) };
    }
    return undefined;
  }

  size(stream: "out" | "err"): number {
    return statSync(join(this.folder, stream), { throwIfNoEntry: false })?.size ?? 0;
  }

  /** At most `length` bytes of what it wrote, from `offset` on. */
  output(stream: "out" | "err", offset: number, length: number): Buffer {
    let fd: number;
    try {
      fd = openSync(join(this.folder, stream), "r");
    } catch (error) {
      if (systemCode(error) === "ENOENT") return Buffer.alloc(0);
      throw error;
    }
    try {
      const bytes = Buffer.allocUnsafe(
        Math.max(0, Math.min(length, statSync(join(this.folder, stream)).size - offset)),
      );
      return bytes.subarray(0, readSync(fd, bytes, 0, bytes.length, offset));
    } finally {
      closeSync(fd);
    }
  }

  /** Resolves when `over` gives a value: it is asked at every change in the folder. */
  async until<T>(over: () => T | undefined, signal?: AbortSignal): Promise<T | undefined> {
    const first = over();
    if (first !== undefined) return first;
    return new Promise((resolve, reject) => {
      const finish = (value: T | undefined, error?: unknown): void => {
        clearInterval(timer);
        watcher?.close();
        signal?.removeEventListener("abort", stop);
        if (error === undefined) resolve(value);
        else reject(error);
      };
      const look = (): void => {
        try {
          const value = over();
          if (value !== undefined) finish(value);
        } catch (error) {
          finish(undefined, error);
        }
      };
      const stop = (): void => finish(undefined);
      const timer = setInterval(look, lookAgainMs);
      let watcher: ReturnType<typeof watch> | undefined;
      try {
        watcher = watch(this.folder, look);
        watcher.on("error", () => {});
      } catch {
        // No more watches to be had: the timer looks.
      }
      signal?.addEventListener("abort", stop, { once: true });
      if (signal?.aborted) stop();
      else look();
    });
  }

  #names(): string[] {
    try {
      return readdirSync(this.folder);
    } catch (error) {
      if (systemCode(error) !== "ENOENT") throw error;
      throw new RewindError("COMMAND_FAILED", "The command removed /run/agentrewind, where its output is kept.", {
        hint: "Leave that folder alone: rewind, or open the workspace again.",
        cause: error,
      });
    }
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** One line without its end; a line that is not ended is not there yet. */
  #read(name: string): string | undefined {
    const path = join(this.folder, name);
    if (!existsSync(path)) return undefined;
    const text = readFileSync(path, "latin1");
    return text.endsWith("\n") ? text.slice(0, -1) : undefined;
  }
}

/** Writes whole lines into a named pipe that somebody inside reads. @throws ENXIO when nobody does */
export function tell(pipe: string, lines: string): void {
  const fd = openSync(pipe, constants.O_WRONLY | constants.O_NONBLOCK);
  try {
    writeSync(fd, `${lines}\n`);
  } finally {
    closeSync(fd);
  }
}
