// Carries out a rewind, an undo or an alignment in the order of F-22, and finishes at the next open what a kill interrupted (F-24).
import { performance } from "node:perf_hooks";
import { setImmediate as nextTurn } from "node:timers/promises";
import { observed } from "../coordinator/pair.ts";
import type { Captured } from "../environment/environment.ts";
import { isRewindError, RewindError } from "../errors.ts";
import { withEvent } from "../events.ts";
import { fault } from "../faults.ts";
import { reportProgress } from "../progress.ts";
import type { CheckpointRow, RewindRow } from "../store/rows.ts";
import { noteContacts } from "./contacts.ts";
import { toCompensate } from "./crossed.ts";
import type { SessionDeps } from "./deps.ts";
import { attribute } from "./external.ts";
import { finish } from "./finish.ts";
import { giveFiles } from "./gone.ts";
import { type Move, type MoveResult, manifestOf, noActivity, type Payload } from "./move.ts";
import { selectPaths } from "./paths.ts";
import { leaveFiles } from "./places.ts";
import { changesSince } from "./turn-capture.ts";
import { checkpointId } from "./views.ts";

/** Runs alone (the caller holds the coordinator). */
export function performMove(deps: SessionDeps, move: Move): Promise<RewindRow> {
  const { thread, target, kind, by, scope } = move;
  const head = thread.head === null ? undefined : deps.catalog.checkpoint(thread.head);
  const from = head === undefined ? null : checkpointId(head);
  return withEvent(
    "rewind",
    { thread: thread.name, kind, by, scope, from, to: checkpointId(target) },
    () => deps.jobs.run("restore", () => deps.objects.use(() => carryOut(deps, move))).result,
    ({ epoch, result }) => {
      const { timings, notRestored } = JSON.parse(result) as MoveResult;
      return { epoch, exposedMs: timings.exposedMs, notRestored: notRestored.length };
    },
  );
}

async function carryOut(deps: SessionDeps, move: Move): Promise<RewindRow> {
  const start = performance.now();
  const { catalog, environment } = deps;
  const issued = catalog.epoch();
  const head = move.thread.head === null ? undefined : catalog.checkpoint(move.thread.head);
  if (move.scope !== "context") await environment.settle?.();
  noteContacts(deps, move.thread);
  reportProgress(move.kind, "reading the workspace");
  const captured = await captureLeft(deps);
  if (move.target.thread !== move.thread.id) catalog.raiseSeq(move.thread.id, move.target.seq + 1);
  await nextTurn();
  const left = await keepLeft(deps, move, head, captured, issued);
  // On disk before anything is overwritten: after a power loss the left state must not be gone from both places.
  await deps.objects.sync();
  catalog.markDurable(left.id);
  leaveFiles(deps, move.thread.id, captured === null ? null : left, move.by === "agent" && move.delivered);
  fault("rewind.safety");

  const attribution =
    move.scope === "context" || captured === null
      ? { external: [], conflicts: [] }
      : selectPaths(
          await attribute(
            environment,
            attributedLine(deps, move.target, move.thread.head),
            captured.manifest,
            move.undoes === null ? null : (catalog.rewind(move.undoes)?.target ?? null),
          ),
          move.paths,
        );
  if (move.verify !== null && left.state === "not-restorable") throw uncheckable(left);
  const compensates = move.scope === "both" && (move.kind === "rewind" || move.kind === "undo");
  const payload: Payload = {
    target: move.target.id,
    left: left.id,
    seq: move.paths === null ? null : catalog.takeSeq(move.thread.id),
    headBefore: head?.id ?? null,
    kind: move.kind,
    by: move.by,
    scope: move.scope,
    paths: move.paths,
    adopts: move.adopts,
    key: move.key,
    lesson: move.lesson,
    verify: move.verify,
    compensate: compensates ? toCompensate(deps, move.thread, move.target) : [],
    undoes: move.undoes,
    delivered: move.delivered,
    deliveredTexts: move.deliveredTexts,
    carried: move.carried,
    keep: move.external === "keep" ? attribution.external : [],
    external: attribution.external,
    conflicts: attribution.conflicts,
  };
  const intent = catalog.openIntent(move.thread.id, move.kind, payload);
  try {
    await deps.syncLog();
    fault("rewind.intent");
    const measured = { start, bytes: captured?.bytes ?? 0 };
    const done = await finish(deps, intent, move.thread, payload, issued, measured, captured?.manifest);
    if (move.scope === "environment" && move.thread.gone !== null)
      giveFiles(deps, move.thread.id, catalog.checkpoint(catalog.timelineHead() as number) as CheckpointRow);
    return done;
  } catch (error) {
    await putBack(deps, intent, payload, left, error);
    if (isRewindError(error)) throw error;
    throw new RewindError(
      "RESTORE_FAILED",
      `The rewind failed: ${(error as Error).message}. Everything is as it was before.`,
      {
        hint: "Mend what is named, then rewind again; or go on from here.",
        cause: error,
      },
    );
  }
}

/** Where a check fails the state that was left comes back: it must be there. */
function uncheckable(left: CheckpointRow): RewindError {
  return new RewindError(
    "NOT_RESTORABLE",
    `The state that would be left cannot be put back if the check fails: ${left.reason}.`,
    {
      hint: "Rewind without a check.",
      modelHint: "Go on from here, and mend what is wrong with ordinary steps.",
    },
  );
}

/** The state that is left; null when the workspace is gone, which nothing can capture and a rewind mends. */
async function captureLeft(deps: SessionDeps): Promise<Captured | null> {
  try {
    return await observed(deps.environment, deps.environment.capture());
  } catch (error) {
    if (isRewindError(error, "WORKSPACE_GONE")) return null;
    throw error;
  }
}

/** The checkpoint to which an undo returns: the head when nothing differs from it, else a new safety checkpoint (invariant 3). */
async function keepLeft(
  deps: SessionDeps,
  move: Move,
  head: CheckpointRow | undefined,
  captured: Captured | null,
  issued: number,
): Promise<CheckpointRow> {
  const { catalog } = deps;
  const reached = move.by === "caller" ? deps.reached.get(move.thread.id) : undefined;
  const current = await (move.storeCurrent ?? (reached?.head === head?.id ? reached?.store : undefined))?.();
  const sameContext = current === undefined || current.name === head?.context;
  const sameState =
    captured === null || (head?.files === captured.manifest.files && head.processes === captured.manifest.processes);
  if (head !== undefined && sameContext && sameState) return head;
  const changes = await changesSince(deps, head, captured?.manifest);
  return catalog.addCheckpoint(
    {
      thread: move.thread.id,
      seq: catalog.takeSeq(move.thread.id),
      parent: head?.id ?? null,
      turn: head?.turn ?? 0,
      kind: "safety",
      state: captured === null ? "not-restorable" : "captured",
      reason: captured === null ? "the workspace was gone" : null,
      label: null,
      anchor: null,
      context: current?.name ?? (head as CheckpointRow).context,
      messages: current?.messages ?? (head as CheckpointRow).messages,
      serializer: current?.serializer ?? (head as CheckpointRow).serializer,
      manifest: captured?.manifest ?? null,
      changes,
      activity: noActivity,
      problems: captured?.problems ?? [],
      timings: { exposedMs: captured?.captureMs ?? 0, overlappedMs: 0, bytes: captured?.bytes ?? 0 },
      lessons: JSON.parse(move.thread.lessons) as number[],
      // The head's own context does not tell of what was done since.
      effectsUpTo: current === undefined ? null : catalog.effectMark(move.thread.id),
    },
    issued,
    false,
  );
}

/** From the target to the head, oldest first, where the target lies on the head's line; else what is behind the last common one. */
export function attributedLine(deps: SessionDeps, target: CheckpointRow, head: number | null): CheckpointRow[] {
  const line = deps.catalog.lineage(head).reverse();
  const ancestors = new Set(deps.catalog.lineage(target.id).map((row) => row.id));
  const from = line.findLastIndex((row) => ancestors.has(row.id));
  return from < 0 ? [] : line.slice(from);
}

/** A restore that failed is taken back; where it changed nothing that is a restore to the same state. */
async function putBack(
  deps: SessionDeps,
  intent: number,
  payload: Payload,
  left: CheckpointRow,
  cause: unknown,
): Promise<void> {
  try {
    if (payload.scope !== "context" && left.state !== "not-restorable")
      await deps.environment.restore(manifestOf(left));
    if (isRewindError(cause, "VERIFY_FAILED")) fault("verify.failed");
    deps.catalog.closeIntent(intent, "undone");
  } catch {
    throw new RewindError(
      "RESTORE_FAILED",
      `The rewind failed and the state before it could not be put back: ${(cause as Error).message}`,
      {
        hint: "Free space or mend the permissions, then open the workspace again: the rewind is finished then.",
        cause,
      },
    );
  }
}
