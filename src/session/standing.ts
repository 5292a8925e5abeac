// Where an adapter's framework stands: the environment is brought there before a model call and before a tool, and what tools did behind a killed process is told apart.
import type { RunningTool } from "../coordinator/coordinator.ts";
import { isRewindError, RewindError } from "../errors.ts";
import type { CheckpointRow, RewindRow, ThreadRow } from "../store/rows.ts";
import { requireCheckpoint, requireRestorable } from "./admissible.ts";
import { alignThread, resultsSince } from "./align.ts";
import { alignToStart } from "./align-start.ts";
import type { Aligned, Boundary } from "./alignment.ts";
import type { BegunTools, SessionDeps } from "./deps.ts";
import { beganAgain, goneOf, unaskedCall } from "./gone.ts";
import { hasTools, manifestOf } from "./move.ts";
import { requireOthersKept } from "./others.ts";
import { alignPosition, checkoutPosition, moveInPlace, type Position } from "./places.ts";
import type { Recorder } from "./recorder.ts";
import type { Rewinder } from "./rewinder.ts";
import type { Tree } from "./tree.ts";
import type { Context } from "./types.ts";

export interface AlignOptions {
  /** Where the framework stands among states that it names itself; see `pairState`. It decides where it is known. */
  readonly position?: Position;
  /** An object of the run's own when it goes back to a state: at its first look the files are brought there, also where tools of an earlier run from there left traces. */
  readonly replay?: object | undefined;
  /** Whoever began the run named the state from which it starts: rewinds that wait are passed over, unless that is where they left from. */
  readonly travel?: boolean;
  /** The files are where the framework stands (another thread's `align` saw to it): the conversation's head alone follows. */
  readonly placed?: boolean;
  /** The framework went back to before the conversation's first decision, on purpose: where it shows nothing that is known, the files go to the thread's first decision. */
  readonly startsOver?: boolean;
  /** Files that somebody else changed, where the environment is moved. Default "restore". */
  readonly external?: "keep" | "restore";
  /** For `enterTool`: the reply at the head did not ask for this tool; a node of its own runs it. */
  readonly unasked?: boolean;
  /**
   * For `enterTool`, of adapters that enter every tool, and whose framework runs a tool again that a killed process had begun: whether what ran inside of it goes on
   * from where it was instead. Where not, and no other tool of the reply had ended, the files are brought back to where the tools began.
   */
  readonly goesOn?: () => Promise<boolean>;
  /** For `enterTool`: a rewind ends the tool (`RunningTool.signal`) instead of waiting until it is done. */
  readonly endable?: boolean;
}

interface Parts {
  readonly tree: Tree;
  readonly recorder: Recorder;
  readonly rewinder: Rewinder;
}

/** All of it runs alone (the caller holds the coordinator). */
export class Standing {
  readonly #deps: SessionDeps;
  readonly #name: string;
  readonly #tree: Tree;
  readonly #recorder: Recorder;
  readonly #rewinder: Rewinder;
  readonly #replays = new WeakSet<object>();
  /** Somebody has told where its conversation stands. */
  #isTold = false;

  constructor(deps: SessionDeps, name: string, { tree, recorder, rewinder }: Parts) {
    this.#deps = deps;
    this.#name = name;
    this.#tree = tree;
    this.#recorder = recorder;
    this.#rewinder = rewinder;
  }

  async align(boundaries: Iterable<Boundary>, at: "model" | "tools", options: AlignOptions): Promise<Aligned> {
    const { position, replay, placed = false, travel = false, external = "restore" } = options;
    const { thread } = this.#tree;
    if (thread === undefined) return { status: "new", epoch: this.#deps.catalog.epoch() };
    const admit = (target: CheckpointRow) => requireOthersKept(this.#deps, thread, target);
    const follow = (target: CheckpointRow, scope: "both" | "context" = "both") =>
      this.#rewinder.follow(thread, target, { scope, external });
    const result = (row: RewindRow) => this.#rewinder.result(row);
    const step = () => this.#recorder.step(thread.name);
    const anew = replay !== undefined && !this.#replays.has(replay);
    if (replay !== undefined) this.#replays.add(replay);
    const run = { at, anew, placed, travel };
    const aligned =
      position &&
      (await alignPosition(this.#deps, thread, position, run, {
        ...{ step, admit, move: follow, result },
        results: () => resultsSince(this.#deps, thread, boundaries),
      }));
    if (aligned !== undefined) return this.#told(aligned);
    const move = async (target: CheckpointRow, scope: "both" | "context"): Promise<void> => {
      requireRestorable(this.#deps, target, scope);
      if (scope !== "context") await admit(target);
      await follow(target, scope);
    };
    const compared = await alignThread(this.#deps, thread, boundaries, run, {
      move,
      result,
      changedSince: (row) => this.#changedSince(row),
    });
    if (compared.status !== "new") return this.#told(compared);
    if (options.startsOver === true) return alignToStart(this.#deps, thread, move);
    if (travel && !placed && thread.head !== null && this.#deps.observer === undefined) throw noFilesKept(thread);
    return this.#told(compared);
  }

  #told(aligned: Aligned): Aligned {
    this.#isTold = true;
    return aligned;
  }

  /**
   * Before a turn of whoever does not tell where its conversation stands.
   * @throws PAIR_DIVERGED where that is not at the head, and what tools did behind that is gone
   */
  async requireAtHead(context: Context): Promise<void> {
    const thread = this.#tree.made();
    const gone = goneOf(thread);
    if (gone === undefined || this.#isTold || thread.head === null) return;
    const head = this.#deps.catalog.checkpoint(thread.head) as CheckpointRow;
    // Behind an explicit checkpoint nobody says whether tools ran.
    if (head.kind === "turn" ? !hasTools(head) : gone.found === null) return;
    const { name } = await this.#deps.objects.use(() => this.#recorder.storeContext(thread, context));
    if (name !== head.context) throw beganAgain(this.#deps, thread, gone);
  }

  /** The results of these calls come from this process: what they did is there. */
  runsAgain(calls: readonly string[]): void {
    this.#deps.assertOpen();
    const { thread } = this.#tree;
    if (thread !== undefined && thread.gone !== null) this.#deps.catalog.addAgain(thread.id, calls);
  }

  /** Undefined where no checkpoint has these files yet. @throws NOT_RESTORABLE, SHARED_ENVIRONMENT */
  checkout(position: Position, anew: boolean): Promise<CheckpointRow | undefined> {
    const thread = this.#tree.made();
    return checkoutPosition(this.#deps, thread, position, anew, {
      admit: (target) => requireOthersKept(this.#deps, thread, target),
      move: (target) => this.#rewinder.follow(thread, target),
    });
  }

  async enterTool(boundaries: Iterable<Boundary>, options: AlignOptions): Promise<RunningTool | undefined> {
    const aligned = await this.align(boundaries, "tools", options);
    if (aligned.status === "deliver") return undefined;
    if (aligned.status !== "new" && options.unasked === true) this.#requireBesides();
    const begun = aligned.status === "new" ? undefined : await this.#beginTools(aligned, options);
    const running = this.#deps.coordinator.enterTool({ endable: options.endable === true, thread: this.#name });
    const acts = options.goesOn === undefined ? undefined : this.#tree.thread?.id;
    if (acts === undefined) return running;
    this.#deps.catalog.setActed(acts, true);
    const leave = (): void => {
      running();
      if (begun !== undefined) this.#toolEnded(begun);
      this.#noteActed(acts);
    };
    return Object.assign(leave, { run: running.run, signal: running.signal });
  }

  /** Notes that tools run behind the head; undefined where that is not followed. */
  async #beginTools(
    aligned: Aligned & { readonly checkpoint: string },
    { unasked = false, placed = false, goesOn }: AlignOptions,
  ): Promise<BegunTools | undefined> {
    const { catalog, toolsBegun } = this.#deps;
    const thread = this.#tree.made();
    const row = requireCheckpoint(this.#deps, thread, aligned.checkpoint);
    const first = row.tools === "waiting" || (unasked && row.tools === "none");
    if (row.id !== thread.head || (row.tools === "none" && !unasked)) return undefined;
    if (goesOn === undefined) {
      if (first) await this.#recorder.look(row, "ran");
      return undefined;
    }
    const known = toolsBegun.get(thread.id);
    const begun: BegunTools = { checkpoint: row.id, ended: false };
    const begins = first ? (aligned.begins ?? "unseen") : aligned.begins;
    if (begins === "captured") catalog.markTools(row.id, "running", manifestOf(row));
    else if (begins === "unseen") await this.#recorder.look(row, "running");
    else if (row.tools === "running" && known?.checkpoint !== row.id) {
      // Another process died inside of its tools.
      if (await goesOn()) {
        const gone = goneOf(thread);
        if (gone !== undefined) throw beganAgain(this.#deps, thread, gone);
        catalog.toolEnded(row.id);
        return undefined;
      }
      if (!placed && (await this.#changedSince(row))) {
        await moveInPlace(this.#deps, thread, () => this.#rewinder.follow(thread, row, { external: "keep" }));
      }
      await this.#recorder.look(row, "running");
    } else return known?.checkpoint === row.id ? known : undefined;
    toolsBegun.set(thread.id, begun);
    return begun;
  }

  /** A node that no reply asked for runs; what others did that ran beside it may be known to the framework already. @throws PAIR_DIVERGED */
  #requireBesides(): void {
    const thread = this.#tree.made();
    const gone = goneOf(thread);
    if (gone === undefined || thread.head === null) return;
    const hadEnded = this.#deps.catalog.checkpoint(thread.head)?.tools === "ran";
    if (hadEnded && !gone.again.includes(unaskedCall)) throw beganAgain(this.#deps, thread, gone);
    this.#deps.catalog.addAgain(thread.id, [unaskedCall]);
  }

  #noteActed(thread: number): void {
    const { assertOpen, catalog, coordinator } = this.#deps;
    const note = (): void => {
      try {
        assertOpen();
        catalog.setActed(thread, true);
      } catch (error) {
        // Whoever holds the workspace by now knows nothing of this tool.
        if (!isRewindError(error, "CLOSED") && !isRewindError(error, "HOLDER_CHANGED")) throw error;
      }
    };
    note();
    // A pair of another thread that is being captured may have come too early for what the tool did.
    if (coordinator.isBusy()) void coordinator.exclusive(async () => note()).catch(() => {});
  }

  #toolEnded(begun: BegunTools): void {
    if (begun.ended) return;
    begun.ended = true;
    try {
      this.#deps.assertOpen();
      this.#deps.catalog.toolEnded(begun.checkpoint);
    } catch (error) {
      // Whoever holds the workspace by now knows nothing of this tool.
      if (!isRewindError(error, "CLOSED") && !isRewindError(error, "HOLDER_CHANGED")) throw error;
    }
  }

  /** Whether the files differ from those at the moment in which the checkpoint's tools could begin. */
  async #changedSince(row: CheckpointRow): Promise<boolean> {
    const { manifest } = await this.#deps.environment.capture().captured;
    return manifest.files !== row.tools_files || manifest.processes !== row.tools_processes;
  }
}

/** Where somebody names a state, its files are part of it. */
const noFilesKept = ({ name }: ThreadRow): RewindError =>
  new RewindError("NOT_RESTORABLE", `No files are kept for the state of thread "${name}" from which this run starts.`, {
    hint: "They were pruned, or never captured. Go on from a newer state, or begin a new thread.",
  });
