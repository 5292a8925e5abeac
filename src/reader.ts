// The composition root for reading: opens a store without the lock, beside a running agent and also when the workspace is gone.
import { existsSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { makeCoordinator } from "./coordinator/coordinator.ts";
import { atOnce } from "./coordinator/jobs.ts";
import { capturePolicy } from "./coordinator/policy/option.ts";
import { openDirectory } from "./environment/directory/directory.ts";
import { fidelityBit } from "./environment/directory/entry.ts";
import { openPosix } from "./environment/directory/open-posix.ts";
import { snapshotKind } from "./environment/directory/reach.ts";
import { readSnapshot } from "./environment/directory/tree.ts";
import type { Environment, Manifest } from "./environment/environment.ts";
import type { Orphan } from "./environment/sandbox/orphans.ts";
import { isRewindError, RewindError } from "./errors.ts";
import { type Cleaned, cleanOrphans, orphansOf } from "./orphans.ts";
import { requireCheckpoint } from "./session/admissible.ts";
import type { SessionDeps } from "./session/deps.ts";
import { noEffectRules } from "./session/effect-rules.ts";
import { opaqueSerializer } from "./session/serializer.ts";
import { makeStaleness } from "./session/staleness.ts";
import { Thread } from "./session/thread.ts";
import { type Finding, verifyEnvironment } from "./session/verify.ts";
import { type Catalog, openCatalog } from "./store/catalog.ts";
import { isHeld } from "./store/control.ts";
import { openDatabase, type Sql } from "./store/database.ts";
import { type Layout, layoutOf } from "./store/layout.ts";
import { storeBytes } from "./store/limit.ts";
import { type Objects, openObjects } from "./store/objects.ts";
import { type Survey, survey } from "./store/survey.ts";
import { openUses } from "./store/uses.ts";
import { type EnvironmentRow, environmentsOf, findEnvironment } from "./store/workspaces.ts";
import { resolveWorkspace } from "./workspace.ts";

/** What of a thread works without the lock. */
export type ReadThread = Pick<Thread, "name" | "head" | "checkpoints" | "get" | "lessons" | "effects" | "diff">;

/** What the store holds of one workspace, as it was when the reader was opened. */
export interface Recorded {
  /** Id of the environment. */
  readonly id: string;
  readonly kind: string;
  /** The most recently active first. */
  threads(): string[];
  thread(name: string): ReadThread;
  /** Ids of the lessons that the context of a checkpoint contains. */
  lessonsAt(thread: string, id: string): readonly number[];
  /** What the snapshot does not hold; null when there is none or it cannot be read. */
  lacks(manifest: Manifest): readonly string[] | null;
  epoch(): number;
  /** True when a process holds the environment. */
  held(): Promise<boolean>;
  /** @throws NOT_AVAILABLE for an environment of a program of its own */
  verify(): Promise<Finding[]>;
}

export interface Reader {
  readonly layout: Layout;
  /** Undefined where nothing is recorded of the workspace. */
  readonly recorded: Recorded | undefined;
  readonly format: number;
  /** Of the whole store, packs and catalog. */
  bytes(): number;
  /** What of the whole store is alive. @throws the signal's reason; STORE_CORRUPT */
  survey(signal?: AbortSignal): Promise<Survey>;
  count(table: "workspace" | "thread" | "checkpoint"): number;
  /** What killed owners of the store's sandboxes left on this machine. */
  orphans(): Promise<Orphan[]>;
  /** Removes it, where nobody holds them. */
  clean(): Promise<Cleaned>;
  close(): void;
}

/**
 * Opens the store at `store` for reading what it holds of `workspace`, a real path. Undefined where there is no store: none is made.
 * @throws STORE_TOO_NEW, STORE_CORRUPT
 */
export function openReader(store: string, workspace: string): Reader | undefined {
  const layout = layoutOf(store);
  if (!existsSync(layout.catalog)) return undefined;
  const sql = openDatabase(layout.catalog);
  const uses = openUses(sql, layout.locks);
  const objects = openObjects(sql, layout.packs, null, uses);
  // Begins before the moment that is read: nothing of that moment is taken away by gc while it is looked at.
  uses.enter();
  try {
    // One moment for everything that is read, whatever is written meanwhile.
    sql.exec("BEGIN");
    const row = findAnyEnvironment(sql, workspace);
    return {
      layout,
      recorded: row && openRecorded(sql, objects, layout, workspace, row),
      format: sql.pragma("user_version", { simple: true }) as number,
      bytes: () => storeBytes(layout),
      survey: (signal) => survey(sql, layout, objects, snapshotKind, signal),
      count: (table) => sql.prepare(`SELECT count(*) FROM ${table}`).pluck().get() as number,
      orphans: () => orphansOf(layout, environmentsOf(sql, "sandbox")),
      clean: () => cleanOrphans(layout, environmentsOf(sql, "sandbox")),
      close() {
        objects.close();
        uses.close();
        sql.close();
      },
    };
  } catch (error) {
    objects.close();
    uses.close();
    sql.close();
    throw error;
  }
}

/** The workspace's real path, also when it is gone or no directory any more. @throws STORE_INSIDE_WORKSPACE */
export function readableWorkspace(workspace: string, store: string): string {
  try {
    return resolveWorkspace(workspace, store, true, true);
  } catch (error) {
    if (isRewindError(error, "WORKSPACE_GONE")) return realpathSync(workspace);
    throw error;
  }
}

/** What snapshots of the directory at `root` lack on this machine. */
export function lacksOf(root: string): readonly string[] {
  const posix = openPosix(root);
  posix.close();
  return posix.lacks;
}

function findAnyEnvironment(sql: Sql, workspace: string): EnvironmentRow | undefined {
  const kinds = sql.prepare("SELECT DISTINCT kind FROM environment ORDER BY kind <> 'directory', kind").pluck().all();
  for (const kind of kinds as string[]) {
    const row = findEnvironment(sql, workspace, kind);
    if (row !== undefined) return row;
  }
  return undefined;
}

function openRecorded(
  sql: Sql,
  objects: Objects,
  layout: Layout,
  workspace: string,
  { id, kind }: EnvironmentRow,
): Recorded {
  const catalog = openCatalog(sql, id);
  const deps = readingDeps(catalog, objects, openFiles(objects, layout, workspace, id, kind));
  const held = (): Promise<boolean> => isHeld(layout.locks, id);
  return {
    id,
    kind,
    threads: () => catalog.threads().map((row) => row.name),
    thread: (name) => new Thread(deps, name, opaqueSerializer),
    lessonsAt(thread, checkpoint) {
      const row = catalog.thread(thread);
      return row === undefined ? [] : (JSON.parse(requireCheckpoint(deps, row, checkpoint).lessons) as number[]);
    },
    lacks: (manifest) => (kind === "directory" ? lacksOfSnapshot(objects, manifest) : null),
    epoch: catalog.epoch,
    held,
    async verify() {
      if (kind !== "directory") throw foreign(kind);
      return verifyEnvironment(deps, !(await held()));
    },
  };
}

function openFiles(objects: Objects, layout: Layout, root: string, id: string, kind: string): Environment {
  const directory = openDirectory({
    root,
    objects,
    id,
    exclude: [],
    watches: false,
    cacheFile: join(layout.cache, `${id}.tree`),
    isHeld: () => false,
    raiseGeneration: () => 0,
  });
  if (kind === "directory") return directory;
  return { ...directory, kind, diff: () => Promise.reject(foreign(kind)) };
}

function readingDeps(catalog: Catalog, objects: Objects, environment: Environment): SessionDeps {
  return {
    catalog,
    objects,
    environment,
    coordinator: makeCoordinator(),
    jobs: atOnce,
    syncLog: async () => {},
    gate: "captured",
    onCaptureFailure: "continue",
    policy: capturePolicy("every", noEffectRules.declared),
    budget: { rewinds: 0, perCheckpoint: 0 },
    staleness: makeStaleness(),
    effects: noEffectRules,
    running: new Set(),
    toolsBegun: new Map(),
    persisting: new Map(),
    restoresChannels: new Map(),
    reached: new Map(),
    track: () => {},
    assertOpen() {
      throw new RewindError("CLOSED", "The store was opened for reading.", { hint: "Open it with openRewind." });
    },
  };
}

const fidelityWords = {
  nanoseconds: "times below a microsecond",
  xattrs: "extended attributes",
  devices: "device nodes",
  owners: "owners",
  holes: "where holes lie in files",
} as const;

function lacksOfSnapshot(objects: Objects, { files }: Manifest): readonly string[] | null {
  if (files === null) return null;
  try {
    const { fidelity } = readSnapshot(objects, files);
    return Object.entries(fidelityWords)
      .filter(([name]) => (fidelity & fidelityBit[name as keyof typeof fidelityBit]) === 0)
      .map(([, words]) => words);
  } catch {
    return null;
  }
}

function foreign(kind: string): RewindError {
  return new RewindError(
    "NOT_AVAILABLE",
    `The files of this workspace are kept by an environment of its own kind ("${kind}").`,
    { hint: "Ask the program that brings that environment, while it runs." },
  );
}
