// `import`: a workspace with the thread that a bundle holds.
import { importBundle as bringIn } from "../bundles.ts";
import type { Paint } from "../text/paint.ts";
import { oneLine, safe } from "../text/safe.ts";
import { plural } from "../text/words.ts";
import { type Global, quoted } from "./global.ts";
import type { Output } from "./output.ts";

export interface ImportOptions {
  readonly into?: string;
  readonly processes?: "restore" | "relaunch" | "stop";
}

const fates = {
  restore: "Its processes go on when it is opened.",
  relaunch: "Its processes are started again when it is opened, without their memory.",
  stop: "Its processes were left behind.",
} as const;

export async function importBundle(global: Global, file: string, options: ImportOptions): Promise<Output> {
  const made = await bringIn(file, { ...options, store: global.store, allowBroadWorkspace: global.allowBroad });
  const { workspace, thread, checkpoint, checkpoints, environment, processes, notRestored } = made;
  const store = global.given.includes("--store") ? ` --store ${quoted(global.store)}` : "";
  return {
    json: made,
    text: (paint: Paint) => [
      `${plural(checkpoints, "checkpoint")} of thread ${oneLine(thread)} in ${safe(workspace)} (${environment}), at ${checkpoint}.`,
      ...(processes === null ? [] : [fates[processes]]),
      ...notRestored.map(({ path, reason }) =>
        paint("yellow", `  not as it was: ${oneLine(path)}: ${oneLine(reason)}`),
      ),
      `To go on: agentrewind --workspace ${quoted(workspace)}${store} list`,
    ],
  };
}
