// Where does the framework's own state stand? Its context decides, and the environment follows (invariant 9).
import { RewindError } from "../errors.ts";
import type { CheckpointRow, RewindRow, ThreadRow } from "../store/rows.ts";
import type { Aligned, Boundary } from "./alignment.ts";
import type { SessionDeps } from "./deps.ts";
import { requireThere, requireTogether } from "./gone.ts";
import { hasTools } from "./move.ts";
import { deliver, isTakenOver, undelivered } from "./pending.ts";
import { replyName } from "./places.ts";
import type { RewindResult } from "./types.ts";
import { checkpointId, parseCheckpointId } from "./views.ts";

export interface AlignActions {
  /** @param scope "context": the files are where they belong already */
  move(target: CheckpointRow, scope: "both" | "context"): Promise<void>;
  result(row: RewindRow): Promise<RewindResult>;
  /** Whether the files differ from those at the moment in which the checkpoint's tools could begin. */
  changedSince(row: CheckpointRow): Promise<boolean>;
}

/**
 * @param run.at where the framework is: before a model call, or before the tools of the reply to the newest boundary
 * @param run.placed the files are where the framework stands: the conversation's head alone follows
 * @param run.travel whoever began it named the state: a later act than the rewinds that wait
 */
export async function alignThread(
  deps: SessionDeps,
  thread: ThreadRow,
  boundaries: Iterable<Boundary>,
  { at, placed, travel }: { readonly at: "model" | "tools"; readonly placed: boolean; readonly travel: boolean },
  actions: AlignActions,
): Promise<Aligned> {
  const { catalog } = deps;
  const { known, results, behind, justReturned } = knownOf(deps, thread, boundaries);
  if (known === undefined) return { status: "new", epoch: catalog.epoch() };

  const pending = undelivered(deps, thread);
  if (pending.length > 0) {
    const stoodAt = new Set(pending.map((row) => standing(deps, row.head_before)?.id));
    const shown = justReturned && pending.some((row) => row.target === known?.id);
    const passed = travel || shown || isTakenOver(deps, pending, thread.head);
    if (stoodAt.has(known.id) || !passed) return deliver(deps, pending, actions.result);
  }
  catalog.markDelivered(thread.id);

  const checkpoint = checkpointId(known);
  if (known.id === thread.head || known.id === standing(deps, thread.head)?.id) {
    if (!placed) requireTogether(deps, thread);
    requireThere(deps, thread, results);
    // Right behind a rewind no tool has run yet, and what it kept of somebody else's must stay.
    const wentBack =
      deps.observer === undefined &&
      at === "model" &&
      !placed &&
      behind === 0 &&
      !justReturned &&
      known.id === thread.head &&
      hasTools(known);
    if (!wentBack || !(await actions.changedSince(known))) {
      return { status: "current", checkpoint, epoch: catalog.epoch() };
    }
  } else if (results.length > 0 && !placed && deps.observer === undefined) throw diverged(deps, known, thread);
  await actions.move(known, placed ? "context" : "both");
  return { status: "moved", checkpoint, epoch: catalog.epoch(), begins: "unseen" };
}

interface Known {
  /** The newest checkpoint that the messages tell of. */
  readonly known: CheckpointRow | undefined;
  /** What is behind it: results of tools, and how many boundaries. */
  readonly results: readonly Boundary[];
  readonly behind: number;
  /** A rewind put the newest message there, and nothing came behind it that is known. */
  readonly justReturned: boolean;
}

function knownOf(deps: SessionDeps, thread: ThreadRow, boundaries: Iterable<Boundary>): Known {
  const { catalog } = deps;
  const results: Boundary[] = [];
  let behind = 0;
  for (const boundary of boundaries) {
    const decided = catalog.checkpointByAnchor(thread.id, boundary.anchor);
    if (decided !== undefined) return { known: decided, results, behind, justReturned: false };
    const replied = catalog.stateNamed(thread.id, replyName(boundary.anchor));
    if (replied !== undefined) return { known: replied, results, behind: behind + 1, justReturned: false };
    const returned = returnedTo(deps, thread, boundary);
    if (returned !== undefined) return { known: returned, results, behind, justReturned: true };
    if (boundary.tool) results.push(boundary);
    behind++;
  }
  return { known: undefined, results, behind, justReturned: false };
}

/** Of tools, behind the head, where the messages stand there. */
export function resultsSince(
  deps: SessionDeps,
  thread: ThreadRow,
  boundaries: Iterable<Boundary>,
): readonly Boundary[] {
  const { known, results } = knownOf(deps, thread, boundaries);
  const isHead = known !== undefined && (known.id === thread.head || known.id === standing(deps, thread.head)?.id);
  return isHead ? results : [];
}

function returnedTo(deps: SessionDeps, thread: ThreadRow, boundary: Boundary): CheckpointRow | undefined {
  if (boundary.returnedTo === undefined) return undefined;
  return deps.catalog.checkpointBySeq(thread.id, parseCheckpointId(boundary.returnedTo).seq);
}

/** Where a framework is whose thread's head is `head`: explicit and safety checkpoints have no message of their own. */
function standing(deps: SessionDeps, head: number | null): CheckpointRow | undefined {
  return deps.catalog.lineage(head).find((row) => row.anchor !== null);
}

function diverged(deps: SessionDeps, known: CheckpointRow, thread: ThreadRow): RewindError {
  const head = thread.head === null ? undefined : deps.catalog.checkpoint(thread.head);
  const conversation = checkpointId(known);
  const environment = head === undefined ? null : checkpointId(head);
  return new RewindError(
    "PAIR_DIVERGED",
    `The conversation went on with tools from ${conversation}, but the environment is at ${environment ?? "no checkpoint"}.`,
    {
      hint: `Rewind the thread to ${conversation}, or continue the conversation of ${environment ?? "a checkpoint"}.`,
      details: { conversation, environment },
    },
  );
}
