// A thread: one conversation of one agent, its head and its tree of checkpoints.
import { performance } from "node:perf_hooks";
import type { RunningTool } from "../coordinator/coordinator.ts";
import type { FileChanges } from "../environment/environment.ts";
import { isRewindError, RewindError } from "../errors.ts";
import type { BranchRow } from "../store/branches.ts";
import type { CheckpointRow, ThreadRow } from "../store/rows.ts";
import {
  requireBudget,
  requireCheckpoint,
  requireDecision,
  requireOwnTimeline,
  requireRestorable,
} from "./admissible.ts";
import type { Alignment, Boundary } from "./alignment.ts";
import { cleanLabel } from "./clean.ts";
import { type ContextDiff, compareContexts } from "./compare.ts";
import { requireCrossable } from "./crossed.ts";
import type { SessionDeps } from "./deps.ts";
import type { ToolArguments } from "./effect-rules.ts";
import type { Effect, ToolOutcome, ToolRun } from "./effect-types.ts";
import { Effects } from "./effects.ts";
import { requireTogether } from "./gone.ts";
import { Journal } from "./journal.ts";
import { boundedLessons, cleanLesson, distinctLessons, toLesson } from "./lessons.ts";
import { holdsMoment, type Moment } from "./moment.ts";
import { manifestOf, noActivity } from "./move.ts";
import { requireRecording } from "./observer.ts";
import { isKnown, type NamedState, type Position, pairState } from "./places.ts";
import { Recorder } from "./recorder.ts";
import { Rewinder, type UndoOptions } from "./rewinder.ts";
import { jsonSerializer, loadContext } from "./serializer.ts";
import { type AlignOptions, Standing } from "./standing.ts";
import { reminderText } from "./texts.ts";
import { Tree } from "./tree.ts";
import { resumeTurn, startTurn, type Turn, type TurnOptions } from "./turn.ts";
import type {
  Activity,
  Checkpoint,
  Context,
  Lesson,
  LessonParts,
  RewindRequest,
  RewindResult,
  Serializer,
} from "./types.ts";
import { isNotCaptured } from "./uncaptured.ts";
import { checkpointId, parseCheckpointId } from "./views.ts";

export interface CheckpointOptions {
  /** Default: the head's. */
  readonly context?: Context;
  readonly label?: string;
  readonly activity?: Activity;
}

export type { AlignOptions };

export interface ThreadDiff {
  readonly files: FileChanges;
  readonly processes: { readonly changed: boolean };
  readonly context: ContextDiff;
}

export class Thread {
  readonly name: string;
  readonly #deps: SessionDeps;
  readonly #serializer: Serializer;
  readonly #tree: Tree;
  readonly #recorder: Recorder;
  readonly #rewinder: Rewinder;
  readonly #standing: Standing;
  /** For adapters. */
  readonly journal: Journal;
  readonly #effects: Effects;
  #endOpenTurn: (() => void) | undefined;

  constructor(deps: SessionDeps, name: string, serializer: Serializer = jsonSerializer) {
    this.name = name;
    this.#deps = deps;
    this.#serializer = serializer;
    this.#tree = new Tree(deps, name);
    this.journal = new Journal(deps, this.#tree);
    this.#recorder = new Recorder(deps, serializer);
    this.#rewinder = new Rewinder(deps, this.#tree, this.#recorder, serializer);
    this.#standing = new Standing(deps, name, { tree: this.#tree, recorder: this.#recorder, rewinder: this.#rewinder });
    this.#effects = new Effects(deps, this.#tree, () => this.checkpoint());
  }

  /** Counts the rewinds of the environment: what was issued in an older epoch is dropped. */
  get epoch(): number {
    return this.#deps.catalog.epoch();
  }

  /** Whether its turns are only observed: nothing is captured, and the rewind tools have nothing to return to. */
  get observed(): boolean {
    return this.#deps.observer !== undefined;
  }

  /** Whether a tool runs in the environment now, of this thread or of another. */
  get inTool(): boolean {
    return this.#deps.coordinator.inTool();
  }

  /** Id of the head, or null. */
  get head(): string | null {
    const head = this.#tree.thread?.head ?? null;
    return head === null ? null : checkpointId(this.#deps.catalog.checkpoint(head) as CheckpointRow);
  }

  /** Captures a pair now and resolves when it is captured (durable with `gate: "durable"`). */
  async checkpoint(options: CheckpointOptions = {}): Promise<Checkpoint> {
    const start = performance.now();
    const label = options.label === undefined ? null : cleanLabel(options.label);
    const thread = this.#tree.made();
    const { catalog } = this.#deps;
    const pair = this.#recorder.begin({
      thread,
      kind: "explicit",
      context: options.context ?? null,
      label,
      anchor: null,
      activity: options.activity ?? noActivity,
      seq: catalog.takeSeq(thread.id),
      effectsUpTo: options.context === undefined ? null : catalog.effectMark(thread.id),
      issued: options.context === undefined ? null : catalog.epoch(),
    });
    const row = await this.#recorder.settled(pair);
    const waited = performance.now() - start;
    this.#recorder.recordTimings(row, pair, waited, waited);
    return this.#tree.view(row.id);
  }

  /**
   * Starts the pair of a model decision; call it, start the model call, and await `gate()` before any tool of the reply.
   * @throws STALE_EPOCH when a rewind came after `options.epoch`; PAIR_DIVERGED where the environment ended with its owner, what was done behind the head was not captured, and the context is another than
   * the head's: nobody says that it knows nothing of that (`align` does)
   */
  async beginTurn(context: Context, options: TurnOptions = {}): Promise<Turn> {
    this.#endOpenTurn?.();
    const { catalog, coordinator, staleness } = this.#deps;
    await coordinator.boundary();
    const anchor = options.anchor ?? null;
    const current = this.#tree.made();
    if (current.gone !== null) {
      if (options.epoch !== undefined) catalog.requireEpoch(options.epoch);
      requireTogether(this.#deps, current);
      if (this.#headAt(current, anchor) === undefined) await this.#standing.requireAtHead(context);
    }
    const { thread, issued, retried, begun } = catalog.atOnce(() => {
      const thread = this.#tree.made();
      const issued = options.epoch ?? catalog.epoch();
      if (options.epoch !== undefined) catalog.requireEpoch(issued);
      requireTogether(this.#deps, thread);
      const retried = this.#headAt(thread, anchor);
      const begun = retried === undefined && {
        seq: catalog.takeSeq(thread.id),
        effectsUpTo: catalog.effectMark(thread.id),
      };
      return { thread, issued, retried, begun };
    });
    const leaveModel = coordinator.enter("model");
    const { signal: stale, end } = staleness.watch();
    const leave = (): void => {
      leaveModel();
      end();
    };
    const parts = {
      deps: this.#deps,
      recorder: this.#recorder,
      view: (id: number) => this.#tree.view(id),
      leave,
      stale,
    };
    const turn =
      begun === false
        ? resumeTurn(parts, retried as CheckpointRow, issued)
        : startTurn(parts, {
            thread,
            ...begun,
            kind: "turn",
            context,
            label: null,
            anchor,
            activity: options.activity ?? noActivity,
            signal: options.signal,
            issued,
          });
    this.#endOpenTurn = turn.end;
    return turn;
  }

  #headAt(thread: ThreadRow, anchor: string | null): CheckpointRow | undefined {
    if (anchor === null || thread.head === null) return undefined;
    const head = this.#deps.catalog.checkpoint(thread.head) as CheckpointRow;
    return head.anchor === anchor && (head.state !== "not-restorable" || isNotCaptured(head)) ? head : undefined;
  }

  /**
   * For adapters, behind the gate: the conversation with the model's reply in it. A rewind or undo from outside stores it with the state that it leaves, so that who
   * returns there has both.
   */
  reached(context: () => Context): void {
    const { thread } = this.#tree;
    if (thread === undefined || thread.head === null) return;
    const store = () => this.#recorder.storeContext(thread, context());
    this.#deps.reached.set(thread.id, { head: thread.head, store });
  }

  /** This lineage, oldest first; with `all` the whole tree of the thread in the order of making. */
  checkpoints({ all = false }: { readonly all?: boolean } = {}): Checkpoint[] {
    return this.#tree.list(all);
  }

  /** @throws UNKNOWN_CHECKPOINT */
  get(id: string): Checkpoint {
    return this.#tree.view(this.#tree.find(id).id);
  }

  /** The conversation half of a checkpoint. */
  async context(id: string): Promise<Context> {
    return loadContext(this.#deps.objects, this.#tree.find(id).context, this.#serializer);
  }

  /** Labels a checkpoint, by default the head. Labelled checkpoints are always listed and kept. */
  label(label: string, id?: string): Checkpoint {
    this.#deps.assertOpen();
    const row = id === undefined ? this.#tree.head() : this.#tree.find(id);
    this.#deps.catalog.setLabel(row.id, cleanLabel(label));
    return this.#tree.view(row.id);
  }

  /** Newest first, each once. */
  lessons(): Lesson[] {
    const { thread } = this.#tree;
    return thread === undefined ? [] : distinctLessons(this.#deps.catalog.lessons(thread.id)).map(toLesson);
  }

  /**
   * For adapters, before a model call: lessons that belong to this conversation and that its framework has cut out of it (a summary, a trimmed history), as a
   * text to be shown once, at the same place on every turn. Null when nothing is missing.
   * @param shown the texts of the messages that the model is about to see
   */
  reminder(shown: Iterable<string>): string | null {
    const { thread } = this.#tree;
    const ids = new Set(JSON.parse(thread?.lessons ?? "[]") as number[]);
    if (thread === undefined || ids.size === 0) return null;
    const rows = distinctLessons(this.#deps.catalog.lessons(thread.id).filter((row) => ids.has(row.id)));
    let missing = boundedLessons(rows);
    for (const text of shown) {
      if (missing.length === 0) return null;
      missing = missing.filter((row) => !text.includes(row.text));
    }
    return missing.length === 0 ? null : reminderText(missing);
  }

  /** What the thread and its branches did outside of the environment, oldest first. */
  effects(): Effect[] {
    return this.#tree.effects();
  }

  /**
   * For adapters and loops: calls a tool. Around tools that are declared in `effects` the call is recorded, on disk, before it is made, and its result behind
   * it; no rewind touches the record. The same call again (`callId`) gives its recorded result. Behind a rewind an equivalent call gives that result too, is
   * held, or is made again, as `onRepeat` says; a call of which nobody knows whether it was done is held. Never waits for a person. Tools that are
   * not declared are called and nothing else. What the tool throws is thrown.
   * @param run makes the call, with the arguments without the token of a consent
   * @throws STALE_EPOCH when a rewind came before the call or while it ran, HOLDER_CHANGED, CLOSED, DISK_FULL: a text that says whether it was done
   */
  runTool<T>(call: ToolRun<T>, run: (args: ToolArguments) => T | Promise<T>): Promise<ToolOutcome<T>> {
    return this.#effects.run(call, run);
  }

  /**
   * A person has looked what became of an effect whose end nobody knew.
   * @throws BAD_ARGUMENT when there is no such effect, or its end is known
   */
  settleEffect(id: number, outcome: "done" | "not-done"): Effect {
    this.#deps.assertOpen();
    return this.#effects.settle(id, outcome);
  }

  /** The list as `list_checkpoints` gives it to the model. */
  listText(): string {
    return this.#tree.text();
  }

  /** What differs between two checkpoints; without `to`, from `from` to the workspace as it is now and the head's context. */
  async diff(from: string, to?: string): Promise<ThreadDiff> {
    requireRecording(this.#deps);
    const { environment, coordinator, objects } = this.#deps;
    const left = this.#tree.find(from);
    const right = to === undefined ? this.#tree.head() : this.#tree.find(to);
    requireRestorable(this.#deps, left, "both");
    return objects.use(async () => {
      let manifest = manifestOf(right);
      if (to === undefined) {
        this.#deps.assertOpen();
        manifest = (await coordinator.exclusive(() => environment.capture().captured)).manifest;
      } else requireRestorable(this.#deps, right, "both");
      return {
        files: await environment.diff(manifestOf(left), manifest),
        processes: { changed: left.processes !== manifest.processes },
        context: compareContexts(objects, left.context, right.context),
      };
    });
  }

  /**
   * Moves the head to another checkpoint and restores both halves. The abandoned branch stays in the tree; `undo` returns to it.
   * Beside a running agent: a model call that runs becomes stale at once, a tool that runs is waited for (one that runs a subagent is ended), and commands that
   * the environment still runs are ended.
   * @throws INSIDE_TOOL when a tool that runs asks for it, UNKNOWN_CHECKPOINT, NOT_RESTORABLE, SHARED_ENVIRONMENT, STORE_CORRUPT, RESTORE_FAILED, DISK_FULL, EFFECT_CROSSED,
   * VERIFY_FAILED; by the agent also LESSON_EMPTY, BUDGET_SPENT, NOTHING_TO_REWIND
   */
  async rewind(request: RewindRequest): Promise<RewindResult> {
    requireRecording(this.#deps);
    parseCheckpointId(request.to);
    if (this.#tree.thread === undefined) throw unknownThread(this.name);
    // Before any tool is ended for it.
    if (request.key === undefined) this.#tree.find(request.to);
    const { exclusive, betweenTools } = this.#deps.coordinator;
    const alone = request.by === "agent" || request.dryRun === true ? exclusive : betweenTools;
    return alone(() => this.#rewinder.rewind(request));
  }

  /** Undoes the last rewind that is not undone: both halves return to the state that it left. @throws NOTHING_TO_UNDO */
  async undo(options: UndoOptions = {}): Promise<RewindResult> {
    requireRecording(this.#deps);
    const { exclusive, betweenTools, requireOutside } = this.#deps.coordinator;
    if (options.dryRun !== true) requireOutside();
    const alone = options.dryRun === true || !this.canUndo() ? exclusive : betweenTools;
    return alone(() => this.#rewinder.undo(options));
  }

  /** Whether there is a rewind to undo. */
  canUndo(): boolean {
    return this.#rewinder.canUndo();
  }

  /** For the composition root: takes over the state and the conversation of a branch, both stored already. */
  async adopt(branch: BranchRow): Promise<RewindResult> {
    return this.#deps.coordinator.betweenTools(() => this.#rewinder.adopt(branch));
  }

  /** Where the conversation stands, for what a tool learns now: `holds` tells later whether the conversation still holds it. */
  moment(): Moment {
    return { head: this.#tree.thread?.head ?? null, epoch: this.epoch };
  }

  /** Whether what was learned at that moment is part of the conversation in force: no rewind, undo or time travel has taken it back. In doubt false. */
  holds(moment: Moment): boolean {
    return holdsMoment(this.#deps.catalog, this.#tree.thread, moment);
  }

  /** Resolves when no capture and no rewind is under way. */
  async settled(): Promise<void> {
    await this.#deps.coordinator.exclusive(async () => {});
  }

  /**
   * For adapters, before a model call: runs what waits for the turn boundary, compares where the framework's own state stands with the head, and
   * brings the environment to it (invariant 9).
   * @param boundaries the framework's messages, newest first
   * @throws PAIR_DIVERGED when tools ran behind a checkpoint that is not the head; NOT_RESTORABLE; SHARED_ENVIRONMENT when that would take back what another thread did
   */
  async align(boundaries: Iterable<Boundary>, options: AlignOptions = {}): Promise<Alignment> {
    await this.#deps.coordinator.boundary();
    return this.#deps.coordinator.exclusive(() => this.#standing.align(boundaries, "model", options));
  }

  /**
   * For adapters whose framework names its states, before it stores one: a state that follows from the one in which the files are gets them as they are now, any
   * other those of the state before it.
   * @returns what to call when the framework has stored it
   */
  pairState(state: NamedState): () => void {
    return pairState(this.#deps, this.#tree.made(), state);
  }

  /** Whether something is known of the files of a state that the framework names. */
  knowsState(name: string): boolean {
    const { thread } = this.#tree;
    return thread !== undefined && isKnown(this.#deps, thread, name);
  }

  /** The checkpoint whose files belong to a state that the framework names; undefined where none was made yet. */
  stateNamed(name: string): Checkpoint | undefined {
    const { thread } = this.#tree;
    const row = thread === undefined ? undefined : this.#deps.catalog.stateNamed(thread.id, name);
    return row && this.#tree.view(row.id);
  }

  /**
   * For adapters: brings the files to a state that the framework names, at once; rewinds that wait for its next run are passed over.
   * @param anew a run from there begins it anew; false: it goes on from what was begun, and where the files stand there they stay as they are
   * @returns the checkpoint that the files are of
   * @throws NOT_RESTORABLE
   */
  async checkout(position: Position, anew: boolean): Promise<Checkpoint> {
    requireRecording(this.#deps);
    const { coordinator } = this.#deps;
    await coordinator.boundary();
    const row = await coordinator.exclusive(() => this.#standing.checkout(position, anew));
    return row === undefined ? this.checkpoint() : this.#tree.view(row.id);
  }

  /** The framework has deleted its states. */
  forgetStates(): void {
    this.#deps.assertOpen();
    const { thread } = this.#tree;
    if (thread !== undefined) this.#deps.catalog.forgetStates(thread.id);
  }

  /**
   * For adapters, before a tool: as `align`, and marks the tool as running, so that a rewind from outside waits for its end. Looks at the files before the
   * first tool behind a gate that left it to that: what changed until then, also while a person was asked, is not the agent's.
   * @param boundaries the framework's messages before the reply whose tool this is, newest first
   * @param entry.endable the tool runs an agent of its own: a rewind ends it by the result's `signal` instead of waiting for it
   * @returns what to call when the tool has ended, with `run` for the tool itself; undefined when the conversation was rewound and the tool must not run
   * @throws PAIR_DIVERGED
   */
  async enterTool(boundaries: Iterable<Boundary>, options: AlignOptions = {}): Promise<RunningTool | undefined> {
    return this.#deps.coordinator.exclusive(() => this.#standing.enterTool(boundaries, options));
  }

  /**
   * For adapters whose framework keeps results: those of these calls come from this process, so that what they did is there, also where the environment has ended with
   * an earlier owner and began again before what other calls of the same reply did.
   */
  runsAgain(calls: readonly string[]): void {
    this.#standing.runsAgain(calls);
  }

  /** For adapters: whether the environment has ended with an earlier owner, and its conversation may know of more than is there. */
  get lacks(): boolean {
    this.#deps.assertOpen();
    return (this.#tree.thread?.gone ?? null) !== null;
  }

  /** For adapters: whether `rewind` by the agent would be refused now, and why. */
  admissible(to: string, lesson: string | LessonParts): RewindError | undefined {
    try {
      requireRecording(this.#deps);
      const { thread } = this.#tree;
      const target = requireCheckpoint(this.#deps, thread, to);
      cleanLesson(lesson);
      requireBudget(this.#deps, thread as ThreadRow, target);
      requireDecision(this.#deps, target, "both");
      requireRestorable(this.#deps, target, "both");
      requireOwnTimeline(this.#deps, thread as ThreadRow, target, "both");
      requireCrossable(this.#deps, thread as ThreadRow, target);
      return undefined;
    } catch (error) {
      if (isRewindError(error)) return error;
      throw error;
    }
  }
}

function unknownThread(name: string): RewindError {
  return new RewindError("NO_THREAD", `There is no thread "${name}" in this workspace.`, {
    hint: "List the checkpoints to see the threads, or make a checkpoint first.",
  });
}
