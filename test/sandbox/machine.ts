// One sandbox for a whole test file, and what its commands gave in short.
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, realpathSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Activity } from "../../src/environment/sandbox/activity.ts";
import { openSandbox } from "../../src/environment/sandbox/open.ts";
import type { SandboxOptions } from "../../src/environment/sandbox/options.ts";
import type { Environment, ExecOptions, ExecResult } from "../../src/index.ts";
import { openStore } from "../../src/store/store.ts";

export const needed = ["native", "root", "loop", "btrfs", "overlay", "cgroup2", "namespaces", "criu"] as const;

export interface Machine {
  /** Holds everything of it. */
  readonly base: string;
  /** The environment's id. */
  readonly name: string;
  readonly workspace: string;
  readonly store: string;
  environment: Environment;
  exec(command: string | readonly string[], options?: ExecOptions): Promise<ExecResult>;
  /** Standard output without its last line's end; what it says on standard error or a status is a failure. */
  says(command: string, options?: ExecOptions): Promise<string>;
  /** Closes it in order and opens it again, with `between` in between. */
  reopen(between?: () => void): Promise<void>;
  end(): Promise<void>;
}

export interface MachineOptions extends SandboxOptions {
  readonly inspector?: "auto" | "scan";
  /** Is closed with it. */
  readonly activity?: Activity;
  /** Where its folder is made. */
  readonly parent?: string;
  /** Default: a new folder. */
  readonly workspace?: string;
}

export async function openMachine({ parent = tmpdir(), workspace, ...options }: MachineOptions = {}): Promise<Machine> {
  const base = mkdtempSync(join(realpathSync(tmpdir()), "agentrewind-machine-"));
  const place = workspace ?? mkdtempSync(join(realpathSync(parent), "agentrewind-workspace-"));
  const folder = join(base, "store");
  mkdirSync(folder);
  const store = openStore(folder);
  const id = `test-${randomBytes(6).toString("hex")}`;
  const objects = store.open(id).objects;
  let generation = 0;
  const open = async (): Promise<Environment> => {
    const raiseGeneration = () => ++generation;
    const opened = await openSandbox({ ...options, workspace: place, store: folder, id, objects, raiseGeneration });
    await opened.resume?.(null);
    return opened;
  };
  const exec: Machine["exec"] = (command, more = {}) => machine.environment.exec(command, more);
  const machine: Machine = {
    base,
    name: id,
    workspace: place,
    store: folder,
    environment: await open(),
    exec,
    async says(command, more) {
      const { stdout, stderr, exitCode, signal } = await exec(command, more);
      if (exitCode !== 0 || stderr !== "") throw new Error(`${command}: ${exitCode ?? signal}: ${stderr}`);
      return stdout.replace(/\n$/, "");
    },
    async reopen(between) {
      await machine.environment.close();
      between?.();
      machine.environment = await open();
    },
    async end() {
      await machine.environment.close();
      store.close();
      execFileSync("rm", ["-rf", base, ...(workspace === undefined ? [place] : [])]);
    },
  };
  return machine;
}
