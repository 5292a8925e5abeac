// What a caller can say of a sandbox.
import { z } from "zod";
import type { Objects } from "../../store/objects.ts";
import type { Activity } from "./activity.ts";
import type { ResourceLimits } from "./limits.ts";

export interface SandboxOptions {
  /** "host" (the default): the sandbox shares the host's network. "own": a network of its own with nothing but loopback. */
  readonly network?: "host" | "own" | undefined;
  /**
   * What a rewind does with processes. "restore" (the default where there is CRIU): they come back with their memory; where CRIU refuses, as with "relaunch". "relaunch" (the
   * default without it): what was started in the background is started again, with its command, folder, variables and output. "stop": they are ended.
   */
  readonly processes?: "restore" | "relaunch" | "stop" | undefined;
  /**
   * A checkpoint stores only the memory that was written since the last one: pages are write-protected meanwhile, through userfaultfd. Default: true, where the kernel can. False for
   * programs that use userfaultfd themselves, or move memory with mremap(2) of which they have mapped the parts one by one.
   */
  readonly trackMemory?: boolean | undefined;
  /** Folder of a root file system in the place of the host's own. */
  readonly rootfs?: string | undefined;
  /** Folders on other mounts that the sandbox sees and may change as well; the workspace's is found by itself. */
  readonly mounts?: readonly string[] | undefined;
  /** More that nobody inside may see, besides the store and the usual folders of credentials. */
  readonly hide?: readonly string[] | undefined;
  /** What its processes may use together. Default: no limit. */
  readonly limits?: ResourceLimits | undefined;
  /** No program inside gets rights that who starts it has not: `sudo` and the like do not work. Default: false. */
  readonly noNewPrivs?: boolean | undefined;
}

const positive = z.int().positive().optional();

export const sandboxOptions = z.strictObject({
  network: z.enum(["host", "own"]).optional(),
  processes: z.enum(["restore", "relaunch", "stop"]).optional(),
  trackMemory: z.boolean().optional(),
  rootfs: z.string().min(1).optional(),
  mounts: z.array(z.string().min(1)).readonly().optional(),
  hide: z.array(z.string().min(1)).readonly().optional(),
  limits: z.strictObject({ memory: positive, pids: positive }).optional(),
  noNewPrivs: z.boolean().optional(),
});

/** What the composition root adds. */
export interface SandboxPlace extends SandboxOptions {
  /** Real path of the workspace. */
  readonly workspace: string;
  /** The store's folder. */
  readonly store: string;
  /** The environment's id in the catalog. */
  readonly id: string;
  readonly objects: Objects;
  /** "scan": processes are the same only where all of their memory is. */
  readonly inspector?: "auto" | "scan";
  /** Is closed with the sandbox. */
  readonly activity?: Activity | undefined;
  /** It is only observed: processes end with it, since they are captured at no time. */
  readonly observes?: boolean;
  readonly raiseGeneration: () => number;
}
