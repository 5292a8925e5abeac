// A backup program with content-defined chunks, encryption and a repository of its own.
import { join } from "node:path";
import type { Arm, Place, Running } from "./arm.ts";
import { run, type Tool, time } from "./command.ts";

export const resticArm = (tool: Tool | string): Arm => ({
  name: "restic",
  title: "restic",
  about:
    "`restic backup`; rewind: `restic restore latest`. Syncs its packs; encrypts; derives its key anew in every command, by design about half a second. Before 0.17 a restore deletes nothing and reports symbolic links that are there as errors.",
  ...(typeof tool === "string" ? { missing: tool } : {}),
  async start({ work, store, scratch }: Place): Promise<Running> {
    const env = {
      RESTIC_REPOSITORY: join(store, "repository"),
      RESTIC_PASSWORD: "bench",
      RESTIC_CACHE_DIR: join(scratch, "restic"),
    };
    const restic = (...args: string[]): string => run(tool as Tool, args, { cwd: work, home: scratch, env });
    restic("init", "--quiet");
    const [, major = 0, minor = 0] = /restic (\d+)\.(\d+)/.exec(restic("version"))?.map(Number) ?? [];
    const exact = major > 0 || minor >= 17 ? ["--delete"] : [];
    const restore = (): void => {
      try {
        restic("restore", "--quiet", "latest", "--target", work, ...exact);
      } catch (error) {
        if (exact.length > 0 || !/symlink .*: file exists/.test((error as Error).message)) throw error;
      }
    };
    return {
      stored: store,
      checkpoint: async () => time(() => restic("backup", "--quiet", ".")),
      rewind: async () => time(restore),
      async end() {},
    };
  },
});
