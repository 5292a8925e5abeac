// Finishes at the next open what a kill interrupted (F-24).
import { performance } from "node:perf_hooks";
import type { Captured } from "../environment/environment.ts";
import { isRewindError } from "../errors.ts";
import { fault } from "../faults.ts";
import type { CheckpointRow, ThreadRow } from "../store/rows.ts";
import type { SessionDeps } from "./deps.ts";
import { finish } from "./finish.ts";
import { manifestOf, noActivity, type Payload } from "./move.ts";
import { checkpointId } from "./views.ts";

/** The caller holds the lock. @throws DISK_FULL, with everything as it was found */
export function recover(deps: SessionDeps): Promise<void> {
  return deps.objects.use(() => finishAll(deps));
}

async function finishAll(deps: SessionDeps): Promise<void> {
  const { catalog, environment } = deps;
  for (const intent of catalog.openIntents()) {
    const payload = JSON.parse(intent.payload) as Payload;
    const left = catalog.checkpoint(payload.left) as CheckpointRow;
    const target = catalog.checkpoint(payload.target) as CheckpointRow;
    const thread = catalog.threads().find((row) => row.id === intent.thread) as ThreadRow;
    const found = payload.scope === "context" ? undefined : await keepFound(deps, thread, left, target);
    try {
      // Its check may have been under way: nobody waits for it here, and what was left is what was true before.
      if (payload.verify) throw new Error("the check of this rewind was interrupted");
      const measured = { start: performance.now(), bytes: 0 };
      await finish(deps, intent.id, thread, payload, catalog.epoch(), measured, found?.manifest);
    } catch {
      try {
        await environment.restore(manifestOf(left));
      } catch {
        if (found !== undefined) addFound(deps, thread, left, target, found, true);
      }
      catalog.closeIntent(intent.id, "undone");
    }
    fault("recovery.restored");
  }
}

/**
 * What a killed restore left is a mix of two states, but somebody may have worked on it since: it is kept as a safety checkpoint before it is overwritten.
 * Undefined when the workspace is gone.
 */
async function keepFound(
  deps: SessionDeps,
  thread: ThreadRow,
  left: CheckpointRow,
  target: CheckpointRow,
): Promise<Captured | undefined> {
  const { catalog, environment } = deps;
  let found: Captured;
  try {
    found = await environment.capture().captured;
  } catch (error) {
    if (isRewindError(error, "WORKSPACE_GONE")) return undefined;
    throw error;
  }
  const { files, processes } = found.manifest;
  const known = [left, target, ...catalog.checkpoints(thread.id).filter((row) => row.kind === "safety")];
  if (!known.some((row) => row.files === files && row.processes === processes)) {
    addFound(deps, thread, left, target, found, false);
  }
  return found;
}

function addFound(
  deps: SessionDeps,
  thread: ThreadRow,
  left: CheckpointRow,
  target: CheckpointRow,
  found: Captured,
  moveHeads: boolean,
): void {
  addLeft(deps, thread, left, found, `found after an interrupted rewind to ${checkpointId(target)}`, moveHeads);
}

/** What was changed behind the newest pair by the tools of a process that was killed: it goes, so it is kept as a safety checkpoint. */
export function keepUnrecorded(deps: SessionDeps, newest: CheckpointRow, found: Captured): CheckpointRow {
  const thread = deps.catalog.threads().find((row) => row.id === newest.thread) as ThreadRow;
  return addLeft(
    deps,
    thread,
    newest,
    found,
    `found after the end of a process that went on from ${checkpointId(newest)}`,
    false,
  );
}

function addLeft(
  deps: SessionDeps,
  thread: ThreadRow,
  left: CheckpointRow,
  found: Captured,
  label: string,
  moveHeads: boolean,
): CheckpointRow {
  return deps.catalog.addCheckpoint(
    {
      thread: thread.id,
      seq: deps.catalog.takeSeq(thread.id),
      parent: left.id,
      turn: left.turn,
      kind: "safety",
      state: "captured",
      reason: null,
      label,
      anchor: null,
      context: left.context,
      messages: left.messages,
      serializer: left.serializer,
      manifest: found.manifest,
      changes: null,
      activity: noActivity,
      problems: found.problems,
      timings: { exposedMs: found.captureMs, overlappedMs: 0, bytes: found.bytes },
      lessons: JSON.parse(thread.lessons) as number[],
    },
    deps.catalog.epoch(),
    moveHeads,
  );
}
