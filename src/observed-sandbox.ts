// A sandbox that is observed: its own files lie in the store, so it is the store's sandbox, under its lock; no state of it and no image is made.
import { join } from "node:path";
import { openDirectory } from "./environment/directory/directory.ts";
import type { Environment } from "./environment/environment.ts";
import { passingFolders } from "./environment/sandbox/present.ts";
import type { Sandbox } from "./environment/sandbox/sandbox.ts";
import { openEnvironment } from "./environments.ts";
import { RewindError } from "./errors.ts";
import type { CountingObjects } from "./observe/counting.ts";
import { observedEnvironment } from "./observe/environment.ts";
import type { Chosen } from "./open-options.ts";
import { newestPair } from "./session/gone.ts";
import { manifestOf } from "./session/move.ts";
import { defaultStorePath } from "./store/layout.ts";
import { takeLock } from "./store/lock.ts";
import { openStore } from "./store/store.ts";
import { findOrMakeEnvironment, findOrMakeWorkspace } from "./store/workspaces.ts";
import { resolveWorkspace } from "./workspace.ts";

/** @throws ENVIRONMENT_BUSY where somebody holds it, NOT_AVAILABLE where a killed owner left something that only recording keeps, or the machine makes no sandbox */
export async function observedSandbox(
  workspace: string,
  chosen: Chosen,
  objects: CountingObjects,
): Promise<Environment> {
  const path = chosen.store ?? defaultStorePath();
  resolveWorkspace(workspace, path, chosen.allowBroadWorkspace, true);
  const store = openStore(path);
  try {
    const { id } = findOrMakeEnvironment(store.sql, findOrMakeWorkspace(store.sql, workspace).id, "sandbox");
    const lock = takeLock(store.layout.locks, id);
    try {
      const opened = store.open(id);
      if (opened.catalog.openIntents().length > 0) throw unfinished();
      const place = { store, workspace, id, ...opened };
      const sandbox = (await openEnvironment(place, { ...chosen, observe: chosen.observe ?? {} })) as Sandbox;
      return ownedBy(sandbox, objects, join(store.layout.cache, `${id}.observed`), newestPair(opened), async () => {
        await opened.objects.settled();
        await store.settled();
        lock.release();
        store.close();
      });
    } catch (error) {
      lock.release();
      throw error;
    }
  } catch (error) {
    store.close();
    throw error;
  }
}

function ownedBy(
  sandbox: Sandbox,
  objects: CountingObjects,
  cacheFile: string,
  newest: ReturnType<typeof newestPair>,
  end: () => Promise<void>,
): Environment {
  let files: { readonly live: string; readonly folder: Environment } | undefined;
  let looks = 0;
  const folderOf = (live: string): Environment => {
    if (files?.live !== live)
      files = {
        live,
        folder: openDirectory({
          ...{ root: live, objects, id: "observed", exclude: passingFolders, watches: false },
          ...{ cacheFile, isHeld: () => false, raiseGeneration: () => 0 },
        }),
      };
    return files.folder;
  };
  const observed = observedEnvironment(sandbox, async (signal) => {
    const { live, processes } = await sandbox.present();
    looks++;
    const { manifest, problems, bytes } = await folderOf(live).capture(signal === undefined ? {} : { signal }).captured;
    const known = processes === undefined ? `look ${looks}` : processes;
    return { manifest: { files: manifest.files, processes: known }, problems, bytes };
  });
  const close = async (): Promise<void> => {
    try {
      await sandbox.close();
    } finally {
      await end();
    }
  };
  return {
    ...observed,
    async resume() {
      try {
        return await sandbox.resume(newest === undefined ? null : manifestOf(newest), () => {
          throw unfinished();
        });
      } catch (error) {
        await close();
        throw error;
      }
    },
    close,
  };
}

const unfinished = (): RewindError =>
  new RewindError("NOT_AVAILABLE", "The last owner of this sandbox was killed, and left what only recording keeps.", {
    hint: "Open the workspace once to record it, then observe it.",
  });
