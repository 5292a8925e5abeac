// The rewinds of a thread, as they are asked for: checked, carried out or only planned, and told.
import { performance } from "node:perf_hooks";
import type { Restored } from "../environment/environment.ts";
import { RewindError } from "../errors.ts";
import type { BranchRow } from "../store/branches.ts";
import type { CheckpointRow, NewLesson, RewindRow, ThreadRow } from "../store/rows.ts";
import {
  requireBudget,
  requireChannels,
  requireCheckpoint,
  requireDecision,
  requireOwnTimeline,
  requireRestorable,
} from "./admissible.ts";
import { noteContacts } from "./contacts.ts";
import { effectsToPlan, effectsToTell, requireCrossable } from "./crossed.ts";
import type { SessionDeps } from "./deps.ts";
import { attribute } from "./external.ts";
import { cleanLesson, distinctLessons, toLesson } from "./lessons.ts";
import { type Move, type MoveResult, manifestOf, nothing } from "./move.ts";
import { requireOthersKept } from "./others.ts";
import { cleanPaths, selectPaths } from "./paths.ts";
import { attributedLine, performMove } from "./perform.ts";
import type { Recorder } from "./recorder.ts";
import { cleanCheck } from "./restored-check.ts";
import { loadContext, opaqueSerializer } from "./serializer.ts";
import { programsOf, rewindMessage } from "./texts.ts";
import type { Tree } from "./tree.ts";
import type { Context, RewindRequest, RewindResult, Scope, Serializer } from "./types.ts";
import { checkpointId } from "./views.ts";

export class Rewinder {
  readonly #deps: SessionDeps;
  readonly #tree: Tree;
  readonly #recorder: Recorder;
  readonly #serializer: Serializer;

  constructor(deps: SessionDeps, tree: Tree, recorder: Recorder, serializer: Serializer) {
    this.#deps = deps;
    this.#tree = tree;
    this.#recorder = recorder;
    this.#serializer = serializer;
  }

  /** Runs alone (the caller holds the coordinator). */
  async rewind(request: RewindRequest): Promise<RewindResult> {
    const { by = "caller", key = null } = request;
    const paths = request.paths === undefined ? null : cleanPaths(request.paths);
    const scope = scopeOf(request, paths);
    const thread = this.#tree.made();
    noteContacts(this.#deps, thread);
    const repeated = key === null ? undefined : this.#deps.catalog.rewindByKey(thread.id, key);
    if (repeated !== undefined) return this.#repeat(thread, repeated);
    const target = requireCheckpoint(this.#deps, thread, request.to);
    const lesson = request.lesson === undefined && by === "caller" ? null : cleanLesson(request.lesson ?? "");
    const verify = cleanCheck(request.verify);
    if (by === "agent") requireBudget(this.#deps, thread, target);
    if (paths === null) requireDecision(this.#deps, target, scope);
    requireRestorable(this.#deps, target, scope);
    requireOwnTimeline(this.#deps, thread, target, scope, paths);
    if (scope !== "environment" && (by === "agent" || request.crossEffects !== true))
      requireCrossable(this.#deps, thread, target);
    const delivered = this.#isDelivered(thread, request.delivery);
    if (!delivered && scope !== "environment") requireChannels(this.#deps, thread, target);
    const { external = "restore" } = request;
    if (request.dryRun === true) return this.#plan(thread, target, { scope, paths, external, lesson, undone: null });
    // Before anything is recorded: it refuses paths that neither state has.
    if (paths !== null) await this.#preview(target, paths, new Set());
    const { current } = request;
    const move: Move = {
      thread,
      target,
      kind: "rewind",
      by,
      scope,
      paths,
      adopts: null,
      external,
      key,
      lesson,
      verify,
      undoes: null,
      delivered,
      deliveredTexts: request.delivered ?? [],
      carried: request.carried ?? 0,
      storeCurrent: current === undefined ? null : () => this.#recorder.storeContext(thread, current),
    };
    return this.result(await performMove(this.#deps, move));
  }

  canUndo(): boolean {
    const { thread } = this.#tree;
    if (thread === undefined) return false;
    return this.#deps.catalog
      .rewinds(thread.id)
      .some((row) => isUndoable(row) && row.undone === 0 && row.left_at !== null);
  }

  /** Runs alone. @throws NOTHING_TO_UNDO */
  async undo({ dryRun = false }: UndoOptions = {}): Promise<RewindResult> {
    const thread = this.#tree.made();
    const { catalog } = this.#deps;
    const last = catalog.rewinds(thread.id).findLast((row) => isUndoable(row) && row.undone === 0);
    if (last === undefined) {
      throw new RewindError("NOTHING_TO_UNDO", `Thread "${thread.name}" has no rewind to undo.`, {
        hint: "List the checkpoints and rewind to one of them.",
      });
    }
    const target = last.left_at === null ? undefined : catalog.checkpoint(last.left_at);
    if (target === undefined) {
      throw new RewindError("NOTHING_TO_UNDO", `The state that the last rewind left, c${last.left_seq}, was pruned.`, {
        hint: "List the checkpoints and rewind to one of them.",
      });
    }
    requireRestorable(this.#deps, target, "both");
    requireOwnTimeline(this.#deps, thread, target, "both", null);
    const delivered = this.#isDelivered(thread);
    if (!delivered) requireChannels(this.#deps, thread, target);
    if (dryRun) {
      const planned = { scope: "both", paths: null, external: "restore", lesson: null, undone: last.target } as const;
      return this.#plan(thread, target, planned);
    }
    return this.result(
      await performMove(this.#deps, {
        ...alignment(thread, target),
        kind: "undo",
        by: "caller",
        undoes: last.id,
        delivered,
      }),
    );
  }

  /** The state and the conversation of a branch become the thread's. Runs alone. */
  async adopt(branch: BranchRow): Promise<RewindResult> {
    const thread = this.#tree.made();
    const { catalog } = this.#deps;
    const target = catalog.checkpoint(catalog.headOf(branch.thread)) as CheckpointRow;
    requireRestorable(this.#deps, target, "both");
    requireOwnTimeline(this.#deps, thread, target, "both", null);
    const delivered = this.#isDelivered(thread);
    if (!delivered) requireChannels(this.#deps, thread, target);
    return this.result(
      await performMove(this.#deps, {
        ...alignment(thread, target),
        kind: "adopt",
        by: "caller",
        adopts: branch.id,
        delivered,
      }),
    );
  }

  #isDelivered(thread: ThreadRow, delivery?: RewindRequest["delivery"]): boolean {
    return delivery === undefined ? !this.#tree.isDriven(thread) : delivery === "returned";
  }

  /** Brings the environment (unless it is there already) and the head to where the framework stands. Runs alone. */
  async follow(
    thread: ThreadRow,
    target: CheckpointRow,
    { scope = "both", external = "restore" }: Partial<Pick<Move, "scope" | "external">> = {},
  ): Promise<void> {
    await performMove(this.#deps, { ...alignment(thread, target), scope, external });
  }

  /** The same answer again; the environment is brought there if it has moved on since. */
  async #repeat(thread: ThreadRow, done: RewindRow): Promise<RewindResult> {
    requireKept(done);
    if (thread.head !== done.target) {
      const target = this.#deps.catalog.checkpoint(done.target) as CheckpointRow;
      await requireOthersKept(this.#deps, thread, target);
      await this.follow(thread, target);
    }
    return this.result(done);
  }

  /** A rewind that was carried out, told again from its row. */
  async result(row: RewindRow): Promise<RewindResult> {
    requireKept(row);
    const { catalog } = this.#deps;
    const stored = JSON.parse(row.result) as MoveResult;
    const headAfter = row.scope === "environment" ? (row.head_before ?? row.left_at) : row.target;
    return {
      scope: row.scope as Scope,
      paths: this.#tree.view(row.target).partial?.paths ?? null,
      checkpoint: this.#tree.view(row.target),
      left: this.#tree.view(row.left_at),
      context: await this.#context(catalog.checkpoint(headAfter) as CheckpointRow),
      message: stored.message,
      restored: stored.restored,
      notRestored: stored.notRestored,
      stopped: stored.stopped ?? [],
      effects: stored.effects ?? [],
      contacted: stored.contacted ?? [],
      compensated: stored.compensated ?? [],
      uncompensated: stored.uncompensated ?? [],
      conflicts: stored.conflicts,
      external: stored.external,
      lessons: distinctLessons(catalog.lessons(row.thread)).map(toLesson),
      epoch: row.epoch,
      timings: stored.timings,
    };
  }

  /** Bytes of another serializer stay bytes: a person may move a thread whose adapter is not at hand. */
  #context(row: CheckpointRow): Promise<Context> {
    const readable = row.serializer === this.#serializer.name;
    return loadContext(this.#deps.objects, row.context, readable ? this.#serializer : opaqueSerializer);
  }

  /** What a rewind would do. What it reads of the workspace is stored like a checkpoint's files, and named by none: `gc` takes it. */
  #plan(thread: ThreadRow, target: CheckpointRow, planned: Planned): Promise<RewindResult> {
    return this.#deps.objects.use(() => this.#planInUse(thread, target, planned));
  }

  async #planInUse(
    thread: ThreadRow,
    target: CheckpointRow,
    { scope, paths, external, lesson, undone }: Planned,
  ): Promise<RewindResult> {
    const start = performance.now();
    const { catalog, environment } = this.#deps;
    const { manifest, bytes } = await environment.capture().captured;
    const line = attributedLine(this.#deps, target, thread.head);
    const attributed = selectPaths(await attribute(environment, line, manifest, undone), paths);
    const kept = external === "keep" ? attributed.external : [];
    const {
      restored,
      notRestored,
      stopped = [],
    } = scope === "context"
      ? { restored: nothing, notRestored: [] }
      : await this.#preview(target, paths, new Set(kept));
    const { effects, contacted, compensated } = this.#effectsPlanned(thread, target, scope);
    return {
      scope,
      paths,
      checkpoint: this.#tree.view(target.id),
      left: null,
      context: await this.#context(target),
      message: rewindMessage({
        target: checkpointId(target),
        before: "",
        scope,
        paths,
        restored,
        notRestored,
        stopped,
        kept,
        conflicts: attributed.conflicts,
        effects,
        contacted,
        compensated,
        delivered: [],
        carried: 0,
        programs: programsOf(environment.capabilities, target, paths !== null, notRestored),
        lessons: lesson === null ? [] : [lesson],
      }),
      restored,
      notRestored,
      stopped,
      effects,
      contacted,
      compensated,
      uncompensated: [],
      conflicts: attributed.conflicts,
      external: attributed.external,
      lessons: distinctLessons(catalog.lessons(thread.id)).map(toLesson),
      epoch: catalog.epoch(),
      timings: { exposedMs: performance.now() - start, overlappedMs: 0, bytes },
    };
  }

  #effectsPlanned(thread: ThreadRow, target: CheckpointRow, scope: Scope) {
    if (scope === "environment") return { effects: [], contacted: [], compensated: [] };
    if (scope === "both") return effectsToPlan(this.#deps, thread, target);
    return { ...effectsToTell(this.#deps, thread, target, []), compensated: [] };
  }

  #preview(target: CheckpointRow, paths: readonly string[] | null, keep: ReadonlySet<string>): Promise<Restored> {
    const options = { keep, dryRun: true, ...(paths === null ? {} : { paths: new Set(paths) }) };
    return this.#deps.environment.restore(manifestOf(target), options);
  }
}

export interface UndoOptions {
  /** Plan only, as for a rewind. */
  readonly dryRun?: boolean;
}

interface Planned {
  readonly scope: Scope;
  readonly paths: readonly string[] | null;
  readonly external: "keep" | "restore";
  readonly lesson: NewLesson | null;
  /** The checkpoint that the rewind made which is being undone. */
  readonly undone: number | null;
}

const isUndoable = (row: RewindRow): boolean => row.kind === "rewind" || row.kind === "adopt";

/** @throws BAD_ARGUMENT */
function scopeOf({ scope }: RewindRequest, paths: readonly string[] | null): Scope {
  if (paths === null) return scope ?? "both";
  if (scope === undefined || scope === "environment") return "environment";
  throw new RewindError("BAD_ARGUMENT", `Paths cannot go back with scope "${scope}".`, {
    hint: "Leave the scope out: only the named paths go back, and the conversation stays.",
  });
}

function alignment(thread: ThreadRow, target: CheckpointRow): Move {
  return {
    thread,
    target,
    kind: "align",
    by: "framework",
    scope: "both",
    paths: null,
    adopts: null,
    external: "restore",
    key: null,
    lesson: null,
    verify: null,
    undoes: null,
    delivered: true,
    deliveredTexts: [],
    carried: 0,
    storeCurrent: null,
  };
}

/** @throws UNKNOWN_CHECKPOINT */
function requireKept(row: RewindRow): asserts row is RewindRow & { left_at: number; target: number } {
  if (row.left_at !== null && row.target !== null) return;
  const gone = row.target === null ? row.target_seq : row.left_seq;
  throw new RewindError("UNKNOWN_CHECKPOINT", `This rewind was done long ago, and c${gone} was pruned since.`, {
    hint: "List the checkpoints to see where the thread is.",
  });
}
