// Programs that tests leave running, and what is seen of them from outside.
import { mkdirSync, readFileSync, renameSync } from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Checkpoint, Thread } from "agentrewind";
import { afterEach, expect } from "vitest";
import { pythonPath } from "../helpers/python.ts";
import { makePlace, type Place } from "../helpers/workspace.ts";

const script = resolve(import.meta.dirname, "../fixtures/program.py");

export interface Beat {
  readonly pid: number;
  readonly n: number;
  readonly cwd: string;
  readonly umask: number;
  readonly tint: string | null;
  readonly port: number | null;
}

const folders: string[] = [];
// Before the places are removed, in which they would still write.
afterEach(() => {
  for (const folder of folders.splice(0)) renameSync(folder, `${folder}-over`);
});

/** They end when their test does. */
export class Beating {
  readonly place: Place = makePlace();
  readonly #folder = join(this.place.base, "beats");

  constructor() {
    mkdirSync(this.#folder);
    folders.push(this.#folder);
  }

  /** A command that runs one in the foreground. */
  command(name: string, ...what: string[]): string {
    return `${pythonPath()} -IS ${script} ${this.#folder} ${name} ${what.join(" ")}`;
  }

  /** A line that leaves one in the background. */
  line(name: string, ...what: string[]): string {
    return `${this.command(name, ...what)} >/dev/null 2>&1 &`;
  }

  last(name: string): Beat | undefined {
    try {
      return JSON.parse(readFileSync(join(this.#folder, name), "utf8")) as Beat;
    } catch {
      return undefined;
    }
  }

  /** The process that beats under this name, which goes on. */
  async alive(name: string): Promise<Beat> {
    const before = this.last(name);
    await expect.poll(() => this.last(name), { timeout: 10_000, interval: 20 }).not.toEqual(before);
    return this.last(name) as Beat;
  }

  async ended(name: string): Promise<void> {
    const before = this.last(name);
    await sleep(300);
    expect(this.last(name), `${name} still runs`).toEqual(before);
  }
}

export const checkpoint = async (thread: Thread): Promise<Checkpoint> => {
  const made = await thread.checkpoint({ context: { messages: ["go on"] } });
  expect(made.state).not.toBe("not-restorable");
  return made;
};

/** Without the numbers of processes and ports. */
export const plain = (problems: readonly { readonly path: string; readonly reason: string }[]): string[] =>
  problems.map(({ path, reason }) => `${named(path)}: ${reason}`).sort();

export const named = (path: string): string => path.replace(/process \d+ /, "").replace(/ on port \d+/, " on a port");
