// What a rewind does with programs that a command left running.
import { z } from "zod";

export const programPolicies = ["relaunch", "restart", "stop"] as const;
export type ProgramPolicy = (typeof programPolicies)[number];

export interface DirectorySettings {
  /**
   * What a rewind does with programs that commands of `exec` have left running. Those that were started since are ended, in any case but the last. "relaunch" (the default):
   * those that ran at the checkpoint and have ended since are started again, with their command, folder, variables and output files; those that still run go on.
   * "restart": those that still run are started again as well. "stop": all are ended and none is started. "ignore": they are neither recorded nor touched.
   */
  readonly processes?: ProgramPolicy | "ignore" | undefined;
}

export const directorySettings = z.strictObject({ processes: z.enum([...programPolicies, "ignore"]).optional() });
