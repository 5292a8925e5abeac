// What other threads did in the same environment: going back with a framework must not take it away from them.
import type { FileChanges, Manifest } from "../environment/environment.ts";
import { isRewindError, RewindError } from "../errors.ts";
import type { CheckpointRow, ThreadRow } from "../store/rows.ts";
import type { SessionDeps } from "./deps.ts";
import { collect } from "./external.ts";
import { hasTools, manifestOf } from "./move.ts";
import { describePaths } from "./texts.ts";
import { checkpointId } from "./views.ts";

/** What a thread's tools did, from one state to another; undefined where that is not known. */
interface Stretch {
  readonly row: CheckpointRow;
  readonly from: Manifest | undefined;
  readonly to: Manifest | undefined;
}

/**
 * Runs alone, before the files follow the framework to `target`.
 * @throws SHARED_ENVIRONMENT when that would take back what another thread did since
 */
export function requireOthersKept(deps: SessionDeps, thread: ThreadRow, target: CheckpointRow): Promise<void> {
  return deps.objects.use(async () => {
    const foreign = foreignSince(deps, thread, target);
    if (foreign.length === 0) return;
    const { environment } = deps;
    await environment.settle?.();
    const now = await currentFiles(deps);
    if (now === undefined) return;
    const moved = pathsOf(await environment.diff(now, manifestOf(target)));
    const names = new Set<string>();
    const lost = new Set<string>();
    for (const { row, from, to } of stretches(deps, foreign, now)) {
      const done = from === undefined || to === undefined ? moved : pathsOf(await environment.diff(from, to));
      for (const path of done) {
        if (!moved.has(path)) continue;
        names.add(row.thread_name);
        lost.add(path);
      }
    }
    if (names.size > 0) throw shared(thread, target, [...names], [...lost].sort());
  });
}

/** The timeline behind `target`, oldest first, where it holds work of others; what was adopted is the thread's own. */
function foreignSince(
  { catalog }: SessionDeps,
  thread: ThreadRow,
  target: CheckpointRow,
): { readonly row: CheckpointRow; readonly next: CheckpointRow | undefined }[] {
  const kept = new Set(catalog.lineage(target.id, "timeline").map((row) => row.id));
  const own = new Set(catalog.lineage(thread.head).map((row) => row.id));
  const line = catalog.lineage(catalog.timelineHead(), "timeline").reverse();
  return line
    .map((row, at) => ({ row, next: line[at + 1] }))
    .filter(({ row }) => !kept.has(row.id) && !own.has(row.id) && !belongs(row, thread));
}

/** Threads that run inside of another (`t/researcher` inside of `t`) work for one another. */
const belongs = (row: CheckpointRow, thread: ThreadRow): boolean =>
  row.thread === thread.id ||
  row.thread_name.startsWith(`${thread.name}/`) ||
  (row.kind === "step" && thread.name.startsWith(`${row.thread_name}/`));

function* stretches(
  { catalog }: SessionDeps,
  foreign: ReturnType<typeof foreignSince>,
  now: Manifest,
): Generator<Stretch> {
  const closed = new Set(foreign.map(({ row }) => row.parent));
  for (const { row, next } of foreign) {
    const parent = row.parent === null ? undefined : catalog.checkpoint(row.parent);
    const before = parent ?? (row.timeline === null ? undefined : catalog.checkpoint(row.timeline));
    // What is found at a thread's first decision is not its work.
    if (parent !== undefined || row.kind !== "turn") {
      if (parent === undefined || hasBegun(parent)) {
        yield { row, from: before && startOf(before), to: captured(row) };
      }
    }
    if (!closed.has(row.id) && hasBegun(row)) {
      yield { row, from: startOf(row), to: next === undefined ? now : captured(next) };
    }
  }
}

const hasBegun = (row: CheckpointRow): boolean => hasTools(row) || row.tools === "unknown";

const captured = (row: CheckpointRow): Manifest | undefined =>
  row.state === "not-restorable" ? undefined : manifestOf(row);

const startOf = (row: CheckpointRow): Manifest | undefined =>
  hasTools(row) && row.tools_files !== null
    ? { files: row.tools_files, processes: row.tools_processes }
    : captured(row);

function pathsOf(changes: FileChanges): Set<string> {
  const paths = new Set<string>();
  collect(changes, paths);
  return paths;
}

/** Undefined when the workspace is gone: nothing of anybody's is left in it. */
async function currentFiles({ environment }: SessionDeps): Promise<Manifest | undefined> {
  try {
    return (await environment.capture().captured).manifest;
  } catch (error) {
    if (isRewindError(error, "WORKSPACE_GONE")) return undefined;
    throw error;
  }
}

function shared(thread: ThreadRow, target: CheckpointRow, names: string[], paths: string[]): RewindError {
  const [id, others] = [checkpointId(target), names.map((name) => `"${name}"`).join(", ")];
  return new RewindError(
    "SHARED_ENVIRONMENT",
    `Going back to ${id} would take back what ${others} did since in the same workspace: ${describePaths(paths)}. Nothing was changed.`,
    {
      hint: `Go on from the thread's newest state; or work from ${id} in a workspace of its own: \`rewind.fork("${id}", { thread: "${thread.name}" })\`; or first rewind ${others} to before that.`,
      details: { threads: names, checkpoint: id, paths },
    },
  );
}
