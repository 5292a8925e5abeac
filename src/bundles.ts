// Bundles as callers know them: a thread leaves a store in one file, and comes to life in another.
import { resolve } from "node:path";
import { z } from "zod";
import { type Exported, exportBundle } from "./bundle/export.ts";
import { type Imported, importInto } from "./bundle/import.ts";
import { RewindError } from "./errors.ts";
import type { ExportRequest } from "./opened.ts";
import { requireCheckpoint } from "./session/admissible.ts";
import type { SessionDeps } from "./session/deps.ts";
import { checkpointId } from "./session/views.ts";
import { defaultStorePath } from "./store/layout.ts";
import type { CheckpointRow } from "./store/rows.ts";
import type { Store } from "./store/store.ts";
import { requireOutside } from "./workspace.ts";

export interface ExportHost {
  readonly deps: SessionDeps;
  readonly store: Store;
  readonly workspace: string;
  readonly environmentId: string;
}

const exportOptions = z.strictObject({
  to: z.string().min(1),
  thread: z.string().min(1).optional(),
  checkpoint: z.string().optional(),
});

export async function exportThread(host: ExportHost, request: ExportRequest): Promise<Exported> {
  const { deps, store, workspace, environmentId } = host;
  const { to, thread: name, checkpoint: id } = parsed("export", exportOptions, request);
  const { catalog, objects, environment } = deps;
  const thread = name === undefined ? catalog.threads()[0] : catalog.thread(name);
  if (thread?.head == null) {
    throw new RewindError(
      "NO_THREAD",
      name === undefined ? "There is no thread yet." : `There is no thread "${name}".`,
      {
        hint: "Make a checkpoint first; `rewind.threads()` lists the threads.",
      },
    );
  }
  requireOutside(resolve(to), workspace);
  const one = id === undefined ? undefined : requireCheckpoint(deps, thread, id);
  const head = one ?? (catalog.checkpoint(thread.head) as CheckpointRow);
  return exportBundle(
    {
      ...{ layout: store.layout, objects, environment, environmentId, epoch: catalog.epoch(), workspace, thread },
      checkpoint: one === undefined ? null : { id: one.id, name: checkpointId(one) },
      headName: checkpointId(head),
    },
    to,
  );
}

export interface ImportOptions {
  /** Folder of the store that it comes to. Default: the user's, `$XDG_STATE_HOME/agentrewind`. */
  readonly store?: string;
  /** The workspace that is made: a folder that is empty or not there. Default: one in the current folder, of the name that it had. */
  readonly into?: string;
  /**
   * What becomes of a sandbox's processes. "restore" (the default): they go on with their memory; refused where this machine is not like theirs. "relaunch": what was started in
   * the background is started again. "stop": they are left behind.
   */
  readonly processes?: "restore" | "relaunch" | "stop";
  /** Allows the home folder and its ancestors as workspace. */
  readonly allowBroadWorkspace?: boolean;
}

const importOptions = z.strictObject({
  store: z.string().min(1).optional(),
  into: z.string().min(1).optional(),
  processes: z.enum(["restore", "relaunch", "stop"]).default("restore"),
  allowBroadWorkspace: z.boolean().default(false),
});

/**
 * Makes a workspace with the thread that a bundle holds: its conversation, files and processes as they were at its head. Open it with `openRewind`, with the environment that is told. The bundle is
 * looked at from end to end before anything is made; processes run code, so import only from whom you trust.
 * @throws BAD_ARGUMENT, BUNDLE_DAMAGED, FOLDER_NOT_EMPTY, NOT_AVAILABLE, STORE_INSIDE_WORKSPACE, STORE_TOO_NEW, UNLIKE_MACHINE, WORKSPACE_TOO_BROAD, DISK_FULL, WRITE_FAILED
 */
export async function importBundle(file: string, options: ImportOptions = {}): Promise<Imported> {
  const { store = defaultStorePath(), into, ...chosen } = parsed("importBundle", importOptions, options);
  return importInto({ file: resolve(file), store, into, ...chosen });
}

function parsed<T>(name: string, schema: z.ZodType<T>, value: unknown): T {
  const found = schema.safeParse(value);
  if (found.success) return found.data;
  const issue = found.error.issues[0];
  throw new RewindError("BAD_ARGUMENT", `${name}: ${issue?.path.join(".") || "options"}: ${issue?.message}.`, {
    hint: "See the types of its options.",
  });
}
