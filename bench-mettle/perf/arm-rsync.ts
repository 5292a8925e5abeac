// Snapshots that share unchanged files by hard links.
import { join } from "node:path";
import type { Arm, Place, Running } from "./arm.ts";
import { run, type Tool, time } from "./command.ts";

export const rsyncArm = (tool: Tool | string): Arm => ({
  name: "rsync",
  title: "rsync --link-dest",
  about:
    "`rsync -aHAX --delete --link-dest=LAST` to a new folder; rewind: `rsync -aHAX --delete` back. No fsync. A file of equal size and time counts as unchanged.",
  ...(typeof tool === "string" ? { missing: tool } : {}),
  async start({ work, store, scratch }: Place): Promise<Running> {
    const where = { cwd: store, home: scratch };
    const rsync = (...args: string[]): string => run(tool as Tool, ["-aHAX", "--delete", ...args], where);
    let copies = 0;
    const copy = (index: number): string => join(store, `${index}`);
    return {
      stored: store,
      checkpoint: async () =>
        time(() => {
          const links = copies === 0 ? [] : [`--link-dest=${copy(copies)}`];
          rsync(...links, `${work}/`, `${copy(++copies)}/`);
        }),
      rewind: async () => time(() => rsync(`${copy(copies)}/`, `${work}/`)),
      async end() {},
    };
  },
});
