// What of the store is needed: the contexts, file states and programs of the checkpoints of all environments, and what journals hold (F-34).
import type { Breathe } from "../breathe.ts";
import type { Census } from "./census.ts";
import { contextKind } from "./contexts.ts";
import type { Sql } from "./database.ts";
import type { Hash, ObjectReader } from "./objects.ts";
import { content, type Kind, walk } from "./reach.ts";

const rowsPerSlice = 200;

interface Root {
  readonly id: number;
  readonly context: string;
  readonly files: string | null;
  readonly processes: string | null;
  readonly tools_files: string | null;
  readonly tools_processes: string | null;
}

/** Marks everything that a checkpoint needs; may be called again for those that came since. @throws STORE_CORRUPT */
export async function markReachable(
  sql: Sql,
  objects: ObjectReader,
  census: Census,
  snapshots: Kind,
  breathe: Breathe,
): Promise<void> {
  const next = sql.prepare(
    `SELECT c.id, c.context, m.files, m.processes, f.files AS tools_files, f.processes AS tools_processes
     FROM checkpoint c LEFT JOIN manifest m ON m.id = c.manifest AND c.state <> 'not-restorable' LEFT JOIN manifest f ON f.id = c.tools_from
     WHERE c.id > ? ORDER BY c.id LIMIT ${rowsPerSlice}`,
  );
  const mark = async (kind: Kind, name: string | null): Promise<void> => {
    const hash = hashNamed(name);
    if (hash !== undefined && !census.has(hash, kind)) await walk(objects, census, kind, hash, breathe);
  };
  for (let from = 0; ; ) {
    const rows = next.all(from) as Root[];
    for (const { context, files, processes, tools_files, tools_processes } of rows) {
      await mark(contextKind, context);
      await mark(snapshots, files);
      await mark(snapshots, tools_files);
      await mark(content, processes);
      await mark(content, tools_processes);
    }
    const last = rows.at(-1);
    if (last === undefined) break;
    from = last.id;
    await breathe();
  }
  const journal = sql.prepare(`SELECT id, value FROM journal WHERE id > ? ORDER BY id LIMIT ${rowsPerSlice}`);
  for (let from = 0; ; ) {
    const rows = journal.all(from) as { readonly id: number; readonly value: string }[];
    for (const { value } of rows) await mark(content, value);
    const last = rows.at(-1);
    if (last === undefined) return;
    from = last.id;
    await breathe();
  }
}

/** Undefined for a name that an environment of its own kind gave. */
function hashNamed(name: string | null): Hash | undefined {
  return name !== null && /^[0-9a-f]{64}$/.test(name) ? Buffer.from(name, "hex") : undefined;
}
