// A sandbox's control groups (v2): one for all of it, and below it one for what CRIU must not freeze, one for the tree that is captured.
import { mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { RewindError, systemCode } from "../../errors.ts";

/** Where cgroup v2 is mounted; undefined where it is not. */
export function cgroupMount(mountinfo = readFileSync("/proc/self/mountinfo", "utf8")): string | undefined {
  for (const line of mountinfo.split("\n")) {
    const fields = line.split(" ");
    if (fields[fields.indexOf("-") + 1] === "cgroup2") return unescape8(fields[4] ?? "");
  }
  return undefined;
}

/** Octal escapes of the kernel's tables. */
export const unescape8 = (text: string): string =>
  text.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));

/** How long killed processes may take to end. */
const endMs = 30_000;

export class SandboxGroup {
  readonly root: string;
  readonly init: string;
  readonly tree: string;

  /** @param name unique on this host */
  constructor(mount: string, name: string) {
    this.root = join(mount, "agentrewind", name);
    this.init = join(this.root, "init");
    this.tree = join(this.root, "tree");
  }

  make(): void {
    for (const folder of [this.init, this.tree]) mkdirSync(folder, { recursive: true });
  }

  /** Host pids of the tree. */
  processes(): number[] {
    return pids(this.tree);
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
    for (
      const end = Date.now() + endMs;
      /^populated 1$/m.test(readFileSync(join(this.root, "cgroup.events"), "utf8"));
    ) {
      if (Date.now() > end) {
        throw new RewindError("SANDBOX_FAILED", "Processes of the sandbox were killed and do not end.", {
          hint: "Something holds them in the kernel (a stuck mount or device): see `ps` and `dmesg`.",
          details: { processes: [...pids(this.root)] },
        });
      }
      await sleep(1);
    }
  }

  /** Ends everything and removes the groups: what is cloned into a group that was killed once is killed as well (seen on Linux 6.18). */
  async remove(): Promise<void> {
    await this.#kill();
    removeGroup(this.root);
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

function pids(folder: string): number[] {
  const own = readFileSync(join(folder, "cgroup.procs"), "utf8").split("\n").filter(Boolean).map(Number);
  const below = readdirSync(folder, { withFileTypes: true }).filter((one) => one.isDirectory());
  return [...own, ...below.flatMap((one) => pids(join(folder, one.name)))];
}
