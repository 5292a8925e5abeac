// Commands inside of a sandbox, through files and one named pipe (native/sandbox/root.c): nothing inside ever holds a descriptor to the outside.
import { randomBytes } from "node:crypto";
import { watch } from "node:fs";
import { goneError, type RunFolder } from "./run-folder.ts";
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
  /** The same inside. */
  readonly inside: string;
  readonly #run: RunFolder;
  /** Below the run folder. */
  readonly folder: string;

  constructor(run: RunFolder, id = `${Date.now().toString(36)}-${randomBytes(4).toString("hex")}`) {
    this.id = id;
    this.#run = run;
    this.folder = `calls/${id}`;
    this.inside = `/run/agentrewind/calls/${id}`;
  }

  make(): void {
    this.#run.makeFolder("calls");
    this.#run.makeFolder(this.folder);
  }

  put(name: string, content: string | Uint8Array): void {
    this.#run.write(`${this.folder}/${name}`, content);
  }

  /** Takes back what was put. */
  take(name: string): void {
    this.#run.remove(`${this.folder}/${name}`);
  }

  request({ argv, env, cwd }: CallRequest): void {
    this.put("argv", strings(argv));
    this.put("env", strings(Object.entries(env).map(([name, value]) => `${name}=${value}`)));
    this.put("cwd", cwd);
  }

  part(name: string, length: number): Buffer {
    return this.#run.part(`${this.folder}/${name}`, 0, length);
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
    return this.#run.size(`${this.folder}/${stream}`);
  }

  /** At most `length` bytes of what it wrote, from `offset` on. */
  output(stream: "out" | "err", offset: number, length: number): Buffer {
    return this.#run.part(`${this.folder}/${stream}`, offset, length);
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
        watcher = watch(this.#run.at(this.folder), look);
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
    const names = this.#run.names(this.folder);
    if (names.length === 0) throw goneError();
    return names;
  }

  remove(): void {
    this.#run.remove(this.folder);
  }

  /** One line without its end; a line that is not ended is not there yet. */
  #read(name: string): string | undefined {
    const text = this.#run.read(`${this.folder}/${name}`);
    return text?.endsWith("\n") ? text.slice(0, -1) : undefined;
  }
}
