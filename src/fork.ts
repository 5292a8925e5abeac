// Branches: independent copies of a workspace that go on from a checkpoint, adopted or abandoned in the end (F-27 to F-30).
import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { requireEmpty } from "./environment/directory/fork.ts";
import { endPrograms } from "./environment/directory/programs/end-programs.ts";
import { removeFolder } from "./environment/directory/remove.ts";
import type { Environment, Problem } from "./environment/environment.ts";
import { asWriteFailure, isRewindError, RewindError, systemCode } from "./errors.ts";
import { fault } from "./faults.ts";
import type { Branch, BranchInfo, ForkRequest, Rewind } from "./opened.ts";
import { reportProgress } from "./progress.ts";
import { requireCheckpoint, requireRestorable } from "./session/admissible.ts";
import type { SessionDeps } from "./session/deps.ts";
import { manifestOf } from "./session/move.ts";
import { requireRecording } from "./session/observer.ts";
import type { RewindResult } from "./session/types.ts";
import { branchId } from "./session/views.ts";
import { type Branches, type BranchRow, identityText } from "./store/branches.ts";
import { makeFolder, removeFolder as removeEmpty, remove as removeFile, rename } from "./store/io.ts";
import { takeLock } from "./store/lock.ts";
import type { CheckpointRow, ThreadRow } from "./store/rows.ts";
import type { Store } from "./store/store.ts";
import { requireApart, resolveWorkspace } from "./workspace.ts";

export interface ForkHost {
  readonly deps: SessionDeps;
  readonly branches: Branches;
  readonly store: Store;
  readonly workspace: string;
  readonly environmentId: string;
  readonly thread: Rewind["thread"];
  /** Opens the workspace of a branch. */
  readonly open: (row: BranchRow) => Promise<{ readonly rewind: Rewind; readonly deps: SessionDeps }>;
}

/** Far above what one machine can use, and below what would fill a disk by a slip. */
const countLimit = 1000;

export type Forks = ReturnType<typeof makeForks>;

export function makeForks(host: ForkHost) {
  const { deps, branches, store, workspace, environmentId } = host;

  /** Makes the folders; nothing of it is seen before all are complete. */
  async function make(
    id: string,
    request: ForkRequest,
  ): Promise<{ row: BranchRow; notRestored: readonly Problem[] }[]> {
    deps.assertOpen();
    requireRecording(deps);
    const { count = 1 } = request;
    if (!Number.isSafeInteger(count) || count < 1 || count > countLimit) {
      throw new RewindError("BAD_ARGUMENT", `${count} is no number of branches.`, {
        hint: `Give a whole number from 1 to ${countLimit}.`,
      });
    }
    const thread = threadNamed(deps, request.thread);
    const checkpoint = requireCheckpoint(deps, thread, id);
    requireRestorable(deps, checkpoint, "environment");
    const environment = requireFork(deps.environment);
    const into = request.into === undefined ? undefined : requirePlace(request.into, count);
    const folder = (branch: number, index: number): string => {
      if (into === undefined) return join(`${store.layout.root}-branches`, environmentId, branchId(branch));
      return count === 1 ? into : join(into, `${index + 1}`);
    };
    const source = deps.catalog.thread(thread.name) as ThreadRow;
    const rows = branches.add({
      source,
      checkpoint,
      kind: environment.kind,
      count,
      folder,
      parents: missingParents,
    });
    try {
      for (const row of rows) makeFolder(dirname(row.folder as string), 0o700);
      await deps.syncLog();
      fault("fork.journaled");
      const made = await environment.fork(manifestOf(checkpoint), count, {
        into: rows.map(unfinished),
        onMade: (done) => reportProgress("fork", "making the copies", done, count),
      });
      fault("fork.made");
      for (const row of rows) branches.identify(row, identityText(unfinished(row)));
      for (const row of rows) place(row);
      const open = branches.open(rows);
      await deps.syncLog();
      fault("fork.committed");
      return open.map((row, index) => ({ row, notRestored: made[index]?.notRestored ?? [] }));
    } catch (error) {
      for (const row of rows) await undo(branches.again(row));
      throw asWriteFailure(error, "the branches");
    }
  }

  function requirePlace(given: string, count: number): string {
    if (given === "") throw new RewindError("BAD_ARGUMENT", "The folder is empty.", { hint: "Name one." });
    const folders = count === 1 ? [given] : Array.from({ length: count }, (_, index) => join(given, `${index + 1}`));
    for (const one of folders) requireEmpty(resolve(one));
    const place = resolveWorkspace(given, store.layout.root, true, true);
    requireApart(place, workspace);
    return place;
  }

  /** A fork that was not completed leaves nothing. */
  async function undo(row: BranchRow): Promise<void> {
    await removeFolder(unfinished(row));
    if (row.folder !== null && row.identity !== null && identityText(row.folder) === row.identity)
      await removeFolder(row.folder);
    removeParents(row);
    branches.drop(row);
  }

  /** Removes the folder of one that has ended, unless somebody works in it or another folder lies in its place. */
  async function remove(row: BranchRow): Promise<void> {
    if (row.folder === null) return;
    const lock = takeLock(store.layout.locks, row.environment);
    try {
      await endPrograms(store.layout.programs, row.environment);
      if (identityText(row.folder) === row.identity) await removeFolder(row.folder);
      removeFile(join(store.layout.cache, `${row.environment}.tree`));
      fault("branch.removed");
      branches.removed(row);
    } catch (error) {
      throw new RewindError("FOLDER_NOT_REMOVED", `${row.folder} could not be removed: ${(error as Error).message}.`, {
        hint: "Mend that; the next open of the workspace goes on. Or remove the folder yourself.",
        details: { branch: branchId(row.id), folder: row.folder },
        cause: error,
      });
    } finally {
      lock.release();
    }
  }

  const info = (row: BranchRow): BranchInfo => ({
    id: branchId(row.id),
    source: { workspace, thread: row.source_name, checkpoint: `c${row.checkpoint_seq}` },
    folder: row.state === "open" ? row.folder : null,
    state: row.state as BranchInfo["state"],
    createdAt: row.created_at,
  });

  async function open(row: BranchRow, notRestored: readonly Problem[]): Promise<Branch> {
    const inner = await host.open(row);
    const { id, source } = info(row);
    const requireOpen = (): void => {
      deps.assertOpen();
      const { state } = branches.again(row);
      if (state !== "open") throw ended(row.id, state);
    };
    /** It has ended, but its folder could not be removed: the same call again goes on there. */
    let adopted: RewindResult | undefined;
    let abandoned = false;
    async function end(): Promise<void> {
      fault("branch.ended");
      await inner.rewind.close();
      await remove(branches.again(row));
      adopted = undefined;
      abandoned = false;
    }
    return {
      ...inner.rewind,
      id,
      source,
      notRestored,
      async adopt() {
        if (adopted === undefined) {
          requireOpen();
          await keepState(inner.rewind, inner.deps, row);
          adopted = await host.thread(row.source_name).adopt(row);
        }
        const result = adopted;
        await end();
        return result;
      },
      async abandon() {
        if (!abandoned) {
          requireOpen();
          // Its last state is kept where there is room for it; to give room may be why it is abandoned.
          await keepState(inner.rewind, inner.deps, row).catch(() => {});
          branches.abandon(row);
          abandoned = true;
        }
        await deps.syncLog();
        await end();
      },
    };
  }

  return {
    /** Without opening them. */
    async make(id: string, request: ForkRequest): Promise<BranchInfo[]> {
      return (await make(id, request)).map(({ row }) => info(row));
    },

    async fork(id: string, request: ForkRequest): Promise<Branch[]> {
      const made = await make(id, request);
      const opened: Branch[] = [];
      try {
        for (const { row, notRestored } of made) opened.push(await open(row, notRestored));
        return opened;
      } catch (error) {
        for (const one of opened) await one.close();
        for (const { row } of made) {
          branches.abandon(row);
          await remove(row);
        }
        throw error;
      }
    },

    list: (): BranchInfo[] => branches.of(environmentId).map(info),

    /** @throws UNKNOWN_BRANCH, BRANCH_ENDED, ENVIRONMENT_BUSY */
    async branch(id: string): Promise<Branch> {
      deps.assertOpen();
      const row = branches.of(environmentId).find((one) => branchId(one.id) === id);
      if (row === undefined) {
        throw new RewindError("UNKNOWN_BRANCH", `There is no branch "${id}" of this workspace.`, {
          hint: "`rewind.branches()` lists them.",
        });
      }
      if (row.state !== "open") throw ended(row.id, row.state);
      return open(row, []);
    },

    /** Finishes or undoes what a kill interrupted. The caller holds the environment's lock, so that nobody is making branches of it. */
    async recover(): Promise<void> {
      for (const row of branches.of(environmentId)) {
        try {
          if (row.state === "making") await undo(row);
          else if (row.state !== "open") await remove(row);
        } catch (error) {
          // Somebody else is at it, or it cannot be done now: the next open tries again.
          if (!isRewindError(error) && systemCode(error) === undefined) throw error;
        }
      }
    },
  };
}

/** Its name is ours in any folder: the environment's id is random. */
const unfinished = (row: BranchRow): string => join(dirname(row.folder as string), `.agentrewind-${row.environment}`);

function place(row: BranchRow): void {
  const folder = row.folder as string;
  try {
    rename(unfinished(row), folder);
  } catch (error) {
    if (["ENOTEMPTY", "EEXIST", "ENOTDIR"].includes(systemCode(error) ?? "")) requireEmpty(folder);
    throw error;
  }
  fault("fork.placed-one");
}

/** Folders above that are not there, the innermost first. */
function missingParents(folder: string): string[] {
  const missing: string[] = [];
  for (let at = dirname(folder); !existsSync(at); at = dirname(at)) missing.push(at);
  return missing;
}

function removeParents({ parents }: BranchRow): void {
  for (const folder of JSON.parse(parents ?? "[]") as string[]) {
    try {
      removeEmpty(folder);
    } catch {
      // It was not made, or somebody has put something there.
    }
  }
}

function threadNamed(deps: SessionDeps, name: string | undefined): ThreadRow {
  const found = name === undefined ? deps.catalog.threads()[0] : deps.catalog.thread(name);
  if (found !== undefined) return found;
  throw new RewindError("NO_THREAD", name === undefined ? "There is no thread yet." : `There is no thread "${name}".`, {
    hint: "Make a checkpoint first; `rewind.threads()` lists the threads.",
  });
}

function requireFork(environment: Environment): Environment & Required<Pick<Environment, "fork">> {
  if (environment.capabilities.fork && environment.fork !== undefined && environment.kind === "directory")
    return environment as Environment & Required<Pick<Environment, "fork">>;
  throw new RewindError("NOT_AVAILABLE", `An environment of the kind "${environment.kind}" makes no branches.`, {
    hint: "Use the directory environment, or call the environment's own `fork`.",
  });
}

/** What was done in the branch since its last checkpoint becomes one, on disk. */
async function keepState(rewind: Rewind, deps: SessionDeps, row: BranchRow): Promise<void> {
  const { catalog, coordinator, environment } = deps;
  const head = catalog.checkpoint(catalog.headOf(row.thread)) as CheckpointRow;
  const { manifest } = await coordinator.exclusive(() => environment.capture().captured);
  if (manifest.files !== head.files || manifest.processes !== head.processes)
    await rewind.thread(row.thread_name).checkpoint();
  await deps.objects.sync();
  catalog.markDurable(catalog.headOf(row.thread));
  await deps.syncLog();
}

export function ended(id: number, state: BranchRow["state"]): RewindError {
  const how = state === "making" ? "was never complete" : `was ${state}`;
  return new RewindError("BRANCH_ENDED", `Branch ${branchId(id)} ${how}.`, {
    hint: "Fork again from a checkpoint of the workspace from which it came.",
    details: { branch: branchId(id), state },
  });
}
