// The composition root: openRewind chooses and wires the parts; nothing else names a concrete implementation.
import { existsSync } from "node:fs";
import { exportThread } from "./bundles.ts";
import { makeCoordinator } from "./coordinator/coordinator.ts";
import { limitsOf, openEngine } from "./coordinator/engine/open.ts";
import { devicesOf, jobsOf } from "./coordinator/jobs.ts";
import { capturePolicy } from "./coordinator/policy/option.ts";
import type { Applied, ApplyOptions } from "./environment/environment.ts";
import { kindOf, openEnvironment, seesContacts } from "./environments.ts";
import { asWriteFailure, isRewindError, RewindError } from "./errors.ts";
import { ended, makeForks } from "./fork.ts";
import { type Observing, observeOption, openObserved } from "./observed.ts";
import { type Chosen, chosenOptions, type OpenOptions } from "./open-options.ts";
import type { ExportRequest, Rewind } from "./opened.ts";
import { asFindings, orphansOf } from "./orphans.ts";
import { performControl } from "./session/control.ts";
import type { SessionDeps } from "./session/deps.ts";
import { effectRules } from "./session/effect-rules.ts";
import { markGone, newestPair } from "./session/gone.ts";
import { manifestOf } from "./session/move.ts";
import { observing as refusedObserving } from "./session/observer.ts";
import { type Pruned, type PruneRequest, pruneCheckpoints } from "./session/prune.ts";
import { keepUnrecorded, recover } from "./session/recover.ts";
import { makeStaleness } from "./session/staleness.ts";
import { Thread } from "./session/thread.ts";
import { type Finding, verifyEnvironment } from "./session/verify.ts";
import { openBranches } from "./store/branches.ts";
import { answers, serveControl } from "./store/control.ts";
import type { Collected } from "./store/gc.ts";
import { replaceHolder } from "./store/holder.ts";
import { defaultStorePath } from "./store/layout.ts";
import { softLimitOf, warnAbove } from "./store/limit.ts";
import { type Lock, lockOf, seizeLock, takeLock } from "./store/lock.ts";
import { giveReserve } from "./store/reserve.ts";
import type { CheckpointRow } from "./store/rows.ts";
import { openStore, type Store } from "./store/store.ts";
import { environmentsOf, findEnvironment, findOrMakeEnvironment, findOrMakeWorkspace } from "./store/workspaces.ts";
import { onTerminate } from "./terminate.ts";
import { askHolderToSeal, collectStore, unlessRunning } from "./upkeep.ts";
import { resolveWorkspace } from "./workspace.ts";

/**
 * Opens a workspace for recording and rewinding. One process writes at a time; what a killed one left half done is finished first.
 * @throws BAD_ARGUMENT, ENVIRONMENT_BUSY, WORKSPACE_GONE, WORKSPACE_TOO_BROAD, STORE_INSIDE_WORKSPACE, STORE_TOO_NEW, STORE_CORRUPT, DISK_FULL
 */
export async function openRewind(options: OpenOptions): Promise<Rewind> {
  const chosen = chosenOptions(options);
  const observe = observeOption(chosen);
  if (observe !== undefined) {
    const inspector = chosen.inspector === "scan" ? "scan" : "auto";
    const quiet = { ...chosen, ...onlyLooking, inspector } as const;
    return openObserved(
      chosen,
      observe,
      async (folder, workspace, observing) => (await openAt(folder, workspace, quiet, observing)).rewind,
    );
  }
  const storePath = chosen.store ?? defaultStorePath();
  const workspace = resolveWorkspace(chosen.workspace, storePath, chosen.allowBroadWorkspace, true);
  return (await openAt(storePath, workspace, chosen)).rewind;
}

interface Opened {
  readonly rewind: Rewind;
  readonly deps: SessionDeps;
}

/** What nothing is captured for. */
const onlyLooking = {
  capture: "every",
  gate: "captured",
  onCaptureFailure: "continue",
  takeOver: false,
  softLimit: 0,
  onTerminate: undefined,
} as const satisfies Partial<Chosen>;

async function openAt(storePath: string, workspace: string, chosen: Chosen, observing?: Observing): Promise<Opened> {
  const store = openStore(storePath);
  try {
    return await openIn(store, workspace, chosen, observing);
  } catch (error) {
    store.close();
    throw asWriteFailure(error, storePath);
  }
}

async function openIn(store: Store, workspace: string, chosen: Chosen, observing?: Observing): Promise<Opened> {
  const kind = kindOf(chosen);
  if (!existsSync(workspace) && findEnvironment(store.sql, workspace, kind) === undefined) {
    throw new RewindError("WORKSPACE_GONE", `There is no directory ${workspace}, and nothing is recorded of it.`, {
      hint: "Check the name, or create the directory.",
    });
  }
  const limit = softLimitOf(chosen.softLimit);
  const known = findOrMakeWorkspace(store.sql, workspace);
  const { id } = findOrMakeEnvironment(store.sql, known.id, kind);
  const branches = openBranches(store.sql);
  const self = branches.at(id);
  if (self !== undefined && self.state !== "open") throw ended(self.id, self.state);
  const lock = await takeHold(store, id, chosen.takeOver);
  const engine = openEngine(store.layout.locks, limitsOf(chosen.engine));
  try {
    const { catalog, objects } = store.open(id);
    const rules = effectRules(chosen);
    if (rules.network !== undefined && observing === undefined && !seesContacts(chosen)) throw unseenNetwork();
    const place = { store, workspace, id, catalog, objects };
    const environment = await (observing?.environment(place) ?? openEnvironment(place, chosen));
    const background = new Set<Promise<unknown>>();
    /** Of these, what brings something recorded to the disk. */
    const persisting = new Set<Promise<unknown>>();
    /** Must have settled before the store is closed. */
    const keepOpen = (work: Promise<unknown>): void => {
      const settled = work.then(
        () => {},
        () => {},
      );
      background.add(settled);
      void settled.then(() => background.delete(settled));
    };
    let open = true;
    const jobs = jobsOf({
      engine,
      environment: id,
      device: devicesOf(kind === "sandbox" ? store.layout.root : workspace, store.layout.root),
      waiting: chosen.engine.waiting,
    });
    const deps: SessionDeps = {
      catalog,
      objects,
      environment,
      // A rewind that failed and could not be put back (a full disk) is finished before anything else happens here.
      coordinator: makeCoordinator(async () => {
        if (!open) return;
        // The intent may be that of a holder which has replaced this one.
        catalog.requireHolder();
        if (catalog.openIntents().length > 0) await recover(deps);
      }, jobs.hurry),
      jobs,
      async syncLog() {
        await store.syncLog();
        warnAbove(limit, store.sql, store.layout);
      },
      gate: chosen.gate,
      onCaptureFailure: chosen.onCaptureFailure,
      policy: capturePolicy(chosen.capture, rules.declared),
      changedSince: environment.changed?.bind(environment),
      observer: observing?.observer,
      budget: { rewinds: chosen.budget.rewinds ?? 10, perCheckpoint: chosen.budget.perCheckpoint ?? 3 },
      staleness: makeStaleness(),
      effects: rules,
      running: new Set(),
      toolsBegun: new Map(),
      persisting: new Map(),
      summarizeLessons: chosen.lessons?.summarize,
      restoresChannels: new Map(),
      reached: new Map(),
      track(work) {
        persisting.add(work);
        const done = (): void => void persisting.delete(work);
        work.then(done, done);
        keepOpen(work);
      },
      assertOpen() {
        if (!open)
          throw new RewindError("CLOSED", "This workspace was closed.", { hint: "Open it again with openRewind." });
        catalog.requireHolder();
      },
    };
    await markLost(deps);
    await recover(deps);
    const newest = newestPair(deps);
    let left: CheckpointRow | undefined;
    const wentBack = await environment.resume?.(newest === undefined ? null : manifestOf(newest), (found) => {
      if (newest !== undefined) left = keepUnrecorded(deps, newest, found);
    });
    if (wentBack === true && newest !== undefined) markGone(deps, newest, left);

    const threads = new Map<string, Thread>();
    /** The thread as its adapter opened it, for who asks by name alone: contexts come back as the framework's own messages. */
    const adapterThreads = new Map<string, Thread>();
    const thread: Rewind["thread"] = (name, { serializer, restoresChannels } = {}) => {
      if (name === "")
        throw new RewindError("BAD_ARGUMENT", "A thread needs a name.", { hint: "Give any non-empty string." });
      if (restoresChannels !== undefined) deps.restoresChannels.set(name, restoresChannels);
      const key = JSON.stringify([name, serializer?.name ?? null]);
      let found = (serializer === undefined ? adapterThreads.get(name) : undefined) ?? threads.get(key);
      if (found === undefined) {
        found = new Thread(deps, name, serializer);
        threads.set(key, found);
        if (serializer !== undefined) adapterThreads.set(name, found);
      }
      return found;
    };
    const forks = makeForks({
      deps,
      branches,
      store,
      workspace,
      environmentId: id,
      thread,
      open: (row) =>
        openAt(store.layout.root, row.folder as string, { ...chosen, environment: "directory", takeOver: false }),
    });
    await forks.recover();
    warnAbove(limit, store.sql, store.layout);
    const closing = new AbortController();
    const seal = (): Promise<boolean> => deps.coordinator.exclusive(async () => objects.seal());
    const gc = async (): Promise<Collected> => {
      deps.assertOpen();
      if (observing !== undefined) return nothingCollected;
      const work = collectStore(store.layout, {
        signal: closing.signal,
        askToSeal: (other) => (other === id ? seal() : askHolderToSeal(store.layout.locks, other)),
      });
      keepOpen(work);
      const collected = await work;
      await deps.coordinator.exclusive(async () => environment.forget?.(catalog.isNamed));
      // Lets go of packs that are gone.
      if (open) await objects.use(async () => {});
      return collected;
    };
    const prune = async (request: PruneRequest): Promise<Pruned> => {
      deps.assertOpen();
      if (observing !== undefined)
        return { pruned: [], kept: 0, gc: request.dryRun === true ? null : nothingCollected };
      if (request.dryRun !== true) giveReserve(store.layout);
      const pruned = await deps.coordinator.exclusive(() => pruneCheckpoints(deps, store.sql, id, request));
      return { ...pruned, gc: request.dryRun === true ? null : await unlessRunning(gc()) };
    };
    const apply = async (request: ApplyOptions = {}): Promise<Applied> => {
      deps.assertOpen();
      if (environment.apply === undefined) throw nothingToApply();
      return deps.coordinator.atBoundary(async () => environment.apply?.(request) as Promise<Applied>);
    };
    const verify = async (): Promise<Finding[]> => {
      const found = await deps.coordinator.exclusive(() => verifyEnvironment(deps, true));
      if (kind !== "sandbox") return found;
      return [...found, ...asFindings(await orphansOf(store.layout, environmentsOf(store.sql, kind), id))];
    };
    const exportTo: Rewind["export"] = (request: ExportRequest) => {
      deps.assertOpen();
      if (observing !== undefined) return Promise.reject(refusedObserving());
      const work = exportThread({ deps, store, workspace, environmentId: id }, request);
      keepOpen(work);
      return work;
    };
    const control = await serveControl(store.layout.locks, id, (request, mayBegin) =>
      performControl(deps, { prune, seal, apply, verify, export: exportTo }, forks.make, request, mayBegin),
    );
    const durable = async (): Promise<void> => {
      const done = Promise.all(persisting);
      jobs.hurry(done);
      await done;
      await store.syncLog();
    };
    const { onTerminate: terminable } = chosen;
    const unlisten = terminable === undefined ? () => {} : onTerminate({ ...terminable, durable });
    const close = async (): Promise<void> => {
      if (!open) return;
      open = false;
      closing.abort(
        new RewindError("CLOSED", "The workspace was closed before the store was cleaned up.", {
          hint: "Nothing is lost; run gc again.",
        }),
      );
      const settled = (async () => {
        await control.close();
        await deps.coordinator.exclusive(async () => {});
        await Promise.all(background);
      })();
      jobs.hurry(settled);
      await settled;
      try {
        await environment.close();
        await objects.settled();
        await store.settled();
      } finally {
        await engine.close();
        lock.release();
        store.close();
        unlisten();
        observing?.end();
      }
    };
    const rewind: Rewind = {
      workspace,
      environment,
      thread,
      observes: observing !== undefined,
      observed: () => observing?.report(),
      threads: () => catalog.threads().map((row) => row.name),
      running() {
        const name = deps.coordinator.insideOf();
        return name === undefined ? undefined : thread(name);
      },
      prune,
      apply,
      gc,
      export: exportTo,
      async durable() {
        deps.assertOpen();
        await durable();
      },
      fork: (checkpoint, options = {}) => forks.fork(checkpoint, options),
      branches: forks.list,
      branch: forks.branch,
      async verify() {
        deps.assertOpen();
        return verify();
      },
      close,
      [Symbol.asyncDispose]: close,
    };
    return { rewind, deps };
  } catch (error) {
    await engine.close();
    lock.release();
    throw asWriteFailure(error, "the store");
  }
}

const nothingCollected: Collected = {
  objects: 0,
  bytes: 0,
  catalog: 0,
  packs: { deleted: 0, rewritten: 0 },
  leftOver: 0,
  postponed: [],
};

const unseenNetwork = (): RewindError =>
  new RewindError("NOT_AVAILABLE", "effects.network was given, and nothing here sees connections.", {
    hint: 'Use environment: "sandbox" with inspector: "ebpf", or leave it out.',
  });

const nothingToApply = (): RewindError =>
  new RewindError("NOT_AVAILABLE", "This environment works in the workspace itself: there is nothing to bring back.", {
    hint: "Only a sandbox keeps its changes from the host.",
  });

/** How long a holder may take to answer. */
const answerMs = 3_000;

/** @throws ENVIRONMENT_BUSY */
async function takeHold({ layout, sql }: Store, environment: string, takeOver: boolean): Promise<Lock> {
  const held = lockOf(layout.locks, environment);
  try {
    return takeLock(layout.locks, environment);
  } catch (error) {
    if (!takeOver || !isRewindError(error, "ENVIRONMENT_BUSY")) throw error;
    if (await answers(layout.locks, environment, answerMs)) {
      throw new RewindError("ENVIRONMENT_BUSY", "The process that holds this workspace is alive and answers.", {
        hint: "Close it, or hand it what you want with the `agentrewind` command.",
        details: { environment },
      });
    }
    return seizeLock(layout.locks, environment, held, () => replaceHolder(sql, environment));
  }
}

/** A checkpoint that was not yet durable when the machine stopped may have lost bytes (F-25). */
async function markLost(deps: SessionDeps): Promise<void> {
  if (!deps.catalog.isSuspect()) return;
  for (const row of deps.catalog.allCheckpoints()) {
    if (row.state !== "captured") continue;
    const problems = await deps.environment.verify(manifestOf(row));
    if (problems.length > 0)
      deps.catalog.markNotRestorable(row.id, "its files were not on disk when the machine stopped");
  }
  deps.catalog.clearSuspect();
}
