// Which rewinds are refused, and what to do instead.
import type { FileChanges } from "../environment/environment.ts";
import { RewindError } from "../errors.ts";
import type { CheckpointRow, ThreadRow } from "../store/rows.ts";
import { compareContexts } from "./compare.ts";
import type { SessionDeps } from "./deps.ts";
import { lineBetween } from "./move.ts";
import { covers } from "./paths.ts";
import { changedPaths } from "./texts.ts";
import { checkpointTool, listCheckpointsTool, rewindTool } from "./tools.ts";
import type { Activity, Scope } from "./types.ts";
import { branchId, checkpointId, parseCheckpointId } from "./views.ts";

const shownIds = 12;
const ownTools: ReadonlySet<string> = new Set([rewindTool.name, listCheckpointsTool.name, checkpointTool.name]);

/** @throws UNKNOWN_CHECKPOINT, BAD_CHECKPOINT */
export function requireCheckpoint(deps: SessionDeps, thread: ThreadRow | undefined, id: string): CheckpointRow {
  const { branch, seq } = parseCheckpointId(id);
  const row = thread && findCheckpoint(deps, thread, branch, seq);
  if (row !== undefined) return row;
  const gone = branch === null && thread !== undefined && seq < thread.next_seq;
  const asked = branch === null ? `c${seq}` : `${branchId(branch)}/c${seq}`;
  const known = thread === undefined ? [] : deps.catalog.lineage(thread.head).slice(0, shownIds).map(checkpointId);
  throw new RewindError(
    "UNKNOWN_CHECKPOINT",
    gone ? `${asked} is not in this thread any more.` : `There is no checkpoint ${asked} in this thread.`,
    {
      hint: known.length === 0 ? "There are none yet." : `Use one of ${known.join(", ")}, or list the checkpoints.`,
      details: { asked, known },
    },
  );
}

const findCheckpoint = (
  { catalog }: SessionDeps,
  thread: ThreadRow,
  branch: number | null,
  seq: number,
): CheckpointRow | undefined =>
  branch === null ? catalog.checkpointBySeq(thread.id, seq) : catalog.checkpointOfBranch(thread.id, branch, seq);

/** @throws NOT_RESTORABLE, which names the nearest ones that can be */
export function requireRestorable(deps: SessionDeps, target: CheckpointRow, scope: Scope): void {
  if (scope === "context" || target.state !== "not-restorable") return;
  const { catalog } = deps;
  const isOne = (row: CheckpointRow): boolean => row.state !== "not-restorable" && row.kind !== "step";
  const before = catalog.lineage(target.parent).find((row) => row.state !== "not-restorable");
  const head = catalog.headOf(target.thread) ?? null;
  const behind = catalog.isAncestor(target.id, head) ? lineBetween(deps, target.id, head).find(isOne) : undefined;
  const names = [
    ...(before === undefined ? [] : [`${checkpointId(before)} before it`]),
    ...(behind === undefined ? [] : [`${checkpointId(behind)} after it`]),
  ];
  const nearest = [before, behind].flatMap((row) => (row === undefined ? [] : [checkpointId(row)]));
  throw new RewindError(
    "NOT_RESTORABLE",
    `${checkpointId(target)} cannot be restored: ${target.reason ?? "its files were not captured"}.`,
    {
      hint:
        names.length === 0
          ? "No checkpoint on this line can be restored; `thread.checkpoint()` makes one of the present state."
          : names.length === 1
            ? `The nearest one ${before === undefined ? "after" : "before"} it is ${nearest[0]}.`
            : `The nearest ones are ${names.join(" and ")}.`,
      ...(names.length === 0
        ? {
            modelHint:
              "No checkpoint on this line can be restored. Go on from here, and mend what is wrong with ordinary steps.",
          }
        : {}),
      details: {
        checkpoint: checkpointId(target),
        nearest: before === undefined ? null : checkpointId(before),
        after: behind === undefined ? null : checkpointId(behind),
      },
    },
  );
}

/** Between two decisions there is no conversation to go on from. @throws BAD_ARGUMENT */
export function requireDecision(deps: SessionDeps, target: CheckpointRow, scope: Scope): void {
  if (target.kind !== "step" || scope === "environment") return;
  const before = deps.catalog.lineage(target.parent).find((row) => row.kind !== "step");
  const id = checkpointId(target);
  throw new RewindError("BAD_ARGUMENT", `${id} lies between two decisions and holds the files alone.`, {
    hint: `Take the files alone back to ${id} (scope "environment")${before === undefined ? "" : `, or both halves to ${checkpointId(before)}`}.`,
    modelHint:
      before === undefined ? "Choose a later checkpoint." : `Choose ${checkpointId(before)}, the decision before it.`,
    details: { checkpoint: id, before: before === undefined ? null : checkpointId(before) },
  });
}

/** What the agent itself may not do. @throws BUDGET_SPENT, NOTHING_TO_REWIND */
export function requireBudget(deps: SessionDeps, thread: ThreadRow, target: CheckpointRow): void {
  const { catalog, budget } = deps;
  const own = catalog.rewinds(thread.id).filter((row) => row.requested_by === "agent" && row.kind === "rewind");
  if (own.length >= budget.rewinds) {
    throw new RewindError("BUDGET_SPENT", `All ${budget.rewinds} rewinds of this thread are used.`, {
      hint: "Go on from here: repair what is wrong with ordinary steps, or say in your answer what could not be done.",
      details: { rewinds: own.length },
    });
  }
  const moment = sameMoment(deps, target);
  const returns = own.filter(
    (row) => row.target !== null && sameMoment(deps, catalog.checkpoint(row.target) as CheckpointRow) === moment,
  ).length;
  if (returns >= budget.perCheckpoint) {
    const id = checkpointId(target);
    throw new RewindError("BUDGET_SPENT", `You have returned to ${id} ${budget.perCheckpoint} times already.`, {
      hint: `Go on from here, or rewind to a checkpoint before ${id} if the mistake lies there.`,
      details: { checkpoint: id },
    });
  }
  const since = lineBetween(deps, target.id, thread.head);
  const elsewhere = !catalog.lineage(thread.head).some((row) => row.id === target.id);
  if (!elsewhere && since.every(isIdle)) {
    const id = checkpointId(target);
    throw new RewindError("NOTHING_TO_REWIND", `You are already at ${id}: nothing has been done since.`, {
      hint: "Go on with the task from here.",
      details: { checkpoint: id },
    });
  }
}

/** Another thread's turns in the same environment are not this thread's to undo. @throws SHARED_ENVIRONMENT */
export function requireOwnTimeline(
  deps: SessionDeps,
  thread: ThreadRow,
  target: CheckpointRow,
  scope: Scope,
  paths: readonly string[] | null = null,
): void {
  if (scope === "context") return;
  const { catalog } = deps;
  const kept = new Set(catalog.lineage(target.id, "timeline").map((row) => row.id));
  // What it adopted was made in another thread and is its own all the same.
  const own = new Set(catalog.lineage(thread.head).map((row) => row.id));
  const isForeign = (row: CheckpointRow): boolean =>
    !kept.has(row.id) && !isOwn(row, thread) && !own.has(row.id) && touches(row, paths);
  const timeline = catalog.lineage(catalog.timelineHead(), "timeline");
  const foreign = timeline.filter(isForeign);
  if (foreign.length === 0) return;
  const names = [...new Set(foreign.map((row) => row.thread_name))];
  throw new RewindError(
    "SHARED_ENVIRONMENT",
    `Rewinding to ${checkpointId(target)} would take back work of ${names.map((name) => `"${name}"`).join(", ")} in the same workspace.`,
    {
      hint: 'Rewind the conversation alone (scope "context"), or give each thread a workspace of its own.',
      modelHint: goOn(
        timeline
          .slice(0, timeline.findIndex(isForeign))
          .filter((row) => row.thread === thread.id && row.kind === "turn" && row.state !== "not-restorable")
          .at(-1),
      ),
      details: { threads: names, checkpoints: foreign.map((row) => `${row.thread_name}/${checkpointId(row)}`) },
    },
  );
}

/** @param earliest to which the model can return all the same */
const goOn = (earliest: CheckpointRow | undefined): string =>
  earliest === undefined
    ? "Go on from here, and mend what is wrong with ordinary steps."
    : `The earliest checkpoint that you can return to is ${checkpointId(earliest)}.`;

/** What ran inside of a thread's turns belongs to them (`t/researcher` to `t`); a step is nobody's. */
const isOwn = (row: CheckpointRow, thread: ThreadRow): boolean =>
  row.thread === thread.id || row.thread_name.startsWith(`${thread.name}/`) || row.kind === "step";

function touches({ changes }: CheckpointRow, paths: readonly string[] | null): boolean {
  if (paths === null || changes === null) return true;
  return changedPaths(JSON.parse(changes) as FileChanges).some((path) => covers(paths, path));
}

/**
 * A conversation that an adapter takes over must be one that it can put back whole: found out before anything moves.
 * @throws NOT_ATTACHED
 */
export function requireChannels(
  { catalog, objects, restoresChannels }: SessionDeps,
  thread: ThreadRow,
  target: CheckpointRow,
): void {
  const head = thread.head === null ? undefined : catalog.checkpoint(thread.head);
  if (head === undefined || restoresChannels.get(thread.name)?.() !== false) return;
  const { channels } = compareContexts(objects, head.context, target.context);
  if (channels.length === 0) return;
  throw new RewindError(
    "NOT_ATTACHED",
    `The state ${channels.map((name) => `"${name}"`).join(", ")} differs from ${checkpointId(target)}, and the agent that runs does not know how to put it back. Nothing was changed.`,
    {
      hint: 'Whoever runs this agent: wrap it once, `const agent = rw.attach(createAgent({ …, middleware: [rw] }))`, a graph `rg.attach(graph.compile(…))`. Or rewind the files alone (scope "environment").',
      details: { channels },
    },
  );
}

/** Nothing was done before it since its parent; our own tools do nothing to the task. */
const isIdle = (row: CheckpointRow): boolean =>
  (JSON.parse(row.activity) as Activity).actions.every((action) => ownTools.has(action.tool)) && isEmpty(row.changes);

/** Each return makes a checkpoint of its own: those at which nothing had been done yet are one moment, named by its first. */
function sameMoment(deps: SessionDeps, row: CheckpointRow): number {
  const line = deps.catalog.lineage(row.id);
  return (line.find((one) => !isIdle(one)) ?? (line.at(-1) as CheckpointRow)).id;
}

function isEmpty(changes: string | null): boolean {
  if (changes === null) return true;
  return Object.values(JSON.parse(changes) as Record<string, unknown[]>).every((list) => list.length === 0);
}
