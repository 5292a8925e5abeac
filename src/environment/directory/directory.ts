// The directory environment: a plain directory, captured and restored in place, without privileges.
import { closeSync, fstatSync, readFile, readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { performance } from "node:perf_hooks";
import { setImmediate as nextTurn } from "node:timers/promises";
import { promisify } from "node:util";
import picomatch from "picomatch";
import { makeBreather } from "../../breathe.ts";
import { asWriteFailure, RewindError, systemCode } from "../../errors.ts";
import { reportLoss } from "../../events.ts";
import { makeFolder } from "../../store/io.ts";
import type {
  Capture,
  Captured,
  DirectoryEntry,
  Environment,
  FileChanges,
  Manifest,
  Problem,
  Restored,
  RestoreOptions,
} from "../environment.ts";
import { execCommand } from "../exec.ts";
import { trackCommands } from "../running.ts";
import { type Entry, type EntryType, entryType } from "./entry.ts";
import { forkDirectory } from "./fork.ts";
import { findImmovable } from "./immovable.ts";
import type { Known } from "./job.ts";
import { openJobs } from "./jobs.ts";
import { linkFree } from "./link-free.ts";
import { callerPath, display, fromDisplay, parentOf, type RawPath, toBytes } from "./names.ts";
import { openPosix } from "./open-posix.ts";
import { openScanner } from "./open-scanner.ts";
import type { DirectoryOptions } from "./options.ts";
import { outsideNames } from "./outside-names.ts";
import { planRestore } from "./plan.ts";
import type { Posix } from "./posix.ts";
import { Programs } from "./programs/programs.ts";
import { isHeld } from "./reach.ts";
import { applyPlan } from "./restore.ts";
import { type FileRestore, restoreAround } from "./restore-around.ts";
import { ScanMemory } from "./scan-memory.ts";
import type { Scan, Scanner, Seen } from "./scanner.ts";
import { requireKnown } from "./selection.ts";
import { changedBetween, pathScope, uncapturedReason } from "./since.ts";
import { compareTrees, findEntry, readSnapshot, Summary, snapshotObjects } from "./tree.ts";
import { makeFolders, replaceFile } from "./write-file.ts";
import { writersOfReplaced } from "./writers.ts";

/** Above this a file is read off the main thread. */
const quickBytes = 1 << 20;
const readAside = promisify(readFile) as (fd: number) => Promise<Buffer>;
const nothing: FileChanges = { added: [], removed: [], changed: [], mode: [], type: [], renamed: [] };

export function openDirectory(opening: DirectoryOptions): Environment {
  const { root, objects } = opening;
  const stage: RawPath = `.agentrewind-${opening.id}`;
  const matches = opening.exclude.length === 0 ? null : picomatch([...opening.exclude], { dot: true });
  const excluded = matches === null ? null : (path: RawPath): boolean => matches(display(path));
  const commands = trackCommands();
  const programs =
    opening.programs === undefined
      ? undefined
      : new Programs({
          environment: opening.id,
          folder: join(opening.programs.folder, opening.id),
          objects,
          policy: opening.programs.policy,
        });
  let generation = 0;
  const raiseGeneration = (): number => {
    generation = opening.raiseGeneration();
    return generation;
  };
  let scanner: Scanner | undefined;
  let memory: ScanMemory | undefined;
  /** The generation of the store in which the kept scan was made (F-33). */
  let scannedIn: number | undefined;
  /** The last scan, until a restore has changed the tree. */
  let fresh: Scan | undefined;
  const lacks = probeLacks(root);

  function open(): Posix {
    try {
      return openPosix(root);
    } catch (error) {
      throw isGone(error) ? goneError(root, error) : error;
    }
  }

  const scanNow = (posix: Posix, signal?: AbortSignal): Promise<Scan & { written: number }> =>
    objects.use(() => scanInUse(posix, signal));

  async function scanInUse(posix: Posix, signal: AbortSignal | undefined): Promise<Scan & { written: number }> {
    scanner ??= openScanner(posix, { root, stage, excluded, watches: opening.watches });
    memory ??= new ScanMemory({ scanner, file: opening.cacheFile, isHeld: opening.isHeld });
    await memory.load();
    const generation = objects.generation();
    const { snapshot } = memory;
    // What was taken up from an earlier process a checkpoint holds.
    scannedIn ??= generation;
    if (snapshot !== undefined && scannedIn !== generation && !(await isHeld(objects, snapshot))) scanner.forget();
    // The conversation is stored in the turn before.
    await nextTurn();
    const batch = objects.batch();
    try {
      const result = await scanner.scan({ posix, batch, signal });
      if (result.missed) reportLoss({ watcher: "fanotify", path: root });
      const written = await batch.commit();
      memory.keep(result.snapshot);
      scannedIn = generation;
      fresh = result;
      return { ...result, written };
    } catch (error) {
      batch.discard();
      if (signal?.aborted === true && error === signal.reason) {
        throw new RewindError("CAPTURE_FAILED", "Reading the workspace was given up before it was done.", {
          hint: "Nothing was changed; try again without the signal.",
          cause: error,
        });
      }
      throw isGone(error) && !exists(root) ? goneError(root, error) : asWriteFailure(error, "the store");
    }
  }

  async function capture(signal?: AbortSignal): Promise<Captured> {
    const start = performance.now();
    const posix = open();
    try {
      const result = await scanNow(posix, signal);
      const ran = programs?.mayRun() === true ? await objects.use(() => programs.capture()) : undefined;
      return {
        manifest: { files: result.snapshot.toString("hex"), processes: ran?.name ?? null },
        problems: [...result.problems, ...(ran?.problems ?? [])],
        bytes: result.written + (ran?.bytes ?? 0),
        captureMs: performance.now() - start,
      };
    } finally {
      posix.close();
    }
  }

  function filesOf(manifest: Manifest): string {
    if (manifest.files !== null) return manifest.files;
    throw new RewindError("NOT_RESTORABLE", "This checkpoint holds no files.", { hint: "Choose another checkpoint." });
  }

  /** In use from beginning to end: what the plan located in packs must stay there. */
  const restore = (manifest: Manifest, options: RestoreOptions = {}): Promise<Restored> =>
    objects.use(() => restoreAround(programs, root, restoreFiles, manifest, options));

  async function restoreFiles(
    manifest: Manifest,
    { keep, since, paths, dryRun = false, signal }: RestoreOptions,
    { beforeTouching, ending, lenient = false }: FileRestore = {},
  ): Promise<Restored> {
    const target = readSnapshot(objects, filesOf(manifest));
    if (!exists(root) && !dryRun) makeFolder(root);
    const breathe = makeBreather();
    const posix = open();
    try {
      const captured = since === undefined ? undefined : filesOf(since);
      const known = captured !== undefined && fresh?.snapshot.toString("hex") === captured && signal?.aborted !== true;
      const scan = known ? (fresh as Scan) : await scanNow(posix, signal);
      const current = scan.snapshot.toString("hex");
      const seen = scanner as Scanner;
      const groups = seen.groups();
      // What nobody captured is nobody's to overwrite.
      const uncaptured =
        captured === undefined || captured === current
          ? new Set<RawPath>()
          : await changedBetween(objects, captured, current, breathe);
      const keptPaths = new Set([...[...(keep ?? [])].map(fromDisplay), ...uncaptured]);
      const folders = new Set<RawPath>();
      for (const path of keptPaths) {
        for (let folder = parentOf(path); folder !== ""; folder = parentOf(folder)) folders.add(folder);
      }
      const currentRoot = readSnapshot(objects, current).root;
      const isKnown = (path: RawPath): boolean =>
        [currentRoot, target.root].some((tree) => findEntry(objects, tree, path) !== null);
      const wanted =
        paths === undefined ? undefined : [...paths].map(fromDisplay).filter((path) => !lenient || isKnown(path));
      if (wanted !== undefined) requireKnown(wanted, isKnown);
      const firsts = new Map<RawPath, RawPath>();
      for (const [first, members] of groups) {
        for (const member of members) firsts.set(member, first);
        const pause = breathe();
        if (pause !== undefined) await pause;
      }
      await nextTurn();
      const look = (path: RawPath): Seen | undefined => seen.lookup(path);
      const immovable = await findImmovable({ posix, seen: look, groups, firsts, problems: scan.problems, breathe });
      const summary = new Summary();
      const problems: Problem[] = [];
      const plan = await planRestore({
        objects,
        current: currentRoot,
        target: target.root,
        groups,
        immovable,
        kept: (path) => keptPaths.has(path) || (excluded?.(path) ?? false),
        holdsKept: (path) => folders.has(path),
        scope: wanted === undefined ? undefined : pathScope(wanted),
        stage,
        breathe,
        onDifference: (difference) => summary.add(difference),
        onKept(path) {
          if (uncaptured.has(path)) problems.push({ path: display(path), reason: uncapturedReason });
        },
      });
      await nextTurn();
      const cut = await outsideNames(plan, look, groups, immovable.unreadFolders, breathe);
      if (dryRun) {
        const left = new Set([...keptPaths, ...plan.problems.map((one) => fromDisplay(one.path))]);
        const restored = await summary.changes(breathe, left);
        return { generation, restored, notRestored: [...problems, ...plan.problems, ...plan.notes, ...cut] };
      }
      const writers = writersOfReplaced(posix, plan, look, breathe, ending);
      writers.catch(() => {});
      fresh = undefined;
      problems.push(
        ...plan.problems,
        ...(await applyPlan(plan, {
          posix,
          jobs: openJobs(root, posix, objects, breathe),
          stage,
          known: (path) => knownAt(seen, firsts, path),
          shared: (path) => firsts.has(path),
          async beforeTouching() {
            // An inode's number may be another file's once it has gone.
            await writers;
            await beforeTouching?.();
          },
        })),
      );
      const left = new Set([...keptPaths, ...problems.map((one) => fromDisplay(one.path))]);
      return {
        generation: raiseGeneration(),
        restored: await summary.changes(breathe, left),
        notRestored: [...problems, ...plan.notes, ...cut, ...(await writers)],
      };
    } finally {
      posix.close();
    }
  }

  return {
    kind: "directory",
    capabilities: {
      files: true,
      processes: false,
      programs: programs !== undefined,
      fork: true,
      inPlace: true,
      freeze: false,
      memory: false,
      lacks,
    },

    async probe() {
      return { status: "available", reason: lacks.length === 0 ? "full fidelity" : `without ${lacks.join(", ")}` };
    },

    capture({ signal, mayPersist } = {}): Capture {
      const captured = capture(signal);
      const durable = captured.then(() => mayPersist).then(() => objects.sync());
      durable.catch(() => {});
      return { captured, durable };
    },

    restore,

    fork: (manifest, count, options) => forkDirectory(opening, manifest, count, options, openDirectory),

    async diff(from, to) {
      if (from.files === to.files) return nothing;
      const breathe = makeBreather();
      const summary = new Summary();
      const roots = [from, to].map((one) => readSnapshot(objects, filesOf(one)).root) as [Entry, Entry];
      await nextTurn();
      for (const difference of compareTrees(objects, ...roots)) {
        summary.add(difference);
        const pause = breathe();
        if (pause !== undefined) await pause;
      }
      return summary.changes(breathe);
    },

    settle: commands.end,

    async exec(command, execOptions = {}) {
      const folder = callerPath(execOptions.cwd ?? "");
      if (!exists(root)) throw goneError(root);
      const cwd = resolve(root, toBytes(linkFree(root, folder)).toString("utf8"));
      return commands.run(execOptions.signal, async (signal) => {
        const tracked = programs?.begin();
        try {
          const env = { ...execOptions.env, ...tracked?.variables };
          return await execCommand(command, cwd, { ...execOptions, signal, env }, tracked?.started);
        } finally {
          await tracked?.ended();
        }
      });
    },

    async readFile(path) {
      const posix = open();
      try {
        const fd = posix.openRead(linkFree(root, callerPath(path)));
        try {
          // Of what is no file the size says nothing, and read aside a folder gives no error (Node 20).
          return fstatSync(fd).size > quickBytes ? await readAside(fd) : readFileSync(fd);
        } finally {
          closeSync(fd);
        }
      } finally {
        posix.close();
      }
    },

    async writeFile(path, data) {
      const posix = open();
      try {
        const at = linkFree(root, callerPath(path));
        makeFolders(posix, parentOf(at));
        replaceFile(posix, at, data);
      } finally {
        posix.close();
      }
    },

    async list(path): Promise<DirectoryEntry[]> {
      const posix = open();
      try {
        return posix
          .readDirectory(linkFree(root, callerPath(path)))
          .filter((entry) => entry.name !== stage)
          .map((entry) => ({ name: display(entry.name), type: listedType(entry.type) }));
      } finally {
        posix.close();
      }
    },

    path: (path) => resolve(root, toBytes(callerPath(path)).toString("utf8")),

    async verify(manifest): Promise<Problem[]> {
      const found: Problem[] = [];
      try {
        const ran = manifest.processes === null ? [] : [Buffer.from(manifest.processes, "hex")];
        for (const hash of [...ran, ...snapshotObjects(objects, filesOf(manifest))]) {
          const wrong = objects.check(hash);
          if (wrong !== undefined) found.push({ path: hash.toString("hex"), reason: wrong });
        }
      } catch (error) {
        found.push({ path: filesOf(manifest), reason: (error as Error).message });
      }
      return found;
    },

    async close() {
      await memory?.save();
      scanner?.close();
    },
  };
}

/** What the last scan knew of a path; of a name of a shared inode, what it leads to. */
function knownAt(scanner: Scanner, firsts: ReadonlyMap<RawPath, RawPath>, path: RawPath): Known | undefined {
  const seen = scanner.lookup(path);
  if (seen?.type !== entryType.hardLink) return seen as Known | undefined;
  const first = scanner.lookup(firsts.get(path) ?? path);
  return first === undefined ? undefined : { ...(first as Known), ctimeNs: seen.ctimeNs };
}

/** True for an error that means the directory itself is gone. */
const isGone = (error: unknown): boolean => systemCode(error) === "ENOENT" || systemCode(error) === "ENOTDIR";

function exists(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

function goneError(root: string, cause?: unknown): RewindError {
  return new RewindError("WORKSPACE_GONE", `The workspace ${root} is gone.`, {
    hint: "Rewind to a checkpoint: that makes it again. Or create the directory.",
    cause,
  });
}

function probeLacks(root: string): readonly string[] {
  if (!exists(root)) return [];
  const posix = openPosix(root);
  posix.close();
  return posix.lacks;
}

function listedType(type: EntryType): DirectoryEntry["type"] {
  if (type === entryType.file) return "file";
  if (type === entryType.directory) return "directory";
  return type === entryType.symlink ? "symlink" : "other";
}
