// Draws the tree of checkpoints of a thread.
import type { Checkpoint, FileChanges } from "agentrewind";
import { shorten } from "./text.ts";

/** One line a checkpoint; a fork is indented, its abandoned branches come first. */
export function drawTree(
  checkpoints: readonly Checkpoint[],
  targets: ReadonlySet<string>,
): { text: string; checkpoint: Checkpoint }[] {
  const known = new Set(checkpoints.map(({ id }) => id));
  const lines: { text: string; checkpoint: Checkpoint }[] = [];
  const childrenOf = (id: string | null): Checkpoint[] =>
    checkpoints
      .filter(({ parent }) => (parent !== null && known.has(parent) ? parent : null) === id)
      .sort((a, b) => Number(a.active) - Number(b.active));

  function draw(checkpoint: Checkpoint, first: string, rest: string): void {
    lines.push({ text: first + describe(checkpoint, targets), checkpoint });
    const children = childrenOf(checkpoint.id);
    for (const [index, child] of children.entries()) {
      if (children.length === 1) draw(child, rest, rest);
      else if (index < children.length - 1) draw(child, `${rest}├─ `, `${rest}│  `);
      else draw(child, `${rest}└─ `, `${rest}   `);
    }
  }

  for (const root of childrenOf(null)) draw(root, "", "");
  return lines;
}

function describe(checkpoint: Checkpoint, targets: ReadonlySet<string>): string {
  const { id, parent, turn, kind, activity, changes, label, active } = checkpoint;
  const did = activity.actions.map(({ tool, input }) => `${tool} ${input}`).join(", ");
  const quiet = parent === null ? "start" : targets.has(parent) ? "with the lesson" : "went on";
  const what = kind === "safety" ? "what the rewind left" : did === "" ? quiet : `after ${shorten(did, 60)}`;
  const notes = [label ?? "", changes === null ? "" : changedPaths(changes), active ? "" : "abandoned"];
  return [`${id.padEnd(4)} turn ${turn}  ${what}`, ...notes.filter((note) => note !== "")].join("; ");
}

function changedPaths({ added, removed, changed, type, renamed }: FileChanges): string {
  const paths = [...added, ...removed, ...changed, ...type, ...renamed.map(({ to }) => to)];
  return paths.length === 0 ? "" : `changed ${shorten(paths.join(", "), 40)}`;
}
