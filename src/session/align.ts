// Where does the framework's own state stand? Its context decides, and the environment follows (invariant 9).
import { RewindError } from "../errors.ts";
import type { CheckpointRow, RewindRow, ThreadRow } from "../store/rows.ts";
import type { SessionDeps } from "./deps.ts";
import type { RewindResult } from "./types.ts";
import { checkpointId, parseCheckpointId } from "./views.ts";

/** One message of the framework's state, as a possible boundary. */
export interface Boundary {
  readonly anchor: string;
  /** It is the result of a tool: the environment may have changed before it. */
  readonly tool: boolean;
  /** On the message that a rewind put there: the checkpoint to which it returned. */
  readonly returnedTo?: string;
}

export type Alignment = {
  /** Of the moment at which this was found out; give it to `beginTurn`. */
  readonly epoch: number;
} & (
  | /** Nothing of this conversation is known: it begins here. */ { readonly status: "new" }
  /** The framework stands at the head, or went on from it. */
  | { readonly status: "current"; readonly checkpoint: string }
  /** The framework stood elsewhere; the environment was brought there. */
  | { readonly status: "moved"; readonly checkpoint: string }
  /**
   * Rewinds from outside are not yet in the framework's state. It takes over the first result's context, unless that moved the files alone, and the
   * message of each, oldest first. They are delivered until its state shows them.
   */
  | { readonly status: "deliver"; readonly results: readonly RewindResult[] }
);

export interface AlignActions {
  move(target: CheckpointRow): Promise<void>;
  result(row: RewindRow): Promise<RewindResult>;
  /** Whether the files differ from those at the moment in which the checkpoint's tools could begin. */
  changedSince(row: CheckpointRow): Promise<boolean>;
}

/** @param at where the framework is: before a model call, or before the tools of the reply to the newest boundary */
export async function alignThread(
  deps: SessionDeps,
  thread: ThreadRow,
  boundaries: Iterable<Boundary>,
  at: "model" | "tools",
  actions: AlignActions,
): Promise<Alignment> {
  const { catalog } = deps;
  let known: CheckpointRow | undefined;
  let toolsSince = false;
  let behind = 0;
  let justReturned = false;
  for (const boundary of boundaries) {
    known = catalog.checkpointByAnchor(thread.id, boundary.anchor);
    if (known !== undefined) break;
    known = returnedTo(deps, thread, boundary);
    justReturned = known !== undefined;
    if (justReturned) break;
    toolsSince ||= boundary.tool;
    behind++;
  }
  if (known === undefined) return { status: "new", epoch: catalog.epoch() };

  const pending = undelivered(catalog.rewinds(thread.id));
  const stoodAt = new Set(pending.map((row) => standing(deps, row.head_before)?.id));
  if (stoodAt.has(known.id)) {
    const from = Math.max(
      0,
      pending.findLastIndex((row) => row.scope !== "environment"),
    );
    const results: RewindResult[] = [];
    for (const row of pending.slice(from)) results.push(await actions.result(row));
    return { status: "deliver", results, epoch: catalog.epoch() };
  }
  catalog.markDelivered(thread.id);

  const checkpoint = checkpointId(known);
  if (known.id === thread.head || known.id === standing(deps, thread.head)?.id) {
    // Right behind a rewind no tool has run yet, and what it kept of somebody else's must stay.
    const wentBack =
      at === "model" && behind === 0 && !justReturned && known.id === thread.head && known.tools === "ran";
    if (!wentBack || !(await actions.changedSince(known))) {
      return { status: "current", checkpoint, epoch: catalog.epoch() };
    }
  } else if (toolsSince) throw diverged(deps, known, thread);
  await actions.move(known);
  return { status: "moved", checkpoint, epoch: catalog.epoch() };
}

function returnedTo(deps: SessionDeps, thread: ThreadRow, boundary: Boundary): CheckpointRow | undefined {
  if (boundary.returnedTo === undefined) return undefined;
  return deps.catalog.checkpointBySeq(thread.id, parseCheckpointId(boundary.returnedTo).seq);
}

/** Where a framework is whose thread's head is `head`: explicit and safety checkpoints have no message of their own. */
function standing(deps: SessionDeps, head: number | null): CheckpointRow | undefined {
  return deps.catalog.lineage(head).find((row) => row.anchor !== null);
}

/** The rewinds from outside that the framework does not know, without those that were undone before it saw them. */
function undelivered(rewinds: readonly RewindRow[]): RewindRow[] {
  const pending: RewindRow[] = [];
  for (const row of rewinds) {
    if (row.delivered !== 0) continue;
    const last = pending.at(-1);
    if (row.kind === "undo" && last !== undefined && last.undone !== 0) pending.pop();
    else pending.push(row);
  }
  return pending;
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
