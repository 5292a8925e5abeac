// The copy baseline: every checkpoint is a full copy, a rewind empties the tree and copies back.
import { join } from "node:path";
import type { Arm, Place, Running } from "./arm.ts";
import { run, time } from "./command.ts";

export const copyArm: Arm = {
  name: "cp",
  title: "cp -a",
  about: "`cp -a` to a new folder; rewind: empty the tree, `cp -a` back. No fsync.",
  async start({ work, store, scratch }: Place): Promise<Running> {
    const where = { cwd: store, home: scratch };
    let copies = 0;
    return {
      stored: store,
      checkpoint: async () => time(() => run(["cp"], ["-a", work, join(store, `${++copies}`)], where)),
      rewind: async () =>
        time(() => {
          run(["find"], [work, "-mindepth", "1", "-delete"], where);
          run(["cp"], ["-a", `${join(store, `${copies}`)}/.`, work], where);
        }),
      async end() {},
    };
  },
};
