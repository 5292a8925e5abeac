// AgentRewind through its public name, in a process of its own.
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Arm, Mode, Place, Running, Sample } from "./arm.ts";
import { run, time } from "./command.ts";

const script = fileURLToPath(new URL("agent.mjs", import.meta.url));
type Step = "idle" | "checkpoint" | "capture" | "turn" | "rewind" | "restore";
type Answer = { readonly ok?: Record<string, number>; readonly error?: string };

const alive = new Set<ChildProcess>();

/** For who gives up in the middle. */
export function killAgents(): void {
  for (const child of alive) child.kill("SIGKILL");
}

class Agent {
  readonly #child: ChildProcess;
  readonly #exit: Promise<unknown>;

  constructor(work: string, store: string, modelMs: number, inspector: "auto" | "scan") {
    mkdirSync(store, { recursive: true });
    this.#child = fork(script, [work, store, `${modelMs}`, inspector], { execArgv: [] });
    alive.add(this.#child);
    this.#exit = once(this.#child, "exit").then(() => alive.delete(this.#child));
  }

  async answer(): Promise<Record<string, number>> {
    const listening = new AbortController();
    const told = once(this.#child, "message", listening);
    told.catch(() => {});
    const answer = await Promise.race([told, this.#exit.then(() => undefined)]);
    listening.abort();
    const { ok, error } = (answer?.[0] ?? { error: "the process ended" }) as Answer;
    if (ok === undefined) throw new Error(`agentrewind: ${error}`);
    return ok;
  }

  async step(step: Step): Promise<Sample> {
    this.#child.send(step);
    const { ms = 0, ...parts } = await this.answer();
    return { ms, parts };
  }

  async end(): Promise<void> {
    if (this.#child.connected) this.#child.send("end");
    await this.#exit;
  }
}

/** @param inspector "auto" is the default: a watcher names what changed, where there is one */
export const agentrewindArm = (modelMs: number, inspector: "auto" | "scan"): Arm => ({
  name: inspector === "auto" ? "agentrewind" : "scan",
  title: inspector === "auto" ? "agentrewind" : "agentrewind, scan only",
  about:
    `${inspector === "auto" ? "" : 'With `inspector: "scan"`, as where no watcher can be had. '}` +
    "`thread.checkpoint()` until captured (stored, survives the process); durable (fsync'd in order) is in the second table. A rewind stores the state that is left, fsync'd, before it touches anything.",
  async start({ work, store, scratch }: Place): Promise<Running> {
    const agent = new Agent(work, join(store, "main"), modelMs, inspector);
    await agent.answer();
    const mode = (name: Step, stores: boolean): Mode => ({ name, stores, run: () => agent.step(name) });
    /** A first capture needs a store that knows nothing. */
    const firstCapture: Mode = {
      name: "capture",
      stores: false,
      async run() {
        const other = new Agent(work, join(store, "other"), modelMs, inspector);
        try {
          await other.answer();
          return await other.step("capture");
        } finally {
          await other.end();
          rmSync(join(store, "other"), { recursive: true });
        }
      },
    };
    /** What a walk with one `stat` an entry costs another program, process start included. */
    const walk: Mode = {
      name: "walk",
      stores: false,
      run: async () => time(() => run(["find"], [work, "-size", "-0"], { cwd: work, home: scratch })),
    };
    return {
      stored: store,
      checkpoint: () => agent.step("checkpoint"),
      rewind: () => agent.step("rewind"),
      modes(operation) {
        if (operation === "first") return [firstCapture, mode("idle", false)];
        if (operation.startsWith("rewind")) return [mode("restore", false)];
        const modes = [mode("capture", true), mode("turn", true)];
        return operation === "unchanged" ? [...modes, walk] : modes;
      },
      end: () => agent.end(),
    };
  },
});
