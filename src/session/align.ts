// Where does the framework's own state stand? Its context decides, and the environment follows (invariant 9).
import { RewindError } from "../errors.ts";
import type { CheckpointRow, RewindRow, ThreadRow } from "../store/catalog.ts";
import type { SessionDeps } from "./deps.ts";
import type { RewindResult } from "./types.ts";
import { checkpointId } from "./views.ts";

/** One message of the framework's state, as a possible boundary. */
export interface Boundary {
  readonly anchor: string;
  /** It is the result of a tool: the environment may have changed before it. */
  readonly tool: boolean;
}

export type Alignment =
  /** Nothing of this conversation is known: it begins here. */
  | { readonly status: "new" }
  /** The framework stands at the head, or went on from it. */
  | { readonly status: "current"; readonly checkpoint: string }
  /** The framework stood elsewhere; the environment was brought there. */
  | { readonly status: "moved"; readonly checkpoint: string }
  /** A rewind from outside is not yet in the framework's state: it must take over this context. */
  | { readonly status: "deliver"; readonly result: RewindResult };

export interface AlignActions {
  move(target: CheckpointRow): Promise<void>;
  result(row: RewindRow): Promise<RewindResult>;
}

export async function alignThread(
  deps: SessionDeps,
  thread: ThreadRow,
  boundaries: readonly Boundary[],
  actions: AlignActions,
): Promise<Alignment> {
  const { catalog } = deps;
  let known: CheckpointRow | undefined;
  let toolsSince = false;
  for (const boundary of boundaries) {
    known = catalog.checkpointByAnchor(thread.id, boundary.anchor);
    if (known !== undefined) break;
    toolsSince ||= boundary.tool;
  }
  if (known === undefined) return { status: "new" };

  const outside = catalog.rewinds(thread.id).filter((row) => row.delivered === 0);
  const last = outside.at(-1);
  if (last !== undefined) {
    const stoodAt = new Set(
      outside.flatMap((row) =>
        catalog
          .lineage(row.head_before)
          .slice(0, 1)
          .map((one) => one.id),
      ),
    );
    if (stoodAt.has(known.id) && (known.id !== thread.head || last.scope === "environment")) {
      return { status: "deliver", result: await actions.result(last) };
    }
    catalog.markDelivered(thread.id);
  }
  if (known.id === thread.head) return { status: "current", checkpoint: checkpointId(known) };
  if (toolsSince) {
    const head = thread.head === null ? undefined : catalog.checkpoint(thread.head);
    throw new RewindError(
      "PAIR_DIVERGED",
      `The conversation went on with tools from ${checkpointId(known)}, but the environment is at ${head === undefined ? "no checkpoint" : checkpointId(head)}.`,
      {
        hint: `Rewind the thread to ${checkpointId(known)}, or continue the conversation of ${head === undefined ? "a checkpoint" : checkpointId(head)}.`,
        details: { conversation: checkpointId(known), environment: head === undefined ? null : checkpointId(head) },
      },
    );
  }
  await actions.move(known);
  return { status: "moved", checkpoint: checkpointId(known) };
}
