// The paths that a restore is limited to: they and all below them, and the folders that lead to them.
import { RewindError } from "../../errors.ts";
import { display, fromDisplay, parentOf, type RawPath } from "./names.ts";

export interface Selection {
  /** Named, or below a folder that is named. */
  isSelected(path: RawPath): boolean;
  /** A folder that leads to a named path and is not selected itself. */
  holdsSelected(path: RawPath): boolean;
}

/**
 * @param isKnown whether one of the two states has it
 * @throws BAD_ARGUMENT for a path that neither has
 */
export function makeSelection(paths: ReadonlySet<string>, isKnown: (path: RawPath) => boolean): Selection {
  const named = new Set([...paths].map(fromDisplay));
  const unknown = [...named].filter((path) => !isKnown(path)).map(display);
  if (unknown.length > 0) {
    throw new RewindError("BAD_ARGUMENT", `There is no ${unknown.join(", ")}, neither now nor in that checkpoint.`, {
      hint: "Give paths relative to the workspace; `agentrewind diff` lists those that differ.",
      details: { paths: unknown },
    });
  }
  const folders = new Set<RawPath>();
  for (const path of named) for (let at = path; at !== ""; at = parentOf(at)) folders.add(parentOf(at));
  const isSelected = (path: RawPath): boolean => {
    for (let at = path; ; at = parentOf(at)) {
      if (named.has(at)) return true;
      if (at === "") return false;
    }
  };
  return { isSelected, holdsSelected: (path) => folders.has(path) && !isSelected(path) };
}
