// Gives up checkpoints by number and age. What something relies on stays: labels, heads, what an undo returns to, where branches part.
import { type Breathe, makeBreather } from "../breathe.ts";
import { RewindError } from "../errors.ts";
import type { Sql } from "../store/database.ts";
import type { Collected } from "../store/gc.ts";
import {
  isRestorable,
  keepForkPoints,
  neededCheckpoints,
  type PruneRow,
  pruneRows,
  removeCheckpoints,
} from "../store/pruning.ts";
import type { SessionDeps } from "./deps.ts";
import { manifestOf } from "./move.ts";

export interface PruneRequest {
  /** Of each thread the newest N that hold their files, and the newest N such on the way to its head. */
  readonly keepLast?: number;
  /** What is not older than this: milliseconds, or a text as "90m", "12h", "7d", "2w". What either rule keeps is kept. */
  readonly keepWithin?: number | string;
  /** Only these threads are pruned. Default: all of the workspace. */
  readonly threads?: readonly string[];
  /** Says what would go, and changes nothing. */
  readonly dryRun?: boolean;
}

export interface PrunedCheckpoints {
  /** What went, oldest first. */
  readonly pruned: readonly { readonly thread: string; readonly id: string }[];
  /** How many checkpoints the workspace still has. */
  readonly kept: number;
}

export interface Pruned extends PrunedCheckpoints {
  /** What the gc behind it gave back; null when another process was at it. */
  readonly gc: Collected | null;
}

const units: Readonly<Record<string, number>> = { s: 1e3, m: 60e3, h: 3_600e3, d: 86_400e3, w: 604_800e3 };

/** @throws BAD_ARGUMENT */
export function parseDuration(given: number | string): number {
  if (typeof given === "number" && given >= 0) return given;
  const match = /^(\d+(?:\.\d+)?)\s*([smhdw])$/.exec(String(given).trim());
  if (match !== null) return Number(match[1]) * (units[match[2] as string] as number);
  throw new RewindError("BAD_ARGUMENT", `"${given}" is not a span of time.`, {
    hint: "Write a number and a unit: 90m, 12h, 7d or 2w.",
  });
}

/** Runs alone (the caller holds the coordinator). @throws BAD_ARGUMENT, NO_THREAD */
export async function pruneCheckpoints(
  deps: SessionDeps,
  sql: Sql,
  environment: string,
  request: PruneRequest,
): Promise<PrunedCheckpoints> {
  const policy = checked(deps, request);
  const breathe = makeBreather();
  const rows = await pruneRows(sql, environment, breathe);
  const kept = neededCheckpoints(sql, environment, rows);
  const chosen = new Set(policy.threads);
  const since = policy.within === undefined ? undefined : new Date(Date.now() - policy.within).toISOString();
  for (const row of rows) {
    if (!chosen.has(row.thread_name) || (since !== undefined && row.created_at >= since)) kept.add(row.id);
  }
  if (policy.last !== undefined) for (const id of newest(deps, rows, chosen, policy.last)) kept.add(id);
  keepForkPoints(rows, kept);
  const going = rows.filter((row) => !kept.has(row.id));
  const gone =
    request.dryRun === true
      ? going
      : await removeCheckpoints(sql, environment, going, breathe, deps.catalog.requireHolder);
  if (gone.length > 0 && request.dryRun !== true) await compareAnew(deps, breathe);
  return {
    pruned: gone.map((row) => ({ thread: row.thread_name, id: `c${row.seq}` })),
    kept: rows.length - gone.length,
  };
}

function checked(
  { catalog }: SessionDeps,
  { keepLast, keepWithin, threads }: PruneRequest,
): { last: number | undefined; within: number | undefined; threads: readonly string[] } {
  if (keepLast === undefined && keepWithin === undefined) {
    throw new RewindError("BAD_ARGUMENT", "Nothing says what is to be kept.", {
      hint: "Give keepLast (--keep-last N), keepWithin (--keep-within 7d), or both.",
    });
  }
  if (keepLast !== undefined && !(Number.isSafeInteger(keepLast) && keepLast >= 0)) {
    throw new RewindError("BAD_ARGUMENT", `keepLast is ${keepLast}.`, { hint: "Give a whole number, 0 or more." });
  }
  const known = catalog.threads().map((row) => row.name);
  const unknown = threads?.find((name) => !known.includes(name));
  if (unknown !== undefined) {
    throw new RewindError("NO_THREAD", `There is no thread "${unknown}" in this workspace.`, {
      hint: "List the checkpoints to see the threads.",
    });
  }
  const within = keepWithin === undefined ? undefined : parseDuration(keepWithin);
  return { last: keepLast, within, threads: threads ?? known };
}

function newest(
  { catalog }: SessionDeps,
  rows: readonly PruneRow[],
  threads: ReadonlySet<string>,
  count: number,
): number[] {
  const byId = new Map(rows.map((row) => [row.id, row]));
  const found: number[] = [];
  for (const thread of catalog.threads().filter(({ name }) => threads.has(name))) {
    const own = rows.filter((row) => row.thread === thread.id && isRestorable(row)).sort((a, b) => b.seq - a.seq);
    found.push(...own.slice(0, count).map((row) => row.id));
    let at = thread.head === null ? undefined : byId.get(thread.head);
    for (let n = 0; n < count && at !== undefined; ) {
      if (isRestorable(at)) {
        found.push(at.id);
        n++;
      }
      at = at.parent === null ? undefined : byId.get(at.parent);
    }
  }
  return found;
}

/** A checkpoint's changes are told against its parent: where that is another one now, they are found out anew. */
async function compareAnew(deps: SessionDeps, breathe: Breathe): Promise<void> {
  const { catalog, environment } = deps;
  for (const row of catalog.hungAnew()) {
    const parent = row.parent === null ? undefined : catalog.checkpoint(row.parent);
    if (parent === undefined || parent.state === "not-restorable") continue;
    try {
      catalog.setChanges(row.id, await environment.diff(manifestOf(parent), manifestOf(row)));
    } catch {
      // They stay untold; what is damaged is for `verify` to say.
    }
    await breathe();
  }
}
