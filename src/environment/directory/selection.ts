// Paths that a restore is limited to must be paths of one of the two states.
import { RewindError } from "../../errors.ts";
import { display, type RawPath } from "./names.ts";

/**
 * @param isKnown whether one of the two states has it
 * @throws BAD_ARGUMENT for a path that neither has
 */
export function requireKnown(paths: readonly RawPath[], isKnown: (path: RawPath) => boolean): void {
  const unknown = paths.filter((path) => !isKnown(path)).map(display);
  if (unknown.length === 0) return;
  throw new RewindError("BAD_ARGUMENT", `There is no ${unknown.join(", ")}, neither now nor in that checkpoint.`, {
    hint: "Give paths relative to the workspace; `agentrewind diff` lists those that differ.",
    details: { paths: unknown },
  });
}
