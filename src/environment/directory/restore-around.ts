// A restore of the files with what becomes of programs around it: those of later are ended before, those of then are started behind it.
import { relative, sep } from "node:path";
import type { FileChanges, Manifest, Problem, Restored, RestoreOptions } from "../environment.ts";
import { display, fromBytes } from "./names.ts";
import type { Programs } from "./programs/programs.ts";

export interface FileRestore {
  /** Called when everything is staged and nothing is touched yet. */
  readonly beforeTouching?: () => Promise<void>;
  /** Numbers of processes that `beforeTouching` ends. */
  readonly ending?: ReadonlySet<number>;
  /** Paths that neither state has are passed over. */
  readonly lenient?: boolean;
}

export type RestoreFiles = (manifest: Manifest, options: RestoreOptions, how?: FileRestore) => Promise<Restored>;

export async function restoreAround(
  programs: Programs | undefined,
  root: string,
  restoreFiles: RestoreFiles,
  manifest: Manifest,
  options: RestoreOptions,
): Promise<Restored> {
  if (programs === undefined || options.paths !== undefined || options.programs === "keep")
    return restoreFiles(manifest, options);
  const fate = await programs.decide(manifest.processes);
  if (options.dryRun === true) {
    const files = await restoreFiles(manifest, options);
    const { stopped, notRestored } = programs.foreseen(fate);
    return { ...files, stopped, notRestored: [...files.notRestored, ...notRestored] };
  }
  let written: readonly string[] = [];
  let stopped: readonly string[] = [];
  let problems: readonly Problem[] = [];
  const files = await restoreFiles(manifest, options, {
    ending: new Set(fate.end.flatMap(({ processes }) => processes.map(({ pid }) => pid))),
    async beforeTouching() {
      written = programs.writtenBy(fate);
      const ended = await programs.end(fate);
      stopped = ended.stopped;
      problems = ended.notRestored;
    },
  });
  // What they wrote between the capture of what is left and their end is nobody's work to keep.
  const own = written.flatMap((path) => within(root, path)).filter((path) => options.keep?.has(path) !== true);
  const again = own.length === 0 ? undefined : await restoreFiles(manifest, { paths: new Set(own) }, { lenient: true });
  const named = files.notRestored.filter(({ path }) => !own.includes(path));
  return {
    ...(again ?? files),
    restored: again === undefined ? files.restored : both(files.restored, again.restored),
    stopped,
    notRestored: [...named, ...(again?.notRestored ?? []), ...problems, ...(await programs.start(fate))],
  };
}

/** Its display form, relative to the root; nothing for a path outside. */
function within(root: string, path: string): string[] {
  const inside = relative(root, path.replace(/ \(deleted\)$/, ""));
  if (inside === "" || inside === ".." || inside.startsWith(`..${sep}`)) return [];
  return [display(fromBytes(Buffer.from(inside, "utf8")))];
}

function both(one: FileChanges, other: FileChanges): FileChanges {
  const united = (a: readonly string[], b: readonly string[]): string[] => [...new Set([...a, ...b])].sort();
  return {
    added: united(one.added, other.added),
    removed: united(one.removed, other.removed),
    changed: united(one.changed, other.changed),
    mode: united(one.mode, other.mode),
    type: united(one.type, other.type),
    renamed: [...one.renamed, ...other.renamed],
  };
}
