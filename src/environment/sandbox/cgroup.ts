// A sandbox's control groups (v2): one for all of it, and below it one for what CRIU must not freeze, one for the tree that is captured.
import { mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { RewindError, systemCode } from "../../errors.ts";
import { type ResourceLimits, SandboxLimits } from "./limits.ts";

/** How long killed processes may take to end. */
const endMs = 30_000;
/** For so long it is looked without a pause: a timer's shortest one is as long as the whole end of a small sandbox. */
const eagerMs = 10;

export class SandboxGroup {
  readonly root: string;
  readonly init: string;
  readonly tree: string;
  readonly #limits: SandboxLimits;

  /**
   * @param name unique on this host
   * @throws NOT_AVAILABLE where a limit cannot be set
   */
  constructor(mount: string, name: string, limits: ResourceLimits = {}) {
    const path = ["agentrewind", name, "tree"];
    this.root = join(mount, "agentrewind", name);
    this.init = join(this.root, "init");
    this.tree = join(mount, ...path);
    this.#limits = new SandboxLimits(mount, path, limits);
  }

  make(): void {
    for (const folder of [this.init, this.tree]) mkdirSync(folder, { recursive: true });
    this.#limits.set();
  }

  /** Folders of groups that what belongs to the tree must be put into, besides `tree`. */
  get joined(): readonly string[] {
    return this.#limits.joined;
  }

  /** Host pids of the tree. */
  processes(): number[] {
    return processesOf(this.tree);
  }

  /** How many sandboxes of this host have processes. */
  beside(): number {
    const all = dirname(this.root);
    return readdirSync(all, { withFileTypes: true }).filter(
      (one) => one.isDirectory() && isPopulated(join(all, one.name)),
    ).length;
  }

  /** Resolves when nothing of the tree runs any more. */
  async freeze(): Promise<void> {
    writeFileSync(join(this.tree, "cgroup.freeze"), "1");
    while (!/^frozen 1$/m.test(readFileSync(join(this.tree, "cgroup.events"), "utf8"))) await sleep(0);
  }

  thaw(): void {
    writeFileSync(join(this.tree, "cgroup.freeze"), "0");
  }

  /** Ends everything in the sandbox, the init too; resolves when all have gone. */
  async #kill(): Promise<void> {
    try {
      writeFileSync(join(this.root, "cgroup.kill"), "1");
    } catch (error) {
      if (systemCode(error) === "ENOENT") return;
      throw error;
    }
    for (const begun = Date.now(); /^populated 1$/m.test(readFileSync(join(this.root, "cgroup.events"), "utf8")); ) {
      const passed = Date.now() - begun;
      if (passed > endMs) {
        throw new RewindError("SANDBOX_FAILED", "Processes of the sandbox were killed and do not end.", {
          hint: "Something holds them in the kernel (a stuck mount or device): see `ps` and `dmesg`.",
          details: { processes: [...processesOf(this.root)] },
        });
      }
      await (passed < eagerMs ? nextTurn() : sleep(1));
    }
  }

  /** Ends everything and removes the groups: what is cloned into a group that was killed once is killed as well (seen on Linux 6.18). */
  async remove(): Promise<void> {
    await this.#kill();
    removeGroup(this.root);
    await this.#limits.remove();
  }
}

/** False where it has gone meanwhile. */
function isPopulated(folder: string): boolean {
  try {
    return /^populated 1$/m.test(readFileSync(join(folder, "cgroup.events"), "utf8"));
  } catch {
    return false;
  }
}

/** With those below it: a process inside can make some, in a user namespace of its own. */
function removeGroup(folder: string): void {
  try {
    for (const one of readdirSync(folder, { withFileTypes: true }))
      if (one.isDirectory()) removeGroup(join(folder, one.name));
    rmdirSync(folder);
  } catch (error) {
    if (systemCode(error) !== "ENOENT") throw error;
  }
}

/** Host pids of a control group, with all below it. */
export function processesOf(folder: string): number[] {
  const own = readFileSync(join(folder, "cgroup.procs"), "utf8").split("\n").filter(Boolean).map(Number);
  const below = readdirSync(folder, { withFileTypes: true }).filter((one) => one.isDirectory());
  return [...own, ...below.flatMap((one) => processesOf(join(folder, one.name)))];
}
