// Runs test/fixtures/engine.mjs: an engine in a process of its own, whose jobs last until they are told to end.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import { afterEach } from "vitest";
import type { JobRequest } from "../../src/coordinator/engine/engine.ts";
import { engineFile } from "./library.ts";
// Hooks run the last first: sessions that wait for one of these processes end behind it.
import "./workspace.ts";

export type Said = Readonly<Partial<Record<"granted" | "ended" | "role" | "reason", string>>>;

const script = resolve(import.meta.dirname, "../fixtures/engine.mjs");
const running = new Set<EngineProcess>();

afterEach(() => {
  for (const one of running) one.signal("SIGKILL");
  running.clear();
});

export interface EngineProcessOptions {
  readonly folder: string;
  readonly perDevice: number;
  /** Default: longer than a busy machine leaves a process alone. */
  readonly silenceMs?: number;
  readonly retryMs?: number;
}

export class EngineProcess {
  readonly said: Said[] = [];
  readonly #child: ChildProcess;
  readonly #waiting = new Set<() => void>();

  constructor({ folder, perDevice, silenceMs = 3_000, retryMs = 200 }: EngineProcessOptions) {
    const limits = { perDevice, all: 100 };
    const given = [
      { capture: limits, persist: limits },
      { silenceMs, retryMs },
    ].map((one) => JSON.stringify(one));
    this.#child = spawn(process.execPath, [script, engineFile, folder, ...given], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    this.#child.stdin?.on("error", () => {});
    createInterface({ input: this.#child.stdout as NodeJS.ReadableStream }).on("line", (line) => {
      this.said.push(JSON.parse(line) as Said);
      for (const look of [...this.#waiting]) look();
    });
    running.add(this);
  }

  get granted(): string[] {
    return this.said.flatMap(({ granted }) => granted ?? []);
  }

  /** Jobs of which it has said that they began, and not that they ended. */
  get busy(): number {
    return this.granted.length - this.said.filter(({ ended }) => ended !== undefined).length;
  }

  run(name: string, request: Partial<JobRequest> = {}): void {
    this.#tell({ run: { name, environment: name[0], ...request } });
  }

  promote(name: string): void {
    this.#tell({ promote: name });
  }

  async end(name: string): Promise<void> {
    this.#tell({ end: name });
    await this.until({ ended: name });
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async kill(): Promise<void> {
    const gone = once(this.#child, "exit");
    this.signal("SIGKILL");
    await gone;
    running.delete(this);
  }

  /** Closes its engine and ends. */
  async close(): Promise<void> {
    const gone = once(this.#child, "exit");
    this.#tell({ close: true });
    this.#child.stdin?.end();
    await gone;
    running.delete(this);
  }

  /** Resolves when it has said all of this in one message, behind the first `from` of them. */
  until(wanted: Said, from = 0): Promise<void> {
    const isThere = (): boolean =>
      this.said
        .slice(from)
        .some((said) => Object.entries(wanted).every(([key, value]) => said[key as keyof Said] === value));
    return new Promise((resolve) => {
      const look = (): void => {
        if (!isThere()) return;
        this.#waiting.delete(look);
        resolve();
      };
      this.#waiting.add(look);
      look();
    });
  }

  #tell(told: object): void {
    this.#child.stdin?.write(`${JSON.stringify(told)}\n`);
  }
}
