// One sandbox for a file of tests, in which things are started, captured and brought back; and how it is asked from outside.
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Checkpoint, openRewind, type Rewind, type RewindResult, type Thread } from "agentrewind";
import { expect } from "vitest";
import type { SandboxOptions } from "../../src/environment/sandbox/options.ts";
import { pythonPath } from "../helpers/python.ts";

export const needed = [
  "native",
  "root",
  "loop",
  "btrfs",
  "overlay",
  "cgroup2",
  "namespaces",
  "criu",
  "python",
] as const;

export const fixture = (name: string): string => resolve(import.meta.dirname, "../fixtures", name);

export class Held {
  readonly base: string;
  readonly workspace: string;
  readonly rewind: Rewind;
  readonly thread: Thread;

  private constructor(base: string, rewind: Rewind) {
    this.base = base;
    this.workspace = join(base, "workspace");
    this.rewind = rewind;
    this.thread = rewind.thread("t1");
  }

  /** A new one, with the fixtures in its workspace. */
  static async open(
    sandbox: SandboxOptions = { network: "own" },
    fixtures: readonly string[] = [],
    inspector: "auto" | "scan" | "ebpf" = "auto",
  ): Promise<Held> {
    const base = mkdtempSync(join(tmpdir(), "agentrewind-held-"));
    mkdirSync(join(base, "workspace"));
    for (const name of fixtures) copyFileSync(fixture(name), join(base, "workspace", name));
    return new Held(base, await Held.at(base, sandbox, inspector));
  }

  /** The same place, after it was closed. */
  async again(sandbox: SandboxOptions = { network: "own" }): Promise<Held> {
    return new Held(this.base, await Held.at(this.base, sandbox));
  }

  private static at(
    base: string,
    sandbox: SandboxOptions,
    inspector: "auto" | "scan" | "ebpf" = "auto",
  ): Promise<Rewind> {
    return openRewind({
      workspace: join(base, "workspace"),
      store: join(base, "store"),
      environment: "sandbox",
      sandbox,
      inspector,
    });
  }

  /** Removes everything; what is stored must be sound. */
  async end(): Promise<void> {
    try {
      expect(await this.rewind.verify()).toEqual([]);
    } finally {
      await this.rewind.close();
      execFileSync("rm", ["-rf", this.base]);
    }
  }

  /** What a line of the persistent shell writes; it must succeed. */
  async sh(line: string): Promise<string> {
    const { exitCode, stdout, stderr } = await this.rewind.environment.exec(line, { timeoutMs: 60_000 });
    if (exitCode !== 0) throw new Error(`${line}: ${exitCode}: ${stdout}${stderr}`);
    return stdout.trim();
  }

  async checkpoint(): Promise<Checkpoint> {
    const made = await this.thread.checkpoint({ context: { messages: [{ role: "user", content: "go on" }] } });
    expect(made.state).not.toBe("not-restorable");
    return made;
  }

  back(to: Checkpoint): Promise<RewindResult> {
    return this.thread.rewind({ to: to.id, lesson: "once more" });
  }

  /** Host path of a file of the workspace. */
  path(name: string): string {
    return this.rewind.environment.path(name) as string;
  }

  /** Starts a program of the workspace that holds the resources of these kinds, a process each. */
  async hold(kinds: readonly string[]): Promise<void> {
    await this.sh(`mkdir -p held; ${pythonPath()} -IS held.py held ${kinds.join(" ")}`);
    const ready = kinds.map((kind) => `held/${kind}.ready`).join(" ");
    await this.sh(`until ls ${ready} >/dev/null 2>&1; do sleep 0.01; done`);
  }

  /** Asks each of them through its Unix socket. */
  async ask(kinds: readonly string[], what: "show" | "step"): Promise<Record<string, unknown>> {
    const answers = kinds.map(async (kind) => [kind, JSON.parse(await talk(this.path(`held/${kind}.sock`), what))]);
    return Object.fromEntries(await Promise.all(answers));
  }
}

/** What comes back until the other side closes. */
export function talk(socket: string | number, text: string): Promise<string> {
  return new Promise((done, fail) => {
    const client = typeof socket === "string" ? connect(socket) : connect(socket, "127.0.0.1");
    let said = "";
    client.on("data", (data) => {
      said += data;
    });
    client.on("error", fail);
    client.on("end", () => done(said));
    // Even of nothing a write fails where the other side has said all and gone.
    if (text !== "") client.write(text);
  });
}

export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await sleep(10);
}
