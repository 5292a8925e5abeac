// Which workspace and environment of the catalog a directory is: found by path, or, when it moved, by its inode.
import { randomBytes } from "node:crypto";
import { statSync } from "node:fs";
import type { Sql } from "./database.ts";

export interface EnvironmentRow {
  readonly id: string;
  readonly workspace: string;
  readonly kind: string;
  readonly generation: number;
  readonly epoch: number;
  readonly head: number | null;
}

interface WorkspaceRow {
  readonly id: string;
  readonly path: string;
  readonly dev: string;
  readonly ino: string;
}

/** Inode numbers are reused at once; the birth time tells a moved directory from a new one. */
export function identityOf(path: string): { dev: string; ino: string } | undefined {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stat === undefined ? undefined : { dev: `${stat.dev}`, ino: `${stat.ino}@${stat.birthtimeNs}` };
}

/** The workspace's id, made when new. `movedFrom` names the path under which the same directory was known. */
export function findOrMakeWorkspace(sql: Sql, path: string): { id: string; movedFrom?: string } {
  const here = identityOf(path);
  return sql
    .transaction(() => {
      const byPath = sql.prepare("SELECT * FROM workspace WHERE path = ?").get(path) as WorkspaceRow | undefined;
      const byInode =
        here === undefined
          ? undefined
          : (sql.prepare("SELECT * FROM workspace WHERE dev = ? AND ino = ?").get(here.dev, here.ino) as
              | WorkspaceRow
              | undefined);
      const found = byInode ?? byPath;
      if (found === undefined) {
        const id = `w${randomBytes(6).toString("hex")}`;
        sql
          .prepare("INSERT INTO workspace (id, path, dev, ino, created_at) VALUES (?, ?, ?, ?, ?)")
          .run(id, path, here?.dev ?? "", here?.ino ?? "", new Date().toISOString());
        return { id };
      }
      if (byPath !== undefined && byPath.id !== found.id) {
        sql.prepare("UPDATE workspace SET path = ? WHERE id = ?").run(`${path}#replaced-${byPath.id}`, byPath.id);
      }
      const moved = here !== undefined && (found.path !== path || found.dev !== here.dev || found.ino !== here.ino);
      if (moved) {
        sql
          .prepare("UPDATE workspace SET path = ?, dev = ?, ino = ? WHERE id = ?")
          .run(path, here.dev, here.ino, found.id);
      }
      return found.path === path ? { id: found.id } : { id: found.id, movedFrom: found.path };
    })
    .immediate();
}

export function findEnvironment(sql: Sql, path: string, kind: string): EnvironmentRow | undefined {
  const here = identityOf(path);
  const rows = sql
    .prepare(
      `SELECT e.* FROM environment e JOIN workspace w ON w.id = e.workspace
       WHERE e.kind = ? AND (w.path = ? OR (w.dev = ? AND w.ino = ?)) ORDER BY w.ino = ? DESC`,
    )
    .all(kind, path, here?.dev ?? null, here?.ino ?? null, here?.ino ?? null) as EnvironmentRow[];
  return rows[0];
}

/** Writes nothing where it is there: opening must work on a full disk. */
export function findOrMakeEnvironment(sql: Sql, workspace: string, kind: string): EnvironmentRow {
  const find = sql.prepare("SELECT * FROM environment WHERE workspace = ? AND kind = ?");
  const found = find.get(workspace, kind) as EnvironmentRow | undefined;
  if (found !== undefined) return found;
  sql
    .prepare("INSERT OR IGNORE INTO environment (id, workspace, kind) VALUES (?, ?, ?)")
    .run(`e${randomBytes(6).toString("hex")}`, workspace, kind);
  return find.get(workspace, kind) as EnvironmentRow;
}

/** Ids of all environments of a kind in the store. */
export const environmentsOf = (sql: Sql, kind: string): string[] =>
  sql.prepare("SELECT id FROM environment WHERE kind = ? ORDER BY id").pluck().all(kind) as string[];
