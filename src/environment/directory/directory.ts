// The directory environment: a plain directory, captured and restored in place, without privileges.
import { closeSync, readFileSync, readlinkSync, realpathSync, statSync } from "node:fs";
import { normalize, resolve } from "node:path";
import { performance } from "node:perf_hooks";
import picomatch from "picomatch";
import { makeBreather } from "../../breathe.ts";
import { asWriteFailure, RewindError, systemCode } from "../../errors.ts";
import { makeFolder, writeAll } from "../../store/io.ts";
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
import { callerPath, display, fromBytes, fromDisplay, parentOf, type RawPath, toBytes } from "./names.ts";
import { openPosix } from "./open-posix.ts";
import { openScanner } from "./open-scanner.ts";
import type { DirectoryOptions } from "./options.ts";
import { planRestore } from "./plan.ts";
import type { Posix } from "./posix.ts";
import { applyPlan } from "./restore.ts";
import { ScanMemory } from "./scan-memory.ts";
import type { Scan, Scanner } from "./scanner.ts";
import { makeSelection } from "./selection.ts";
import { compareTrees, findEntry, readSnapshot, snapshotObjects, summarize } from "./tree.ts";

const nothing: FileChanges = { added: [], removed: [], changed: [], mode: [], type: [], renamed: [] };

export function openDirectory(opening: DirectoryOptions): Environment {
  const { root, objects } = opening;
  const stage: RawPath = `.agentrewind-${opening.id}`;
  const matches = opening.exclude.length === 0 ? null : picomatch([...opening.exclude], { dot: true });
  const excluded = matches === null ? null : (path: RawPath): boolean => matches(display(path));
  const commands = trackCommands();
  let generation = 0;
  const raiseGeneration = (): number => {
    generation = opening.raiseGeneration();
    return generation;
  };
  let scanner: Scanner | undefined;
  let memory: ScanMemory | undefined;
  const lacks = probeLacks(root);

  function open(): Posix {
    try {
      return openPosix(root);
    } catch (error) {
      throw isGone(error) ? goneError(root, error) : error;
    }
  }

  async function scanNow(posix: Posix, signal?: AbortSignal): Promise<Scan & { written: number }> {
    scanner ??= openScanner(posix, { stage, excluded });
    memory ??= new ScanMemory({ scanner, file: opening.cacheFile, isHeld: opening.isHeld });
    await memory.load();
    const batch = objects.batch();
    try {
      const result = await scanner.scan({ posix, batch, signal });
      const written = await batch.commit();
      memory.keep(result.snapshot);
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
      return {
        manifest: { files: result.snapshot.toString("hex"), processes: null },
        problems: result.problems,
        bytes: result.written,
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

  async function restore(manifest: Manifest, options: RestoreOptions = {}): Promise<Restored> {
    const { keep, paths, dryRun = false, signal } = options;
    const target = readSnapshot(objects, filesOf(manifest));
    if (!exists(root) && !dryRun) makeFolder(root);
    const keptPaths = new Set([...(keep ?? [])].map(fromDisplay));
    const folders = new Set<RawPath>();
    for (const path of keptPaths) {
      for (let folder = parentOf(path); folder !== ""; folder = parentOf(folder)) folders.add(folder);
    }
    const posix = open();
    try {
      const now = await scanNow(posix, signal);
      const breathe = makeBreather();
      const current = readSnapshot(objects, now.snapshot.toString("hex")).root;
      const has = (tree: Entry, path: RawPath): boolean => findEntry(objects, tree, path) !== null;
      const selection = paths && makeSelection(paths, (path) => has(current, path) || has(target.root, path));
      const plan = planRestore({
        objects,
        current,
        target: target.root,
        groups: (scanner as Scanner).groups(),
        kept: (path) => keptPaths.has(path) || (excluded?.(path) ?? false),
        holdsKept: (path) => folders.has(path),
        selection,
      });
      const problems = dryRun ? [] : await applyPlan(plan, { posix, objects, stage, breathe, source: opening.source });
      const notRestored = [...plan.problems, ...problems];
      const left = new Set([...keptPaths, ...notRestored.map((one) => fromDisplay(one.path))]);
      const differences = [...compareTrees(objects, current, target.root)].filter(
        ({ path }) => !left.has(path) && selection?.isSelected(path) !== false,
      );
      return { generation: dryRun ? generation : raiseGeneration(), restored: summarize(differences), notRestored };
    } finally {
      posix.close();
    }
  }

  return {
    kind: "directory",
    capabilities: { files: true, processes: false, fork: true, inPlace: true, freeze: false, memory: false, lacks },

    async probe() {
      return { status: "available", reason: lacks.length === 0 ? "full fidelity" : `without ${lacks.join(", ")}` };
    },

    capture({ signal } = {}): Capture {
      const captured = capture(signal);
      const durable = captured.then(() => objects.sync());
      durable.catch(() => {});
      return { captured, durable };
    },

    restore,

    fork: (manifest, count, options) => forkDirectory(opening, manifest, count, options, openDirectory),

    async diff(from, to) {
      if (from.files === to.files) return nothing;
      return summarize(
        compareTrees(objects, readSnapshot(objects, filesOf(from)).root, readSnapshot(objects, filesOf(to)).root),
      );
    },

    settle: commands.end,

    async exec(command, execOptions = {}) {
      const folder = callerPath(execOptions.cwd ?? "");
      if (!exists(root)) throw goneError(root);
      const cwd = resolve(root, toBytes(linkFree(root, folder)).toString("utf8"));
      return commands.run(execOptions.signal, (signal) => execCommand(command, cwd, { ...execOptions, signal }));
    },

    async readFile(path) {
      const posix = open();
      try {
        const fd = posix.openRead(linkFree(root, callerPath(path)));
        try {
          return readFileSync(fd);
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
        for (const hash of snapshotObjects(objects, filesOf(manifest))) {
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
    },
  };
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

/** Where the links of `path` lead, as a path without links. @throws PATH_OUTSIDE when that is not in the workspace */
function linkFree(root: string, path: RawPath, hops = 0): RawPath {
  const top = realpathSync(root, "buffer");
  let known = path;
  let rest: RawPath = "";
  for (;;) {
    try {
      const real = realpathSync(Buffer.concat([top, Buffer.from("/"), toBytes(known)]), "buffer");
      const inside =
        real.equals(top) || real.subarray(0, top.length + 1).equals(Buffer.concat([top, Buffer.from("/")]));
      if (!inside) throw outsideError(path);
      const found = fromBytes(real.subarray(top.length + 1));
      return found === "" ? rest : rest === "" ? found : `${found}/${rest}`;
    } catch (error) {
      if (systemCode(error) !== "ENOENT" || known === "") throw error;
      const target = linkTarget(Buffer.concat([top, Buffer.from("/"), toBytes(known)]));
      if (target !== undefined && hops < hopLimit) {
        // A link to what is not there yet: its own text says where that would be.
        const start = fromBytes(top);
        const led = normalize(
          target.startsWith("/") ? target : `${start}/${linkFree(root, parentOf(known), hops + 1)}/${target}`,
        );
        if (!led.startsWith(`${start}/`)) throw outsideError(path);
        return linkFree(root, led.slice(start.length + 1) + (rest === "" ? "" : `/${rest}`), hops + 1);
      }
      rest = rest === "" ? baseOf(known) : `${baseOf(known)}/${rest}`;
      known = parentOf(known);
    }
  }
}

/** As many as the kernel follows. */
const hopLimit = 40;

function linkTarget(path: Buffer): RawPath | undefined {
  try {
    return fromBytes(readlinkSync(path, "buffer"));
  } catch {
    return undefined;
  }
}

function outsideError(path: RawPath): RewindError {
  return new RewindError("PATH_OUTSIDE", `${display(path)} leads out of the workspace.`, {
    hint: "Name a file inside the workspace.",
  });
}

const baseOf = (path: RawPath): RawPath => path.slice(path.lastIndexOf("/") + 1);

function makeFolders(posix: Posix, folder: RawPath): void {
  if (folder === "" || posix.stat(folder) !== undefined) return;
  makeFolders(posix, parentOf(folder));
  posix.makeDirectory(folder);
  posix.setMode(folder, 0o777 & ~process.umask());
}

/** Writes through an existing file, so that its mode and its other names stay; makes a new one otherwise. */
function replaceFile(posix: Posix, path: RawPath, data: string | Uint8Array): void {
  const present = posix.stat(path);
  if (present === undefined) {
    const fd = posix.create(path);
    try {
      writeAll(fd, Buffer.from(data), 0);
    } finally {
      closeSync(fd);
    }
    posix.setMode(path, 0o666 & ~process.umask());
    return;
  }
  const fd = posix.openWrite(path);
  try {
    writeAll(fd, Buffer.from(data), 0);
  } finally {
    closeSync(fd);
  }
}

function listedType(type: EntryType): DirectoryEntry["type"] {
  if (type === entryType.file) return "file";
  if (type === entryType.directory) return "directory";
  return type === entryType.symlink ? "symlink" : "other";
}
