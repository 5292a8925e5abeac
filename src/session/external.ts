// Whose changes are these? Along a lineage, tells the agent's changes of files from somebody else's (design: external changes).
import type { Environment, FileChanges, Manifest } from "../environment/environment.ts";
import type { CheckpointRow } from "../store/rows.ts";
import { changedPaths } from "./texts.ts";

export interface Attribution {
  /** Paths that only somebody else changed. */
  readonly external: readonly string[];
  /** Paths that the agent and somebody else changed. */
  readonly conflicts: readonly string[];
}

const manifestOf = (row: CheckpointRow): Manifest => ({ files: row.files, processes: row.processes });

/**
 * A stretch between two captures in which no tool ran is somebody else's; a stretch with tools, or of which nobody said whether tools ran, is the agent's.
 * @param line the checkpoints from the target to the head, oldest first
 * @param now the state that is left
 * @param undone the checkpoint that a restore of paths made, which is being undone: what it took back is nobody's change
 */
export async function attribute(
  environment: Environment,
  line: readonly CheckpointRow[],
  now: Manifest,
  undone: number | null = null,
): Promise<Attribution> {
  const agent = new Set<string>();
  const other = new Set<string>();
  const captured = line.filter((row) => row.state !== "not-restorable");
  const gap = captured.length !== line.length;
  for (const [index, row] of captured.entries()) {
    const next = captured[index + 1];
    const end = next === undefined ? now : manifestOf(next);
    if (next !== undefined && next.id === undone) continue;
    if (next?.kind === "partial") {
      // A person took these paths back.
      collect(await environment.diff(manifestOf(row), end), other);
    } else if (gap || row.tools === "unknown") {
      collect(await environment.diff(manifestOf(row), end), agent);
    } else if (row.tools === "none" || row.tools === "waiting") {
      collect(await environment.diff(manifestOf(row), end), other);
    } else {
      const started: Manifest =
        row.tools_files === null ? manifestOf(row) : { files: row.tools_files, processes: row.tools_processes };
      collect(await environment.diff(manifestOf(row), started), other);
      collect(await environment.diff(started, end), agent);
    }
  }
  return {
    external: [...other].filter((path) => !agent.has(path)).sort(),
    conflicts: [...other].filter((path) => agent.has(path)).sort(),
  };
}

/** A folder whose times moved only because something in it changed is nobody's change of its own. */
export function collect(changes: FileChanges, into: Set<string>): void {
  const rest = { ...changes, mode: [] };
  const parents = new Set(changedPaths(rest).map((path) => path.slice(0, Math.max(0, path.lastIndexOf("/")))));
  for (const path of changedPaths(rest)) into.add(path);
  for (const path of changes.mode) if (!parents.has(path)) into.add(path);
}
