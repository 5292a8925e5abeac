// `diff`: what differs between two checkpoints, or between one and the workspace as it is now.
import type { ThreadDiff } from "../session/thread.ts";
import type { Paint } from "../text/paint.ts";
import { oneLine } from "../text/safe.ts";
import { plural } from "../text/words.ts";
import { changeLines, countChanges } from "./changes.ts";
import type { Global } from "./global.ts";
import type { Output } from "./output.ts";
import { withThread } from "./recorded.ts";
import { give } from "./writer.ts";

export async function diff(global: Global, from: string, to: string | undefined): Promise<Output> {
  const ask = (): Promise<ThreadDiff> =>
    give(global, {
      command: "diff",
      arguments: { from, ...(to === undefined ? {} : { to }) },
      here: (thread) => thread.diff(from, to),
      begins: false,
    });
  // What a sandbox keeps lies where only its holder can look.
  const read = (): Promise<ThreadDiff | undefined> =>
    withThread(global, (thread, { kind }) =>
      to === undefined || kind === "sandbox" ? undefined : thread.diff(from, to),
    );
  const found = (await read()) ?? (await ask());
  return { json: found, text: (paint) => lines(found, paint) };
}

function lines({ files, processes, context }: ThreadDiff, paint: Paint): string[] {
  const parts = [
    ...(context.removed > 0 ? [`${plural(context.removed, "message")} removed`] : []),
    ...(context.added > 0 ? [`${plural(context.added, "message")} added`] : []),
    ...(context.channels.length > 0 ? [`changed: ${context.channels.map((name) => oneLine(name)).join(", ")}`] : []),
  ];
  const found = [
    ...(countChanges(files) > 0 ? ["Files:", ...changeLines(files, paint)] : []),
    ...(processes.changed ? ["Processes: changed"] : []),
    ...(parts.length > 0 ? [`Conversation: ${parts.join("; ")}`] : []),
  ];
  return found.length === 0 ? ["No differences."] : found;
}
