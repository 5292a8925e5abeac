// What a sandbox may use of the machine, through whichever hierarchy of control groups carries the controller.
import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { RewindError, systemCode } from "../../errors.ts";
import { cgroup1Mount } from "./mount-table.ts";

export interface ResourceLimits {
  /** Bytes of memory of all its processes together; what goes beyond is ended by the kernel. */
  readonly memory?: number | undefined;
  /** How many processes and threads there may be at once. */
  readonly pids?: number | undefined;
}

type Controller = keyof ResourceLimits;

/** The files that hold the limits, by the hierarchy's version. */
const files: Readonly<Record<Controller, Readonly<Record<1 | 2, readonly string[]>>>> = {
  memory: { 1: ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"], 2: ["memory.max", "memory.swap.max"] },
  pids: { 1: ["pids.max"], 2: ["pids.max"] },
};

interface Limit {
  readonly controller: Controller;
  readonly value: number;
  /** Of a hierarchy of version 1: the group's folder there. */
  readonly folder: string | undefined;
}

/** How long the kernel may take until a group whose processes have ended is empty. */
const emptyMs = 2_000;

export class SandboxLimits {
  readonly #tree: string;
  readonly #limits: readonly Limit[];

  /**
   * @param mount of the hierarchy of version 2; `path` are the folders below it that lead to the tree's group
   * @throws NOT_AVAILABLE where no hierarchy carries a controller
   */
  constructor(mount: string, path: readonly string[], limits: ResourceLimits) {
    this.#tree = join(mount, ...path);
    this.#limits = Object.entries(limits).flatMap(([name, value]): Limit[] => {
      if (value === undefined) return [];
      const controller = name as Controller;
      if (enable(mount, path, controller)) return [{ controller, value, folder: undefined }];
      const own = cgroup1Mount(controller);
      if (own !== undefined) return [{ controller, value, folder: join(own, ...path.slice(0, -1)) }];
      throw new RewindError("NOT_AVAILABLE", `A limit of ${controller} cannot be set here: no control group has it.`, {
        hint: `Mount cgroup v2 with the controller ${controller}, or leave the limit out.`,
      });
    });
  }

  /** Makes the groups, and sets the limits. */
  set(): void {
    for (const { controller, value, folder } of this.#limits) {
      if (folder !== undefined) mkdirSync(folder, { recursive: true });
      const [first, ...others] = files[controller][folder === undefined ? 2 : 1];
      const at = folder ?? this.#tree;
      writeFileSync(join(at, first as string), `${value}`);
      // What is swapped out is used as well; a kernel that counts no swap has no such file.
      for (const one of others) {
        try {
          writeFileSync(join(at, one), folder === undefined ? "0" : `${value}`);
        } catch (error) {
          if (!["ENOENT", "EACCES", "EPERM"].includes(systemCode(error) ?? "")) throw error;
        }
      }
    }
  }

  /** Folders of groups that the tree must be put into, besides that of version 2. */
  get joined(): readonly string[] {
    return this.#limits.flatMap(({ folder }) => folder ?? []);
  }

  /** When all processes have ended. */
  async remove(): Promise<void> {
    for (const folder of this.joined) await SandboxLimits.removeFolder(folder);
  }

  static readonly controllers = Object.keys(files) as readonly Controller[];

  /** Of a group of version 1 whose processes have ended, or are about to. */
  static async removeFolder(folder: string): Promise<void> {
    for (const end = Date.now() + emptyMs; ; ) {
      try {
        return rmdirSync(folder);
      } catch (error) {
        if (systemCode(error) === "ENOENT") return;
        if (systemCode(error) !== "EBUSY" || Date.now() > end) throw error;
        await sleep(1);
      }
    }
  }
}

/** Gives the groups of a hierarchy of version 2 a controller, from the top on. False where it has none. */
export function enable(mount: string, path: readonly string[], controller: string): boolean {
  const has = readFileSync(join(mount, "cgroup.controllers"), "utf8").split(/\s+/).includes(controller);
  if (!has) return false;
  for (let depth = 0; depth < path.length; depth++) {
    const folder = join(mount, ...path.slice(0, depth));
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "cgroup.subtree_control"), `+${controller}`);
  }
  return true;
}
