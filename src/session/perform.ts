// Carries out a rewind, an undo or an alignment in the order of F-22, and finishes at the next open what a kill interrupted (F-24).
import { performance } from "node:perf_hooks";
import type { Captured, FileChanges, Manifest, Problem } from "../environment/environment.ts";
import { isRewindError, RewindError } from "../errors.ts";
import { fault } from "../faults.ts";
import { reportProgress } from "../progress.ts";
import type { CheckpointRow, NewCheckpoint, RewindRow, ThreadRow } from "../store/rows.ts";
import type { SessionDeps } from "./deps.ts";
import { attribute } from "./external.ts";
import { lessonsToTell } from "./lessons.ts";
import { selectPaths } from "./paths.ts";
import { describeActivity, rewindMessage } from "./texts.ts";
import type { Activity, Scope } from "./types.ts";
import { branchId } from "./views.ts";

export interface Move {
  readonly thread: ThreadRow;
  readonly target: CheckpointRow;
  readonly kind: "rewind" | "undo" | "align" | "adopt";
  readonly by: "agent" | "caller" | "framework";
  readonly scope: Scope;
  /** Only these go back, and the head becomes a checkpoint of its own; null: all. */
  readonly paths: readonly string[] | null;
  /** Number of the branch that ends with it. */
  readonly adopts: number | null;
  readonly external: "keep" | "restore";
  readonly key: string | null;
  readonly lesson: string | null;
  readonly undoes: number | null;
  readonly delivered: boolean;
  readonly deliveredTexts: readonly string[];
  readonly carried: number;
  /** Stores the context that is left, or null when it is the head's. Returns its name and length. */
  readonly storeCurrent: (() => Promise<{ name: string; messages: number; serializer: string }>) | null;
}

/** What is stored of a rewind, so that it can be told again. */
export interface MoveResult {
  readonly message: string;
  readonly restored: FileChanges;
  readonly notRestored: readonly Problem[];
  readonly external: readonly string[];
  readonly conflicts: readonly string[];
  readonly lessons: readonly number[];
  readonly timings: { readonly exposedMs: number; readonly overlappedMs: number; readonly bytes: number };
}

/** What the intent holds: enough to finish after a kill. */
export interface Payload
  extends Pick<
    Move,
    | "kind"
    | "by"
    | "scope"
    | "paths"
    | "adopts"
    | "key"
    | "lesson"
    | "undoes"
    | "delivered"
    | "deliveredTexts"
    | "carried"
  > {
  readonly target: number;
  readonly left: number;
  /** Number of the checkpoint that a restore of paths makes. */
  readonly seq: number | null;
  readonly headBefore: number | null;
  readonly keep: readonly string[];
  readonly external: readonly string[];
  readonly conflicts: readonly string[];
}

export const nothing: FileChanges = { added: [], removed: [], changed: [], mode: [], type: [], renamed: [] };
export const noActivity: Activity = { said: "", actions: [] };

export const manifestOf = (row: CheckpointRow): Manifest => ({ files: row.files, processes: row.processes });

/** The checkpoints after `target` that lead to `head`; all of the head's line behind their last common one when the target lies elsewhere. */
export function lineBetween(deps: SessionDeps, target: number, head: number | null): CheckpointRow[] {
  const line = deps.catalog.lineage(head).reverse();
  const targets = new Set(deps.catalog.lineage(target).map((row) => row.id));
  return line.filter((row) => !targets.has(row.id));
}

/** Runs alone (the caller holds the coordinator). */
export function performMove(deps: SessionDeps, move: Move): Promise<RewindRow> {
  return deps.objects.use(() => carryOut(deps, move));
}

async function carryOut(deps: SessionDeps, move: Move): Promise<RewindRow> {
  const start = performance.now();
  const { catalog, environment } = deps;
  const issued = catalog.epoch();
  const head = move.thread.head === null ? undefined : catalog.checkpoint(move.thread.head);
  if (move.scope !== "context") await environment.settle?.();
  reportProgress(move.kind, "reading the workspace");
  const captured = await captureLeft(deps);
  if (move.target.thread !== move.thread.id) catalog.raiseSeq(move.thread.id, move.target.seq + 1);
  const left = await keepLeft(deps, move, head, captured, issued);
  // On disk before anything is overwritten: after a power loss the left state must not be gone from both places.
  await deps.objects.sync();
  catalog.markDurable(left.id);
  fault("rewind.safety");

  const attribution =
    move.scope === "context" || captured === null
      ? { external: [], conflicts: [] }
      : selectPaths(
          await attribute(environment, attributedLine(deps, move.target, move.thread.head), captured.manifest),
          move.paths,
        );
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
    return await finish(deps, intent, move.thread, payload, issued, measured, captured?.manifest);
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

/** The state that is left; null when the workspace is gone, which nothing can capture and a rewind mends. */
async function captureLeft(deps: SessionDeps): Promise<Captured | null> {
  try {
    return await deps.environment.capture().captured;
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
  const { catalog, environment } = deps;
  const current = await move.storeCurrent?.();
  const sameContext = current === undefined || current.name === head?.context;
  const sameState =
    captured === null || (head?.files === captured.manifest.files && head.processes === captured.manifest.processes);
  if (head !== undefined && sameContext && sameState) return head;
  const changes =
    captured === null || head === undefined || head.state === "not-restorable"
      ? null
      : await environment.diff(manifestOf(head), captured.manifest);
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

/** From the intent to its commit; may be run again after a kill. `since`: the state that was captured right before. */
export async function finish(
  deps: SessionDeps,
  intent: number,
  thread: ThreadRow,
  payload: Payload,
  issued: number,
  measured: { start: number; bytes: number },
  since: Manifest | undefined,
): Promise<RewindRow> {
  const { catalog, environment } = deps;
  const target = catalog.checkpoint(payload.target) as CheckpointRow;
  const left = catalog.checkpoint(payload.left) as CheckpointRow;
  reportProgress(payload.kind, "restoring the files");
  const { restored, notRestored, made } = await restoreTo(deps, thread, payload, left, target, since);
  fault("rewind.restored");

  const inContext = new Set(JSON.parse(target.lessons) as number[]);
  const older = payload.scope === "environment" ? [] : lessonsToTell(catalog.lessons(thread.id), inContext);
  const told = payload.lesson === null ? older : older.filter((row) => row.text !== payload.lesson);
  const before = lineBetween(deps, target.id, left.id).find((row) => describeActivity(JSON.parse(row.activity)) !== "");
  const message = rewindMessage({
    target: `c${target.seq}`,
    before: before === undefined ? "" : describeActivity(JSON.parse(before.activity), { results: false }),
    scope: payload.scope,
    paths: payload.paths,
    branch: payload.adopts === null ? null : branchId(payload.adopts),
    restored,
    notRestored,
    kept: payload.keep,
    conflicts: payload.conflicts,
    effects: [],
    delivered: payload.deliveredTexts,
    carried: payload.carried,
    processes: environment.capabilities.processes,
    lessons: [...(payload.lesson === null ? [] : [{ text: payload.lesson }]), ...told],
  });
  const result: MoveResult = {
    message,
    restored,
    notRestored,
    external: payload.external,
    conflicts: payload.conflicts,
    lessons: told.map((row) => row.id),
    timings: { exposedMs: performance.now() - measured.start, overlappedMs: 0, bytes: measured.bytes },
  };
  const row = catalog.commitRewind(
    {
      intent,
      thread: thread.id,
      key: payload.key,
      kind: payload.kind,
      requestedBy: payload.by,
      scope: payload.scope,
      headBefore: payload.headBefore,
      leftAt: payload.left,
      target: made ?? payload.target,
      delivered: payload.delivered,
      undoes: payload.undoes,
      lesson: payload.lesson,
      lessons:
        made !== null
          ? made.lessons
          : payload.kind === "align"
            ? [...inContext]
            : [...inContext, ...told.map((one) => one.id)],
      moveThread: payload.scope !== "environment" || made !== null,
      moveTimeline: payload.scope !== "context",
      adopts: payload.adopts,
      result,
    },
    issued,
  );
  fault("rewind.committed");
  // It happened, whatever the disk says now. Its intent is on disk: after a power loss that takes this commit along the next open does it again.
  await deps.syncLog().catch(() => {});
  return row;
}

interface RestoredTo {
  readonly restored: FileChanges;
  readonly notRestored: readonly Problem[];
  /** What a restore of paths makes the head. */
  readonly made: NewCheckpoint | null;
}

async function restoreTo(
  deps: SessionDeps,
  thread: ThreadRow,
  payload: Payload,
  left: CheckpointRow,
  target: CheckpointRow,
  since: Manifest | undefined,
): Promise<RestoredTo> {
  const { environment } = deps;
  const { scope, paths, keep } = payload;
  if (scope === "context") return { restored: nothing, notRestored: [], made: null };
  const options = {
    keep: new Set(keep),
    ...(paths === null ? {} : { paths: new Set(paths) }),
    ...(since === undefined ? {} : { since }),
  };
  const { restored, notRestored } = await environment.restore(manifestOf(target), options);
  const known = left.state !== "not-restorable";
  if (paths !== null) {
    const after = await environment.capture().captured;
    // Durable before it is published: a head that is lost with the machine would take its conversation along.
    await deps.objects.sync();
    const changes = known ? await environment.diff(manifestOf(left), after.manifest) : null;
    return { restored: changes ?? restored, notRestored, made: mixed(thread, payload, left, after, changes) };
  }
  const fromLeft = since !== undefined && since.files === left.files && since.processes === left.processes;
  if (fromLeft || !known) return { restored, notRestored, made: null };
  const all = await environment.diff(manifestOf(left), manifestOf(target));
  return { restored: without(all, new Set([...keep, ...notRestored.map((one) => one.path)])), notRestored, made: null };
}

/** The conversation that was left, with files of two moments. */
const mixed = (
  thread: ThreadRow,
  payload: Payload,
  left: CheckpointRow,
  after: Captured,
  changes: FileChanges | null,
): NewCheckpoint => ({
  thread: thread.id,
  seq: payload.seq as number,
  parent: left.id,
  turn: left.turn,
  kind: "partial",
  state: "captured",
  reason: null,
  label: null,
  anchor: null,
  context: left.context,
  messages: left.messages,
  serializer: left.serializer,
  manifest: after.manifest,
  changes,
  activity: noActivity,
  problems: after.problems,
  timings: { exposedMs: after.captureMs, overlappedMs: 0, bytes: after.bytes },
  lessons: JSON.parse(thread.lessons) as number[],
  partial: { from: payload.target, paths: payload.paths as readonly string[] },
});

function without(changes: FileChanges, keep: ReadonlySet<string>): FileChanges {
  const rest = (paths: readonly string[]): string[] => paths.filter((path) => !keep.has(path));
  return {
    added: rest(changes.added),
    removed: rest(changes.removed),
    changed: rest(changes.changed),
    mode: rest(changes.mode),
    type: rest(changes.type),
    renamed: changes.renamed.filter((one) => !keep.has(one.from) && !keep.has(one.to)),
  };
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
