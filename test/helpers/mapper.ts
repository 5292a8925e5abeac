// Another process that maps files shared or holds them open, and stores when it is told (test/fixtures/mapper.py).
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface, type Interface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { pythonArguments, pythonPath } from "./python.ts";

export class Mapper {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #lines: Interface;

  constructor() {
    this.#child = spawn(pythonPath() ?? "python3", pythonArguments("mapper.py"), {
      stdio: ["pipe", "pipe", "inherit"],
    });
    this.#lines = createInterface({ input: this.#child.stdout });
  }

  async #tell(line: string): Promise<string> {
    const answer = once(this.#lines, "line");
    this.#child.stdin.write(`${line}\n`);
    return (await answer)[0];
  }

  map = (file: string, size: number): Promise<string> => this.#tell(`map ${file} ${size}`);
  mapOpen = (size: number): Promise<string> => this.#tell(`mapopen ${size}`);
  hide = (): Promise<string> => this.#tell("hide");
  show = (): Promise<string> => this.#tell("show");
  store = (offset: number, text: string): Promise<string> => this.#tell(`store ${offset} ${hex(text)}`);
  load = async (offset: number, length: number): Promise<string> =>
    Buffer.from(await this.#tell(`load ${offset} ${length}`), "hex").toString();
  unmap = (): Promise<string> => this.#tell("unmap");
  open = (file: string): Promise<string> => this.#tell(`open ${file}`);
  write = (offset: number, text: string): Promise<string> => this.#tell(`write ${offset} ${hex(text)}`);
  append = (text: string): Promise<string> => this.#tell(`append ${hex(text)}`);

  async end(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, "close");
    this.#child.kill("SIGKILL");
    await ended;
  }
}

const hex = (text: string): string => Buffer.from(text).toString("hex");
