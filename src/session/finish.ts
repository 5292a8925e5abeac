// The second half of a move, which may be run again after a kill: the restore, the message, the commit (F-22, F-24).
import { performance } from "node:perf_hooks";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Captured, FileChanges, Manifest, Problem } from "../environment/environment.ts";
import { fault } from "../faults.ts";
import { reportProgress } from "../progress.ts";
import type { CheckpointRow, NewCheckpoint, NewLesson, RewindRow, ThreadRow } from "../store/rows.ts";
import { compensate, type EffectsTold, effectsToTell } from "./crossed.ts";
import type { SessionDeps } from "./deps.ts";
import { isSameLesson, lessonsToTell } from "./lessons.ts";
import { lineBetween, type MoveResult, manifestOf, noActivity, nothing, type Payload } from "./move.ts";
import { requireVerified } from "./restored-check.ts";
import { summarizeLessons } from "./summary.ts";
import { describeActivity, programsOf, rewindMessage } from "./texts.ts";
import { branchId } from "./views.ts";

/** What was done first behind the target: on the line that is left, or, where the target lies elsewhere, on the newest one from there. */
function doneBehind(deps: SessionDeps, thread: ThreadRow, target: CheckpointRow, left: CheckpointRow): string {
  const { catalog } = deps;
  const done = (row: CheckpointRow): string => describeActivity(JSON.parse(row.activity), { results: false });
  const behind = catalog.isAncestor(target.id, left.id) ? lineBetween(deps, target.id, left.id) : [];
  if (behind.length === 0 && target.id !== left.id) {
    const family = catalog.familyCheckpoints(thread.id);
    const next = (row: CheckpointRow): CheckpointRow | undefined => family.findLast(({ parent }) => parent === row.id);
    for (let row = next(target); row !== undefined; row = next(row)) behind.push(row);
  }
  return behind.map(done).find((text) => text !== "") ?? "";
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
  const { verify = null, compensate: owed = [] } = payload;
  // What makes up for effects must not have run where a check may still take the rewind back.
  if (verify === null) await compensate(deps, owed);
  reportProgress(payload.kind, "restoring the files");
  const { restored, notRestored, stopped, made } = await restoreTo(deps, thread, payload, left, target, since);
  fault("rewind.restored");
  await nextTurn();
  if (verify !== null) {
    await requireVerified(deps, verify, target, left);
    await compensate(deps, owed);
  }

  const inContext = new Set(JSON.parse(target.lessons) as number[]);
  const older = payload.scope === "environment" ? [] : lessonsToTell(catalog.lessons(thread.id), inContext);
  const lesson: NewLesson | null = typeof payload.lesson === "string" ? { text: payload.lesson } : payload.lesson;
  const told = lesson === null ? older : older.filter((row) => !isSameLesson(row.text, lesson.text));
  const summary = await summarizeLessons(deps, lesson, told);
  const outside =
    payload.scope === "environment" ? noEffects : effectsToTell(deps, thread, target, payload.compensate ?? []);
  const message = rewindMessage({
    target: `c${target.seq}`,
    before: doneBehind(deps, thread, target, left),
    scope: payload.scope,
    paths: payload.paths,
    branch: payload.adopts === null ? null : branchId(payload.adopts),
    restored,
    notRestored,
    stopped,
    kept: payload.keep,
    conflicts: payload.conflicts,
    effects: outside.effects,
    contacted: outside.contacted,
    compensated: [...outside.compensated, ...outside.revoked],
    delivered: payload.deliveredTexts,
    carried: payload.carried,
    programs: programsOf(environment.capabilities, target, keepsPrograms(payload), notRestored),
    lessons: [...(lesson === null ? [] : [lesson]), ...(summary === null ? told : [summary])],
  });
  await nextTurn();
  const result: MoveResult = {
    message,
    effects: outside.effects,
    contacted: outside.contacted,
    compensated: outside.compensated,
    uncompensated: outside.uncompensated,
    restored,
    notRestored,
    stopped,
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
      newLessons: [...(summary === null ? [] : [summary]), ...(lesson === null ? [] : [lesson])],
      lessons:
        made !== null
          ? made.lessons
          : payload.kind === "align"
            ? [...inContext]
            : [...inContext, ...(summary === null ? told.map((one) => one.id) : [])],
      moveThread: payload.scope !== "environment" || made !== null,
      moveTimeline: payload.scope !== "context",
      adopts: payload.adopts,
      result,
    },
    issued,
  );
  deps.staleness.raise();
  fault("rewind.committed");
  // Its intent is on disk: after a power loss that takes this commit along the next open does it again, and keeps what was done since. So nobody waits for the disk.
  deps.track(deps.syncLog().catch(() => {}));
  return row;
}

/** What runs in a branch runs in its folder: adopting it takes its files, not its programs. */
const keepsPrograms = ({ paths, adopts }: Payload): boolean => paths !== null || adopts !== null;

const noEffects: EffectsTold = { effects: [], contacted: [], revoked: [], compensated: [], uncompensated: [] };

interface RestoredTo {
  readonly restored: FileChanges;
  readonly notRestored: readonly Problem[];
  readonly stopped: readonly string[];
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
  if (scope === "context") return { restored: nothing, notRestored: [], stopped: [], made: null };
  const options = {
    keep: new Set(keep),
    ...(paths === null ? {} : { paths: new Set(paths) }),
    ...(since === undefined ? {} : { since }),
    ...(keepsPrograms(payload) ? { programs: "keep" as const } : {}),
  };
  const { restored, notRestored, stopped = [] } = await environment.restore(manifestOf(target), options);
  const known = left.state !== "not-restorable";
  if (paths !== null) {
    const after = await environment.capture().captured;
    // Durable before it is published: a head that is lost with the machine would take its conversation along.
    await deps.objects.sync();
    const changes = known ? await environment.diff(manifestOf(left), after.manifest) : null;
    return { restored: changes ?? restored, notRestored, stopped, made: mixed(thread, payload, left, after, changes) };
  }
  const fromLeft = since !== undefined && since.files === left.files && since.processes === left.processes;
  if (fromLeft || !known) return { restored, notRestored, stopped, made: null };
  const all = await environment.diff(manifestOf(left), manifestOf(target));
  const apart = new Set([...keep, ...notRestored.map((one) => one.path)]);
  return { restored: without(all, apart), notRestored, stopped, made: null };
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
