// What tools did behind the newest pair goes with the killed owner of an environment that ends with it: who still knows of it is found out at the next open, and is not
// gone on with unasked (F-75, invariant 9).
import { isRewindError, RewindError } from "../errors.ts";
import type { CheckpointRow, Gone, Place, ThreadRow } from "../store/rows.ts";
import type { Boundary } from "./alignment.ts";
import { requireCrossable } from "./crossed.ts";
import type { SessionDeps } from "./deps.ts";
import { decision } from "./pending.ts";
import { checkpointId } from "./views.ts";

/** In `Gone.again`, of a node that no reply asked for. */
export const unaskedCall = "unasked";

export const goneOf = ({ gone }: ThreadRow): Gone | undefined =>
  gone === null ? undefined : (JSON.parse(gone) as Gone);

/** The pair with which an environment that ended with its owner begins again: of the state that it was last in, or the nearest one before it that can be brought back. */
export const newestPair = ({ catalog }: Pick<SessionDeps, "catalog">): CheckpointRow | undefined =>
  catalog.lineage(catalog.timelineHead(), "timeline").find(({ state }) => state !== "not-restorable");

/**
 * The environment began again at `newest`. Recorded results of tools behind it count as not there, and threads whose conversations can know of more are marked.
 * @param found of the files as they were left
 */
export function markGone(deps: SessionDeps, newest: CheckpointRow, found: CheckpointRow | undefined): void {
  const { catalog } = deps;
  const line = catalog.lineage(catalog.timelineHead(), "timeline").map((row) => row.id);
  const behind = line.slice(0, line.indexOf(newest.id) + 1);
  const ahead = catalog.threads().filter((thread) => isAhead(deps, thread, newest, new Set(behind)));
  catalog.markGone(
    behind,
    ahead.map((thread) => ({
      thread: thread.id,
      gone: { checkpoint: newest.id, found: foundFor(thread, newest, found), again: [] },
      place: placeWithout(thread),
    })),
  );
}

function isAhead(deps: SessionDeps, thread: ThreadRow, newest: CheckpointRow, behind: ReadonlySet<number>): boolean {
  const { head, acted } = thread;
  if (head === null) return false;
  if (head !== newest.id && behind.has(head)) return true;
  if (acted !== null) return behind.has(acted);
  // Nobody tells when its tools run.
  const tools = decision(deps, head)?.tools;
  return tools !== "none" && tools !== "waiting";
}

/** The files that the thread's conversation knows of: an owner that was killed before it had all of them again may have left others. */
function foundFor(thread: ThreadRow, newest: CheckpointRow, found: CheckpointRow | undefined): number | null {
  const before = goneOf(thread);
  if (before === undefined) return found?.id ?? null;
  return before.checkpoint === newest.id && before.again.length === 0 ? before.found : null;
}

/** States that tools led to, and that wait for their files, get none. */
function placeWithout(thread: ThreadRow): Place | null {
  const place = thread.place === null ? null : (JSON.parse(thread.place) as Place);
  if (place === null || !place.touched) return null;
  return { ...place, waiting: [], gone: [...new Set([...(place.gone ?? []), ...place.waiting])] };
}

/**
 * @param results of tools, in what is known of the conversation behind its head
 * @throws PAIR_DIVERGED
 */
export function requireThere(deps: SessionDeps, thread: ThreadRow, results: readonly Boundary[]): void {
  const gone = goneOf(thread);
  if (gone === undefined) return;
  if (!results.every(({ call }) => call !== undefined && gone.again.includes(call)))
    throw beganAgain(deps, thread, gone);
}

/** @throws PAIR_DIVERGED where the head itself lies behind what the environment began again with */
export function requireTogether(deps: SessionDeps, thread: ThreadRow): void {
  const gone = goneOf(thread);
  const head = thread.head === null ? undefined : deps.catalog.checkpoint(thread.head);
  if (gone !== undefined && head?.state === "not-restorable") throw beganAgain(deps, thread, gone);
}

/** The environment is not, and cannot be brought, where this conversation stands. */
export function beganAgain(deps: SessionDeps, thread: ThreadRow, gone: Gone): RewindError {
  const { catalog } = deps;
  const head = catalog.checkpoint(thread.head as number) as CheckpointRow;
  const stands = catalog.checkpoint(gone.checkpoint);
  const found = gone.found === null ? undefined : catalog.checkpoint(gone.found);
  const conversation = checkpointId(head);
  const isOwn = stands?.thread === thread.id && catalog.isAncestor(stands.id, head.id);
  const environment = stands === undefined ? null : checkpointId(stands);
  const where = isOwn ? environment : environment && `${environment} of thread "${stands?.thread_name}"`;
  const ownBefore = (): CheckpointRow | undefined => catalog.lineage(head.id).find((row) => row.id < gone.checkpoint);
  const target = isOwn ? stands : ownBefore();
  const files = found?.thread === thread.id ? checkpointId(found) : null;
  return new RewindError(
    "PAIR_DIVERGED",
    `The conversation went on from ${conversation}, but what was done since ${isOwn && environment !== conversation ? environment : "then"} was not captured: the environment ended with its process, and began again at ${where ?? "an older checkpoint"}.`,
    {
      hint: `${wayBack(deps, thread, target, !isOwn)} ${files === null ? "" : `To go on with the conversation on the files as they were left, without their processes, rewind to ${files} with scope "environment". `}To go on with it on what is there now, make a checkpoint.`,
      details: { conversation, environment: isOwn ? environment : null, files },
    },
  );
}

function wayBack(
  deps: SessionDeps,
  thread: ThreadRow,
  target: CheckpointRow | undefined,
  contextAlone: boolean,
): string {
  if (target === undefined) return "Begin a new thread.";
  const how = [contextAlone ? 'with scope "context"' : "", crosses(deps, thread, target) ? "with `crossEffects`" : ""];
  const words = how.filter((text) => text !== "").join(" and ");
  return `Rewind the thread to ${checkpointId(target)}${words === "" ? "" : `, ${words}`}: it is told what was done in the world.`;
}

function crosses(deps: SessionDeps, thread: ThreadRow, target: CheckpointRow): boolean {
  try {
    requireCrossable(deps, thread, target);
    return false;
  } catch (error) {
    if (isRewindError(error, "EFFECT_CROSSED")) return true;
    throw error;
  }
}

/** The framework stands at a state whose files are gone. */
export function noFiles(deps: SessionDeps, thread: ThreadRow): RewindError {
  const gone = goneOf(thread);
  if (gone !== undefined) return beganAgain(deps, thread, gone);
  return new RewindError(
    "NOT_RESTORABLE",
    "The files of this state were not captured: the environment ended with its process.",
    {
      hint: "Go on from another state.",
    },
  );
}

/** Somebody chose files with which the conversation goes on: states of its framework whose files are gone have these. */
export function giveFiles({ catalog }: SessionDeps, thread: number, row: CheckpointRow): void {
  const place = catalog.place(thread);
  if (place?.gone === undefined) return;
  for (const name of place.gone) catalog.nameState(thread, name, row.id);
  catalog.setPlace(thread, { ...place, gone: undefined });
}
