// A thread: one conversation of one agent, its head and its tree of checkpoints.
import { performance } from "node:perf_hooks";
import { beginPair, type Pair } from "../coordinator/pair.ts";
import type { Captured, FileChanges } from "../environment/environment.ts";
import { isRewindError, RewindError } from "../errors.ts";
import { fault } from "../faults.ts";
import type { CheckpointRow, RewindRow, ThreadRow } from "../store/catalog.ts";
import { requireBudget, requireCheckpoint, requireOwnTimeline, requireRestorable } from "./admissible.ts";
import { type Alignment, alignThread, type Boundary } from "./align.ts";
import { type ContextDiff, compareContexts } from "./compare.ts";
import type { SessionDeps } from "./deps.ts";
import { attribute } from "./external.ts";
import { cleanLesson, maskSecrets, shorten, toLesson } from "./lessons.ts";
import { type Move, type MoveResult, manifestOf, noActivity, performMove } from "./perform.ts";
import { jsonSerializer, loadContext, storeContext } from "./serializer.ts";
import { type ListedCheckpoint, listText, rewindMessage } from "./texts.ts";
import type {
  Activity,
  Checkpoint,
  CheckpointKind,
  Context,
  Lesson,
  RewindRequest,
  RewindResult,
  Scope,
  Serializer,
  Timings,
  ToolAction,
} from "./types.ts";
import { checkpointId, parseCheckpointId, toCheckpoint, type ViewContext } from "./views.ts";

export interface CheckpointOptions {
  /** Default: the head's. */
  readonly context?: Context;
  readonly label?: string;
  readonly activity?: Activity;
}

export interface TurnOptions {
  /** Names this boundary; a second turn at the head's own boundary is the same turn (a retry). */
  readonly anchor?: string;
  readonly activity?: Activity;
  /** The epoch in which the context was read (`align` tells it); a rewind since then makes the turn stale. Default: the present one. */
  readonly epoch?: number;
  /** Ends the capture; the turn goes on and its checkpoint is listed as not restorable. */
  readonly signal?: AbortSignal;
}

/** A model decision under way: the pair is captured while the model thinks. */
export interface Turn {
  /** Id that the checkpoint has, or will have. */
  readonly id: string;
  /**
   * Call when the reply is there and before its tools run: resolves when the pair is captured (or durable).
   * @param options.tools false when the reply calls no tool: what changes until the next turn is then somebody else's.
   * @throws CAPTURE_FAILED with `onCaptureFailure: "stop"`, STALE_EPOCH when a rewind came first, DISK_FULL
   */
  gate(options?: { readonly tools?: boolean }): Promise<Checkpoint>;
  /** The model call failed or was given up: nothing waits for this turn any more. The pair is kept. */
  end(): void;
  /** Resolves with the checkpoint when it is on disk. */
  readonly durable: Promise<Checkpoint>;
}

export interface ThreadDiff {
  readonly files: FileChanges;
  readonly processes: { readonly changed: boolean };
  readonly context: ContextDiff;
}

export class Thread {
  readonly name: string;
  readonly #deps: SessionDeps;
  readonly #serializer: Serializer;
  #endOpenTurn: (() => void) | undefined;

  constructor(deps: SessionDeps, name: string, serializer: Serializer = jsonSerializer) {
    this.#deps = deps;
    this.name = name;
    this.#serializer = serializer;
  }

  get #row(): ThreadRow | undefined {
    return this.#deps.catalog.thread(this.name);
  }

  #made(): ThreadRow {
    this.#deps.assertOpen();
    return this.#row ?? this.#deps.catalog.makeThread(this.name);
  }

  /** Counts the rewinds of the environment: what was issued in an older epoch is dropped. */
  get epoch(): number {
    return this.#deps.catalog.epoch();
  }

  /** Id of the head, or null. */
  get head(): string | null {
    const head = this.#row?.head;
    return head === null || head === undefined
      ? null
      : checkpointId(this.#deps.catalog.checkpoint(head) as CheckpointRow);
  }

  /** Captures a pair now and resolves when it is captured (durable with `gate: "durable"`). */
  async checkpoint(options: CheckpointOptions = {}): Promise<Checkpoint> {
    const start = performance.now();
    const thread = this.#made();
    const pair = this.#begin(thread, "explicit", options.context ?? null, {
      label: options.label === undefined ? null : cleanLabel(options.label),
      anchor: null,
      activity: options.activity ?? noActivity,
      signal: undefined,
    });
    const row = await this.#settled(pair);
    const waited = performance.now() - start;
    this.#recordTimings(row, pair, waited, waited);
    return this.#view(row.id);
  }

  /**
   * Starts the pair of a model decision; call it, start the model call, and await `gate()` before any tool of the reply.
   * @throws STALE_EPOCH when a rewind came after `options.epoch`
   */
  async beginTurn(context: Context, options: TurnOptions = {}): Promise<Turn> {
    this.#endOpenTurn?.();
    await this.#deps.coordinator.boundary();
    const thread = this.#made();
    const issued = options.epoch ?? this.#deps.catalog.epoch();
    this.#deps.catalog.requireEpoch(issued);
    const anchor = options.anchor ?? null;
    const retried = this.#headAt(thread, anchor);
    const leave = this.#deps.coordinator.enter("model");
    this.#endOpenTurn = leave;
    if (retried !== undefined) return this.#retriedTurn(retried, issued, leave);

    const seq = this.#deps.catalog.takeSeq(thread.id);
    const pair = this.#begin(
      thread,
      "turn",
      context,
      { label: null, anchor, activity: options.activity ?? noActivity, signal: options.signal },
      seq,
      issued,
    );
    return {
      id: `c${seq}`,
      gate: async ({ tools = true } = {}) => {
        const waited = performance.now();
        try {
          const row = await this.#settled(pair);
          const settled = performance.now() - waited;
          this.#deps.catalog.requireEpoch(issued);
          await this.#markTools(row, tools);
          this.#deps.catalog.requireEpoch(issued);
          this.#recordTimings(row, pair, settled, performance.now() - waited);
          return this.#view(row.id);
        } finally {
          leave();
        }
      },
      end: leave,
      durable: lazily(() => pair.durable.then((row) => this.#view(row.id))),
    };
  }

  #headAt(thread: ThreadRow, anchor: string | null): CheckpointRow | undefined {
    if (anchor === null || thread.head === null) return undefined;
    const head = this.#deps.catalog.checkpoint(thread.head) as CheckpointRow;
    return head.anchor === anchor && head.state !== "not-restorable" ? head : undefined;
  }

  #retriedTurn(row: CheckpointRow, issued: number, leave: () => void): Turn {
    const view = (): Checkpoint => this.#view(row.id);
    return {
      id: checkpointId(row),
      gate: async ({ tools = true } = {}) => {
        try {
          this.#deps.catalog.requireEpoch(issued);
          await this.#markTools(row, tools);
          this.#deps.catalog.requireEpoch(issued);
          return view();
        } finally {
          leave();
        }
      },
      end: leave,
      durable: Promise.resolve(view()),
    };
  }

  #begin(
    thread: ThreadRow,
    kind: CheckpointKind,
    context: Context | null,
    about: { label: string | null; anchor: string | null; activity: Activity; signal: AbortSignal | undefined },
    seq = this.#deps.catalog.takeSeq(thread.id),
    issued = this.#deps.catalog.epoch(),
  ): Pair<CheckpointRow> {
    const { catalog, environment, coordinator, objects } = this.#deps;
    let made: Pair<CheckpointRow> | undefined;
    const started = coordinator.exclusive(async () => {
      made = beginPair({
        environment,
        signal: about.signal,
        storeContext: () => this.#storeContext(thread, context),
        publish: async (stored, captured, failure, workMs) => {
          const now = catalog.thread(this.name) as ThreadRow;
          const parent = now.head === null ? undefined : catalog.checkpoint(now.head);
          const changes = await this.#changesSince(parent, captured);
          fault("checkpoint.before-commit");
          const row = catalog.addCheckpoint(
            {
              thread: thread.id,
              seq,
              parent: parent?.id ?? null,
              turn: (parent?.turn ?? 0) + (kind === "turn" ? 1 : 0),
              kind,
              state: captured === null ? "not-restorable" : "captured",
              reason: captured === null ? reasonOf(failure) : null,
              label: about.label,
              anchor: about.anchor,
              context: stored.name,
              messages: stored.messages,
              serializer: stored.serializer,
              manifest: captured?.manifest ?? null,
              changes,
              activity: cleanActivity(about.activity),
              problems: captured?.problems ?? [],
              timings: { exposedMs: 0, overlappedMs: workMs, bytes: (captured?.bytes ?? 0) + stored.bytes },
              lessons: JSON.parse(now.lessons) as number[],
            },
            issued,
          );
          fault("checkpoint.committed");
          return row;
        },
        persist: async (row) => {
          await objects.sync();
          catalog.markDurable(row.id);
          await this.#deps.syncLog();
          fault("durable.committed");
        },
      });
      await made.published;
    });
    started.catch(() => {});
    const published = started.then(() => (made as Pair<CheckpointRow>).published);
    const durable = started.then(() => (made as Pair<CheckpointRow>).durable);
    published.catch(() => {});
    durable.catch(() => {});
    this.#deps.track(durable);
    return { published, durable, workMs: () => made?.workMs() ?? 0 };
  }

  async #storeContext(
    thread: ThreadRow,
    context: Context | null,
  ): Promise<{ name: string; messages: number; serializer: string; bytes: number }> {
    const head = thread.head === null ? undefined : this.#deps.catalog.checkpoint(thread.head);
    if (context === null && head !== undefined) {
      return { name: head.context, messages: head.messages, serializer: head.serializer, bytes: 0 };
    }
    const batch = this.#deps.objects.batch();
    const wanted = context ?? { messages: [] };
    const name = await storeContext(batch, wanted, this.#serializer);
    return { name, messages: wanted.messages.length, serializer: this.#serializer.name, bytes: batch.commit() };
  }

  async #changesSince(parent: CheckpointRow | undefined, captured: Captured | null): Promise<FileChanges | null> {
    if (parent === undefined || captured === null || parent.state === "not-restorable") return null;
    return this.#deps.environment.diff(manifestOf(parent), captured.manifest);
  }

  async #settled(pair: Pair<CheckpointRow>): Promise<CheckpointRow> {
    const row = await (this.#deps.gate === "durable" ? pair.durable : pair.published);
    if (row.state === "not-restorable" && this.#deps.onCaptureFailure === "stop") {
      throw new RewindError("CAPTURE_FAILED", `${checkpointId(row)} could not be captured: ${row.reason}.`, {
        hint: "Mend what is named and take the turn again.",
        details: { checkpoint: checkpointId(row) },
      });
    }
    return row;
  }

  /** Looks once more before tools run: what changed while the model thought is not the agent's. */
  async #markTools(row: CheckpointRow, tools: boolean): Promise<void> {
    const { catalog, environment, coordinator } = this.#deps;
    if (!tools) {
      if (row.tools === "unknown") catalog.markTools(row.id, "none", null);
      return;
    }
    if (row.state === "not-restorable") return;
    try {
      const now = await coordinator.exclusive(() => environment.capture().captured);
      catalog.markTools(row.id, "ran", now.manifest);
    } catch {
      catalog.markTools(row.id, "unknown", null);
    }
  }

  /** @param settledMs of `exposedMs`, what was spent waiting for the pair itself */
  #recordTimings(row: CheckpointRow, pair: Pair<CheckpointRow>, settledMs: number, exposedMs: number): void {
    const { bytes } = JSON.parse(row.timings) as Timings;
    const overlappedMs = Math.max(0, pair.workMs() - settledMs);
    this.#deps.catalog.setTimings(row.id, { exposedMs, overlappedMs, bytes } satisfies Timings);
  }

  /** This lineage, oldest first; with `all` the whole tree of the thread in the order of making. */
  checkpoints({ all = false }: { readonly all?: boolean } = {}): Checkpoint[] {
    const thread = this.#row;
    if (thread === undefined) return [];
    const { catalog } = this.#deps;
    const rows = all ? catalog.checkpoints(thread.id) : catalog.lineage(thread.head).reverse();
    const view = this.#viewContext(thread);
    return rows.map((row) => toCheckpoint(row, view));
  }

  /** @throws UNKNOWN_CHECKPOINT */
  get(id: string): Checkpoint {
    return this.#view(this.#find(id).id);
  }

  #find(id: string): CheckpointRow {
    return requireCheckpoint(this.#deps, this.#row, parseCheckpointId(id));
  }

  #view(id: number): Checkpoint {
    return toCheckpoint(this.#deps.catalog.checkpoint(id) as CheckpointRow, this.#viewContext(this.#row as ThreadRow));
  }

  #viewContext(thread: ThreadRow): ViewContext {
    const lineage = this.#deps.catalog.lineage(thread.head);
    const rows = [...lineage, ...this.#deps.catalog.checkpoints(thread.id)];
    return {
      head: thread.head,
      active: new Set(lineage.map((row) => row.id)),
      seqOf: new Map(rows.map((row) => [row.id, row.seq])),
    };
  }

  /** The conversation half of a checkpoint. */
  async context(id: string): Promise<Context> {
    return loadContext(this.#deps.objects, this.#find(id).context, this.#serializer);
  }

  /** Labels a checkpoint, by default the head. Labelled checkpoints are always listed and kept. */
  label(label: string, id?: string): Checkpoint {
    this.#deps.assertOpen();
    const row = id === undefined ? this.#headRow() : this.#find(id);
    this.#deps.catalog.setLabel(row.id, cleanLabel(label));
    return this.#view(row.id);
  }

  #headRow(): CheckpointRow {
    const head = this.#row?.head;
    if (head !== null && head !== undefined) return this.#deps.catalog.checkpoint(head) as CheckpointRow;
    throw new RewindError("UNKNOWN_CHECKPOINT", `Thread "${this.name}" has no checkpoint yet.`, {
      hint: "Make one first.",
    });
  }

  /** Newest first. */
  lessons(): Lesson[] {
    const thread = this.#row;
    return thread === undefined ? [] : this.#deps.catalog.lessons(thread.id).map(toLesson);
  }

  /** The list as `list_checkpoints` gives it to the model. */
  listText(): string {
    const all = this.checkpoints({ all: true });
    const children = new Map<string, Checkpoint[]>();
    for (const one of all)
      if (one.parent !== null) children.set(one.parent, [...(children.get(one.parent) ?? []), one]);
    const listed = (one: Checkpoint): ListedCheckpoint => {
      const next = children.get(one.id) ?? [];
      return { checkpoint: one, next: next.find((child) => child.active) ?? next.at(-1) ?? null };
    };
    const active = this.checkpoints().reverse().map(listed);
    const abandoned = all
      .filter((one) => !one.active)
      .reverse()
      .map(listed);
    return maskSecrets(listText(active, abandoned));
  }

  /** What differs between two checkpoints; without `to`, from `from` to the workspace as it is now and the head's context. */
  async diff(from: string, to?: string): Promise<ThreadDiff> {
    const { environment, coordinator, objects } = this.#deps;
    const left = this.#find(from);
    const right = to === undefined ? this.#headRow() : this.#find(to);
    requireRestorable(this.#deps, left, "both");
    let manifest = manifestOf(right);
    if (to === undefined) {
      this.#deps.assertOpen();
      manifest = (await coordinator.exclusive(() => environment.capture().captured)).manifest;
    } else requireRestorable(this.#deps, right, "both");
    const files = await environment.diff(manifestOf(left), manifest);
    return {
      files,
      processes: { changed: left.processes !== manifest.processes },
      context: compareContexts(objects, left.context, right.context),
    };
  }

  /**
   * Moves the head to another checkpoint and restores both halves. The abandoned branch stays in the tree; `undo` returns to it.
   * Beside a running agent: a model call that runs becomes stale at once, a tool that runs is waited for (so do not wait for this inside of one).
   * @throws UNKNOWN_CHECKPOINT, NOT_RESTORABLE, SHARED_ENVIRONMENT, STORE_CORRUPT, RESTORE_FAILED, DISK_FULL; by the agent also
   * LESSON_EMPTY, BUDGET_SPENT, NOTHING_TO_REWIND
   */
  async rewind(request: RewindRequest): Promise<RewindResult> {
    const { scope = "both", by = "caller" } = request;
    const seq = parseCheckpointId(request.to);
    if (this.#row === undefined) throw unknownThread(this.name);
    const { exclusive, betweenTools } = this.#deps.coordinator;
    return (by === "agent" || request.dryRun === true ? exclusive : betweenTools)(async () => {
      const thread = this.#made();
      const repeated = request.key === undefined ? undefined : this.#deps.catalog.rewindByKey(thread.id, request.key);
      if (repeated !== undefined) return this.#repeat(thread, repeated);
      const target = requireCheckpoint(this.#deps, thread, seq);
      const lesson = request.lesson === undefined && by === "caller" ? null : cleanLesson(request.lesson ?? "");
      if (by === "agent") requireBudget(this.#deps, thread, target);
      requireRestorable(this.#deps, target, scope);
      requireOwnTimeline(this.#deps, thread, target, scope);
      if (request.dryRun === true) return this.#plan(thread, target, request, lesson);
      return this.#move({
        thread,
        target,
        kind: "rewind",
        by,
        scope,
        external: request.external ?? "restore",
        key: request.key ?? null,
        lesson,
        undoes: null,
        delivered: request.delivery === undefined ? !this.#isDriven(thread) : request.delivery === "returned",
        deliveredTexts: request.delivered ?? [],
        carried: request.carried ?? 0,
        storeCurrent:
          request.current === undefined ? null : () => this.#storeContext(thread, request.current as Context),
      });
    });
  }

  /** The same answer again; the environment is brought there if it has moved on since. */
  async #repeat(thread: ThreadRow, done: RewindRow): Promise<RewindResult> {
    if (thread.head !== done.target) {
      const target = this.#deps.catalog.checkpoint(done.target) as CheckpointRow;
      await performMove(this.#deps, this.#alignment(thread, target));
    }
    return this.#result(done);
  }

  #alignment(thread: ThreadRow, target: CheckpointRow): Move {
    return {
      thread,
      target,
      kind: "align",
      by: "framework",
      scope: "both",
      external: "restore",
      key: null,
      lesson: null,
      undoes: null,
      delivered: true,
      deliveredTexts: [],
      carried: 0,
      storeCurrent: null,
    };
  }

  async #move(move: Move): Promise<RewindResult> {
    return this.#result(await performMove(this.#deps, move));
  }

  async #result(row: RewindRow): Promise<RewindResult> {
    const { catalog } = this.#deps;
    const result = JSON.parse(row.result) as MoveResult;
    const headAfter = row.scope === "environment" ? (row.head_before ?? row.left_at) : row.target;
    const context = catalog.checkpoint(headAfter) as CheckpointRow;
    return {
      scope: row.scope as Scope,
      checkpoint: this.#view(row.target),
      left: this.#view(row.left_at),
      context: await loadContext(this.#deps.objects, context.context, this.#serializer),
      message: result.message,
      restored: result.restored,
      notRestored: result.notRestored,
      effects: [],
      conflicts: result.conflicts,
      external: result.external,
      lessons: this.lessons(),
      epoch: row.epoch,
      timings: result.timings,
    };
  }

  async #plan(
    thread: ThreadRow,
    target: CheckpointRow,
    request: RewindRequest,
    lesson: string | null,
  ): Promise<RewindResult> {
    const start = performance.now();
    const { catalog, environment, objects } = this.#deps;
    const captured = await environment.capture().captured;
    const line = catalog.lineage(thread.head).reverse();
    const ancestors = new Set(catalog.lineage(target.id).map((row) => row.id));
    const attribution = await attribute(
      environment,
      line.slice(
        Math.max(
          0,
          line.findLastIndex((row) => ancestors.has(row.id)),
        ),
      ),
      captured.manifest,
    );
    const restored = await environment.diff(captured.manifest, manifestOf(target));
    return {
      scope: request.scope ?? "both",
      checkpoint: this.#view(target.id),
      left: null,
      context: await loadContext(objects, target.context, this.#serializer),
      message: rewindMessage({
        target: checkpointId(target),
        before: "",
        scope: request.scope ?? "both",
        restored,
        notRestored: [],
        kept: request.external === "keep" ? attribution.external : [],
        conflicts: attribution.conflicts,
        effects: [],
        delivered: [],
        carried: 0,
        processes: environment.capabilities.processes,
        lessons: lesson === null ? [] : [{ text: lesson }],
      }),
      restored,
      notRestored: [],
      effects: [],
      conflicts: attribution.conflicts,
      external: attribution.external,
      lessons: this.lessons(),
      epoch: catalog.epoch(),
      timings: { exposedMs: performance.now() - start, overlappedMs: 0, bytes: captured.bytes },
    };
  }

  /** True when an adapter names this thread's boundaries: its framework must be given a context that it did not restore itself. */
  #isDriven(thread: ThreadRow): boolean {
    return this.#deps.catalog.lineage(thread.head).some((row) => row.anchor !== null);
  }

  /** Undoes the last rewind that is not undone: both halves return to the state that it left. @throws NOTHING_TO_UNDO */
  async undo(): Promise<RewindResult> {
    return this.#deps.coordinator.betweenTools(async () => {
      const thread = this.#made();
      const { catalog } = this.#deps;
      const last = catalog.rewinds(thread.id).findLast((row) => row.kind === "rewind" && row.undone === 0);
      if (last === undefined) {
        throw new RewindError("NOTHING_TO_UNDO", `Thread "${this.name}" has no rewind to undo.`, {
          hint: "List the checkpoints and rewind to one of them.",
        });
      }
      const target = catalog.checkpoint(last.left_at) as CheckpointRow;
      requireRestorable(this.#deps, target, "both");
      requireOwnTimeline(this.#deps, thread, target, "both");
      return this.#move({
        ...this.#alignment(thread, target),
        kind: "undo",
        by: "caller",
        undoes: last.id,
        delivered: !this.#isDriven(thread),
      });
    });
  }

  /**
   * For adapters, before a model call: runs what waits for the turn boundary, compares where the framework's own state stands with the head, and
   * brings the environment to it (invariant 9).
   * @param boundaries the framework's messages, newest first
   * @throws PAIR_DIVERGED when tools ran behind a checkpoint that is not the head
   */
  async align(boundaries: readonly Boundary[]): Promise<Alignment> {
    await this.#deps.coordinator.boundary();
    return this.#deps.coordinator.exclusive(() => this.#align(boundaries, "model"));
  }

  /**
   * For adapters, before a tool: as `align`, and marks the tool as running, so that a rewind from outside waits for its end.
   * @param boundaries the framework's messages before the reply whose tool this is, newest first
   * @returns what to call when the tool has ended; undefined when the conversation was rewound and the tool must not run
   * @throws PAIR_DIVERGED
   */
  async enterTool(boundaries: readonly Boundary[]): Promise<(() => void) | undefined> {
    return this.#deps.coordinator.exclusive(async () => {
      const { status } = await this.#align(boundaries, "tools");
      return status === "deliver" ? undefined : this.#deps.coordinator.enter("tool");
    });
  }

  async #align(boundaries: readonly Boundary[], at: "model" | "tools"): Promise<Alignment> {
    const thread = this.#row;
    if (thread === undefined) return { status: "new", epoch: this.epoch };
    return alignThread(this.#deps, thread, boundaries, at, {
      move: async (target) => void (await performMove(this.#deps, this.#alignment(thread, target))),
      result: (row) => this.#result(row),
      changedSince: async (row) => {
        const { manifest } = await this.#deps.environment.capture().captured;
        return manifest.files !== row.tools_files || manifest.processes !== row.tools_processes;
      },
    });
  }

  /** For adapters: whether `rewind` by the agent would be refused now, and why. */
  admissible(to: string, lesson: string): RewindError | undefined {
    try {
      const thread = this.#row;
      const target = requireCheckpoint(this.#deps, thread, parseCheckpointId(to));
      cleanLesson(lesson);
      requireBudget(this.#deps, thread as ThreadRow, target);
      requireRestorable(this.#deps, target, "both");
      requireOwnTimeline(this.#deps, thread as ThreadRow, target, "both");
      return undefined;
    } catch (error) {
      if (isRewindError(error)) return error;
      throw error;
    }
  }
}

const inputLimit = 400;

function cleanActivity(activity: Activity): Activity {
  const clean = (text: string): string => shorten(maskSecrets(text), inputLimit);
  return {
    said: clean(activity.said),
    actions: activity.actions.map(
      (action): ToolAction => ({ ...action, input: clean(action.input), output: clean(action.output) }),
    ),
  };
}

function cleanLabel(label: string): string {
  const clean = shorten(maskSecrets(label.replace(/\s+/g, " ")), 120);
  if (clean !== "") return clean;
  throw new RewindError("BAD_ARGUMENT", "The label is empty.", { hint: "Give a short name for this point." });
}

function reasonOf(failure: unknown): string {
  return failure instanceof Error ? failure.message.replace(/\.$/, "") : "the environment could not be captured";
}

function unknownThread(name: string): RewindError {
  return new RewindError("NO_THREAD", `There is no thread "${name}" in this workspace.`, {
    hint: "List the checkpoints to see the threads, or make a checkpoint first.",
  });
}

/** A promise whose rejection nobody need handle. */
function lazily<T>(make: () => Promise<T>): Promise<T> {
  const promise = make();
  promise.catch(() => {});
  return promise;
}
