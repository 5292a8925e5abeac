// Turns of which the conversation alone is kept, because the policy asked for no more.
import type { CheckpointRow } from "../store/rows.ts";
import type { SessionDeps } from "./deps.ts";

/** F-18: a reason that begins so says that nobody tried. */
const start = "not captured";

/** Why a turn has no environment half. */
export class NotCaptured extends Error {
  constructor(policy: string) {
    super(`${start}, as capture is set (${policy})`);
  }
}

/** Nobody tried to capture it. */
export const isNotCaptured = ({ state, reason }: Pick<CheckpointRow, "state" | "reason">): boolean =>
  state === "not-restorable" && reason?.startsWith(start) === true;

/** The newest at or before `row`, on its line, that can be restored. */
export function newestRestorable(
  { catalog }: Pick<SessionDeps, "catalog">,
  row: CheckpointRow | undefined,
): CheckpointRow | undefined {
  let at = row;
  while (at?.state === "not-restorable") at = at.parent === null ? undefined : catalog.checkpoint(at.parent);
  return at;
}
