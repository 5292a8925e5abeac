// `export`: a thread, or one checkpoint of it, in one file.
import { resolve } from "node:path";
import type { Exported } from "../bundle/export.ts";
import { oneLine, safe } from "../text/safe.ts";
import { bytes, plural } from "../text/words.ts";
import { type Global, quoted } from "./global.ts";
import type { Output } from "./output.ts";
import { give } from "./writer.ts";

export async function exportBundle(
  global: Global,
  checkpoint: string | undefined,
  { to }: { readonly to: string },
): Promise<Output> {
  // The process that holds the workspace may work in another folder.
  const request = { to: resolve(to), ...(checkpoint === undefined ? {} : { checkpoint }) };
  const made = await give<Exported>(global, {
    command: "export",
    arguments: request,
    here: (thread, rewind) => rewind.export({ thread: thread.name, ...request }),
    begins: false,
  });
  const what = made.checkpoint ?? plural(made.checkpoints, "checkpoint");
  return {
    json: made,
    text: (paint) => [
      `${what} of thread ${oneLine(made.thread)}: ${safe(made.file)} (${bytes(made.bytes)}).`,
      ...made.problems.map(({ path, reason }) => paint("yellow", `  not in it: ${oneLine(path)}: ${oneLine(reason)}`)),
      `It holds whatever the workspace, the processes and the conversation hold. To bring it to life: agentrewind import ${quoted(made.file)} --into DIR`,
    ],
  };
}
