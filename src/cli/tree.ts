// The tree of checkpoints in the order in which it is printed: a branch that was left stands indented below the checkpoint where it began.
import type { Checkpoint } from "../session/types.ts";

export interface Row {
  readonly checkpoint: Checkpoint;
  readonly depth: number;
}

/** @param all in the order of making */
export function treeRows(all: readonly Checkpoint[]): Row[] {
  const known = new Set(all.map((one) => one.id));
  const children = new Map<string | null, Checkpoint[]>();
  for (const one of all) {
    const parent = one.parent !== null && known.has(one.parent) ? one.parent : null;
    const found = children.get(parent);
    if (found === undefined) children.set(parent, [one]);
    else found.push(one);
  }
  const rows: Row[] = [];
  const stack = pushed(children.get(null) ?? [], 0);
  for (let row = stack.pop(); row !== undefined; row = stack.pop()) {
    rows.push(row);
    stack.push(...pushed(children.get(row.checkpoint.id) ?? [], row.depth));
  }
  return rows;
}

/** To be popped: first the side branches, oldest first and one deeper, then the one that goes on at this depth. */
function pushed(siblings: readonly Checkpoint[], depth: number): Row[] {
  const goesOn = siblings.find((one) => one.active) ?? siblings.at(-1);
  if (goesOn === undefined) return [];
  const aside = siblings.filter((one) => one !== goesOn).map((one) => ({ checkpoint: one, depth: depth + 1 }));
  return [{ checkpoint: goesOn, depth }, ...aside.reverse()];
}
