// The rows of checkpoints that are given up: which must stay, and how the tree closes over those that go (F-37).
import type { Breathe } from "../breathe.ts";
import { asWriteFailure } from "../errors.ts";
import { fault } from "../faults.ts";
import type { Sql } from "./database.ts";
import type { RequireHolder } from "./holder.ts";

export interface PruneRow {
  readonly id: number;
  readonly thread: number;
  readonly thread_name: string;
  readonly seq: number;
  readonly parent: number | null;
  readonly label: string | null;
  readonly anchor: string | null;
  readonly state: string;
  readonly created_at: string;
}

const rowsPerSlice = 100;
const rowsPerRead = 500;

/** The environment's checkpoints in the order of making; a parent stands before its children. */
export async function pruneRows(sql: Sql, environment: string, breathe: Breathe): Promise<PruneRow[]> {
  const next = sql.prepare(
    `SELECT c.id, c.thread, t.name AS thread_name, c.seq, c.parent, c.label, c.anchor, c.state, c.created_at
     FROM checkpoint c JOIN thread t ON t.id = c.thread WHERE t.environment = ? AND c.id > ? ORDER BY c.id LIMIT ${rowsPerRead}`,
  );
  const rows: PruneRow[] = [];
  for (;;) {
    const more = next.all(environment, rows.at(-1)?.id ?? 0) as PruneRow[];
    rows.push(...more);
    if (more.length < rowsPerRead) return rows;
    await breathe();
  }
}

/** Checkpoints that something relies on, whatever the policy says. */
export function neededCheckpoints(sql: Sql, environment: string, rows: readonly PruneRow[]): Set<number> {
  const ids = (text: string, ...values: unknown[]): number[] =>
    sql
      .prepare(text)
      .pluck()
      .all(...values) as number[];
  const byId = new Map(rows.map((row) => [row.id, row]));
  const heads = ids("SELECT head FROM thread WHERE environment = ? AND head IS NOT NULL", environment);
  const pending = sql
    .prepare(
      `SELECT r.left_at, r.target, r.head_before FROM rewind r JOIN thread t ON t.id = r.thread WHERE t.environment = ?
       AND (r.delivered = 0 OR r.id = (SELECT max(id) FROM rewind WHERE thread = r.thread))`,
    )
    .all(environment) as { left_at: number | null; target: number | null; head_before: number | null }[];
  const intents = ids("SELECT payload FROM intent WHERE environment = ? AND state = 'open'", environment).map(
    (payload) => JSON.parse(String(payload)) as { target?: number; left?: number; headBefore?: number | null },
  );
  const nearest = (from: number | null | undefined, suits: (row: PruneRow) => boolean): number | undefined => {
    let row = from === null || from === undefined ? undefined : byId.get(from);
    while (row !== undefined && !suits(row)) row = row.parent === null ? undefined : byId.get(row.parent);
    return row?.id;
  };
  // Where a framework stands: its own message names the nearest checkpoint that has one.
  const standing = (from: number | null | undefined) => nearest(from, (row) => row.anchor !== null);
  const needed = [
    ...heads,
    ...heads.map(standing),
    ...heads.map((head) => nearest(head, isRestorable)),
    ...ids("SELECT head FROM environment WHERE id = ? AND head IS NOT NULL", environment),
    ...ids("SELECT forked_from FROM thread WHERE forked_from IS NOT NULL"),
    ...ids("SELECT checkpoint FROM branch"),
    // What an undo returns to.
    ...ids(
      `SELECT left_at FROM rewind WHERE left_at IS NOT NULL AND id IN (
         SELECT max(r.id) FROM rewind r JOIN thread t ON t.id = r.thread
         WHERE t.environment = ? AND r.kind = 'rewind' AND r.undone = 0 GROUP BY r.thread)`,
      environment,
    ),
    ...pending.flatMap((row) => [row.left_at, row.target, row.head_before, standing(row.head_before)]),
    ...intents.flatMap((one) => [one.target, one.left, one.headBefore, standing(one.headBefore)]),
    ...rows.filter((row) => row.label !== null).map((row) => row.id),
    // SQLite gives the number of the last row again when that row goes.
    ...ids("SELECT max(id) FROM checkpoint"),
  ];
  return new Set(needed.filter((id): id is number => id !== null && id !== undefined));
}

export const isRestorable = ({ state }: Pick<PruneRow, "state">): boolean => state !== "not-restorable";

/** Adds the points where lines that are kept part. */
export function keepForkPoints(rows: readonly PruneRow[], kept: Set<number>): void {
  const lines = new Map<number, number>();
  for (const row of [...rows].reverse()) {
    const below = lines.get(row.id) ?? 0;
    if (below > 1) kept.add(row.id);
    if ((below > 0 || kept.has(row.id)) && row.parent !== null) lines.set(row.parent, (lines.get(row.parent) ?? 0) + 1);
  }
}

interface Going {
  readonly parent: number | null;
  readonly timeline: number | null;
  readonly tools: string;
  readonly pruned: number;
  readonly label: string | null;
  readonly manifest: number | null;
  readonly tools_from: number | null;
  readonly thread: number;
}

/** Takes the rows out, some in each transaction; the tree is whole after each. Returns those that went. @throws DISK_FULL, WRITE_FAILED */
export async function removeCheckpoints<T extends { readonly id: number }>(
  sql: Sql,
  environment: string,
  going: readonly T[],
  breathe: Breathe,
  guard: RequireHolder,
): Promise<T[]> {
  try {
    return await removeSlices(sql, environment, going, breathe, guard);
  } catch (error) {
    throw asWriteFailure(error, "the store's catalog");
  }
}

async function removeSlices<T extends { readonly id: number }>(
  sql: Sql,
  environment: string,
  going: readonly T[],
  breathe: Breathe,
  guard: RequireHolder,
): Promise<T[]> {
  const remove = makeRemove(sql);
  const gone: T[] = [];
  for (let from = 0; from < going.length; from += rowsPerSlice) {
    const slice = going.slice(from, from + rowsPerSlice);
    const removeSlice = sql.transaction(() => {
      guard();
      return slice.filter(({ id }) => remove(id));
    });
    gone.push(...removeSlice.immediate());
    fault("prune.slice");
    await breathe();
  }
  sql
    .transaction(() => {
      guard();
      sql.prepare("DELETE FROM intent WHERE environment = ? AND state <> 'open'").run(environment);
      sql
        .prepare(
          `DELETE FROM rewind WHERE left_at IS NULL AND target IS NULL AND delivered <> 0 AND requested_by <> 'agent'
           AND id NOT IN (SELECT rewind FROM lesson) AND thread IN (SELECT id FROM thread WHERE environment = ?)`,
        )
        .run(environment);
    })
    .immediate();
  fault("prune.done");
  return gone;
}

/** Takes one row out: its children hang on its parent. False when it was labelled meanwhile. */
function makeRemove(sql: Sql): (id: number) => boolean {
  const find = sql.prepare(
    "SELECT parent, timeline, tools, pruned, label, manifest, tools_from, thread FROM checkpoint WHERE id = ?",
  );
  const hang = sql.prepare("UPDATE checkpoint SET parent = ?, pruned = pruned + ?, changes = NULL WHERE parent = ?");
  const hangTimeline = sql.prepare("UPDATE checkpoint SET timeline = ? WHERE timeline = ?");
  const spoil = sql.prepare("UPDATE checkpoint SET tools = 'unknown' WHERE id = ? AND tools = 'none'");
  const forget = ["left_at", "target", "head_before"].map((column) =>
    sql.prepare(`UPDATE rewind SET ${column} = NULL WHERE ${column} = ?`),
  );
  // A state that the framework names goes to another checkpoint with the same files, or is forgotten.
  const rename = sql.prepare(
    `UPDATE named_state SET checkpoint = coalesce((SELECT max(id) FROM checkpoint WHERE manifest = @manifest AND id <> @id AND thread = @thread), @id)
     WHERE checkpoint = @id`,
  );
  const unname = sql.prepare("DELETE FROM named_state WHERE checkpoint = ?");
  const remove = sql.prepare("DELETE FROM checkpoint WHERE id = ?");
  const removeManifest = sql.prepare(
    "DELETE FROM manifest WHERE id = @id AND NOT EXISTS (SELECT 1 FROM checkpoint WHERE manifest = @id OR tools_from = @id)",
  );
  return (id) => {
    const row = find.get(id) as Going | undefined;
    if (row === undefined || row.label !== null) return false;
    const hung = hang.run(row.parent, row.pruned + 1, id).changes;
    // The stretch behind the parent is longer now: that no tool ran in it holds only if none ran in either part.
    if (hung > 0 && row.tools !== "none") spoil.run(row.parent);
    hangTimeline.run(row.timeline, id);
    for (const one of forget) one.run(id);
    rename.run({ id, manifest: row.manifest, thread: row.thread });
    unname.run(id);
    remove.run(id);
    for (const manifest of [row.manifest, row.tools_from]) if (manifest !== null) removeManifest.run({ id: manifest });
    return true;
  };
}
