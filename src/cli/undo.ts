// `undo`: the last rewind, undone.
import { RewindError } from "../errors.ts";
import type { Global } from "./global.ts";
import { type Moved, movedOutput, withoutContext } from "./moved.ts";
import type { Output } from "./output.ts";
import { give } from "./writer.ts";

export async function undo(global: Global, { dryRun = false }: { readonly dryRun?: boolean }): Promise<Output> {
  const moved = await give<Moved>(global, {
    command: "undo",
    arguments: { dryRun },
    here: async (thread) => withoutContext(await thread.undo({ dryRun })),
    begins: false,
    async afterLoss(thread, epochBefore) {
      if (dryRun || thread.epoch === epochBefore) return withoutContext(await thread.undo({ dryRun }));
      // A second undo would undo the rewind before that.
      throw new RewindError(
        "CONTROL_FAILED",
        `The process that held this workspace ended before it answered; the workspace is at ${thread.head ?? "no checkpoint"} now.`,
        { hint: "Look at `agentrewind list --all` before you undo again." },
      );
    },
  });
  return movedOutput(global, moved, { kind: "undo", scope: "both", dryRun });
}
