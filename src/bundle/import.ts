// Brings a bundle to life in a store: all of it is looked at first, and nothing of it is seen before one transaction at the end.
import { basename } from "node:path";
import { requireEmpty } from "../environment/directory/fork.ts";
import type { Problem } from "../environment/environment.ts";
import { arrangedOverlays } from "../environment/sandbox/mount-plan.ts";
import { requireMachine } from "../environment/sandbox/open.ts";
import { asWriteFailure, RewindError } from "../errors.ts";
import { fault } from "../faults.ts";
import { reportProgress } from "../progress.ts";
import { openStore, type Store } from "../store/store.ts";
import { findEnvironment } from "../store/workspaces.ts";
import { resolveWorkspace } from "../workspace.ts";
import { beginArrival, removeLeftOverAt } from "./arrivals.ts";
import { type Checked, checkBundle } from "./check.ts";
import { arrange } from "./land-sandbox.ts";
import { Landing } from "./landing.ts";
import { unlikenesses } from "./likeness.ts";
import { BundleReader } from "./reader.ts";

export interface ImportRequest {
  readonly file: string;
  /** Folder of the store. */
  readonly store: string;
  /** The workspace that is made; undefined: a folder of its name in the current one. */
  readonly into: string | undefined;
  readonly processes: "restore" | "relaunch" | "stop";
  readonly allowBroadWorkspace: boolean;
}

export interface Imported {
  /** Real path of the workspace that was made. */
  readonly workspace: string;
  readonly environment: "directory" | "sandbox";
  readonly thread: string;
  /** Id of the thread's head. */
  readonly checkpoint: string;
  readonly checkpoints: number;
  /** What becomes of the processes of a sandbox when it is opened; null where there are none. */
  readonly processes: "restore" | "relaunch" | "stop" | null;
  /** Why processes could not have gone on here with their memory. */
  readonly unlike: readonly string[];
  /** What of the files differs from the bundle's, and why. */
  readonly notRestored: readonly Problem[];
}

/**
 * Killed at any moment nothing of it is seen, or all; what it left goes with the next import.
 * @throws BAD_ARGUMENT, BUNDLE_DAMAGED, FOLDER_NOT_EMPTY, NOT_AVAILABLE, STORE_INSIDE_WORKSPACE, STORE_TOO_NEW, UNLIKE_MACHINE, WORKSPACE_TOO_BROAD, DISK_FULL, WRITE_FAILED
 */
export async function importInto(request: ImportRequest): Promise<Imported> {
  const reader = new BundleReader(request.file);
  try {
    reportProgress("import", "looking at the bundle");
    const checked = await checkBundle(reader);
    const { source, environment } = checked.header;
    const into = request.into ?? ownName(source.workspace);
    const folder = resolveWorkspace(into, request.store, request.allowBroadWorkspace, true);
    await removeLeftOverAt(request.store);
    requireEmpty(folder);
    const unlike = await unlikeHere(checked, folder);
    if (unlike.length > 0 && request.processes === "restore") throw unlikeMachine(unlike);
    fault("import.verified");
    const store = openStore(request.store);
    try {
      requireUnknown(store, folder);
      const arriving = await beginArrival(store, environment.kind, folder);
      try {
        const { processes } = request;
        const landed = await new Landing({ store, reader, checked, arriving, folder, processes }).run();
        await arriving.done();
        fault("import.done");
        const hasProcesses = (environment.sandbox?.images.length ?? 0) > 0;
        return {
          ...{ workspace: folder, environment: environment.kind, thread: source.thread, ...landed },
          processes: hasProcesses ? processes : null,
          unlike,
        };
      } catch (error) {
        await arriving.undo();
        throw error;
      }
    } catch (error) {
      throw asWriteFailure(error, request.store);
    } finally {
      store.close();
    }
  } finally {
    reader.close();
  }
}

/** Whoever made the bundle chooses no path, and no name that programs look for. @throws BAD_ARGUMENT */
function ownName(workspace: string): string {
  const name = basename(workspace);
  if (name !== "" && !name.startsWith(".")) return name;
  throw new RewindError("BAD_ARGUMENT", `The bundle does not say a name for its workspace (it was ${workspace}).`, {
    hint: "Say where the workspace shall be: `into`, or `--into DIR`.",
  });
}

/** A folder of which something is recorded has a past of its own. @throws FOLDER_NOT_EMPTY */
function requireUnknown(store: Store, folder: string): void {
  for (const kind of ["directory", "sandbox"]) {
    const found = findEnvironment(store.sql, folder, kind);
    const held = store.sql.prepare(
      "SELECT 1 FROM checkpoint c JOIN thread t ON t.id = c.thread WHERE t.environment = ?",
    );
    if (found !== undefined && held.get(found.id) !== undefined)
      throw new RewindError("FOLDER_NOT_EMPTY", `The store knows a workspace at ${folder} already.`, {
        hint: "Name another folder; the same bundle may be imported again and again, each time into one of its own.",
        details: { folder },
      });
  }
}

/** Why its processes cannot go on here. @throws NOT_AVAILABLE, BAD_ARGUMENT where no sandbox of this form can be made here */
async function unlikeHere({ header }: Checked, folder: string): Promise<string[]> {
  const { sandbox } = header.environment;
  if (sandbox === null) return [];
  const { native } = requireMachine();
  const overlays = arrangedOverlays(
    { ...sandbox.options, workspace: folder },
    { workspace: sandbox.workspace, overlays: arrange(sandbox) },
  );
  // The workspace goes along, and is not there yet.
  const machine = overlays.filter(({ path }) => path !== sandbox.workspace);
  return unlikenesses(header.machine, sandbox.images, { native, overlays: machine });
}

const unlikeMachine = (reasons: readonly string[]): RewindError =>
  new RewindError("UNLIKE_MACHINE", `The processes cannot go on on this machine: ${reasons.join("; ")}.`, {
    hint: 'Import it on a machine that is like it, or without their memory: `processes: "relaunch"` starts them again, "stop" leaves them behind (`--processes`).',
    details: { reasons },
  });
