// Branches of the catalog: environments that were forked from a checkpoint of another one, each with a thread of its own (F-27 to F-30).
import { randomBytes } from "node:crypto";
import { asWriteFailure } from "../errors.ts";
import type { Sql } from "./database.ts";
import { identityOf } from "./workspaces.ts";

/** `making`: its folder is not complete; `adopted`, `abandoned`: it has ended, and its folder goes. */
export type BranchState = "making" | "open" | "adopted" | "abandoned";

export interface BranchRow {
  readonly id: number;
  readonly environment: string;
  readonly thread: number;
  readonly thread_name: string;
  /** The thread that it was forked from, and that thread's environment. */
  readonly source: number;
  readonly source_name: string;
  readonly source_environment: string;
  readonly checkpoint: number;
  readonly checkpoint_seq: number;
  readonly state: BranchState;
  /** Null when it has been removed. */
  readonly folder: string | null;
  /** Of the folder that was made, so that no other one is removed in its place. */
  readonly identity: string | null;
  /** JSON, while it is `making`: folders above its place that are made for it, the innermost first. */
  readonly parents: string | null;
  readonly created_at: string;
}

export interface NewBranches {
  readonly source: { readonly id: number; readonly name: string; readonly next_seq: number };
  readonly checkpoint: { readonly id: number; readonly lessons: string };
  readonly kind: string;
  readonly count: number;
  readonly folder: (branch: number, index: number) => string;
  /** Those above a folder that are not there yet, the innermost first. */
  readonly parents: (folder: string) => readonly string[];
}

const select = `
  SELECT b.id, b.environment, b.thread, t.name AS thread_name, b.source, s.name AS source_name, s.environment AS source_environment, b.checkpoint,
    c.seq AS checkpoint_seq, b.state, coalesce(w.path, b.folder) AS folder, b.identity, b.parents, b.created_at
  FROM branch b JOIN thread t ON t.id = b.thread JOIN thread s ON s.id = b.source JOIN checkpoint c ON c.id = b.checkpoint
  LEFT JOIN environment e ON e.id = b.environment AND b.folder IS NOT NULL LEFT JOIN workspace w ON w.id = e.workspace`;

/** Tells a folder from any other that comes to lie at its path; null where there is none. */
export const identityText = (folder: string): string | null => {
  const found = identityOf(folder);
  return found === undefined ? null : `${found.dev}:${found.ino}`;
};

export type Branches = ReturnType<typeof openBranches>;

export function openBranches(sql: Sql) {
  const transaction = <T>(work: () => T): T => {
    try {
      return sql.transaction(work).immediate();
    } catch (error) {
      throw asWriteFailure(error, "the store's catalog");
    }
  };
  const row = (id: number): BranchRow => sql.prepare(`${select} WHERE b.id = ?`).get(id) as BranchRow;

  return {
    /** Journals branches whose folders are about to be made. */
    add({ source, checkpoint, kind, count, folder, parents }: NewBranches): BranchRow[] {
      return transaction(() =>
        [...Array(count).keys()].map((index) => {
          const at = new Date().toISOString();
          const key = randomBytes(6).toString("hex");
          const seq = sql.prepare("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'branch'").pluck();
          const path = folder((seq.get() as number) + 1, index);
          sql
            .prepare("INSERT INTO workspace (id, path, dev, ino, created_at) VALUES (?, ?, '', '', ?)")
            .run(`w${key}`, path, at);
          sql
            .prepare("INSERT INTO environment (id, workspace, kind, head) VALUES (?, ?, ?, ?)")
            .run(`e${key}`, `w${key}`, kind, checkpoint.id);
          const thread = sql
            .prepare(
              "INSERT INTO thread (environment, name, forked_from, head, next_seq, lessons, active_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
            )
            .run(`e${key}`, source.name, checkpoint.id, checkpoint.id, source.next_seq, checkpoint.lessons, at);
          const { lastInsertRowid } = sql
            .prepare(
              `INSERT INTO branch (environment, thread, source, checkpoint, lessons, state, folder, parents, created_at)
               VALUES (?, ?, ?, ?, (SELECT coalesce(max(id), 0) FROM lesson), 'making', ?, ?, ?)`,
            )
            .run(`e${key}`, thread.lastInsertRowid, source.id, checkpoint.id, path, JSON.stringify(parents(path)), at);
          return row(Number(lastInsertRowid));
        }),
      );
    },

    /** As it is now. */
    again: (branch: BranchRow): BranchRow => row(branch.id),

    /** Before the folder comes to its place: from now on it is known for ours. */
    identify(branch: BranchRow, identity: string | null): void {
      transaction(() => sql.prepare("UPDATE branch SET identity = ? WHERE id = ?").run(identity, branch.id));
    },

    /** All of them at once: their folders are complete and in place. */
    open(branches: readonly BranchRow[]): BranchRow[] {
      return transaction(() =>
        branches.map((branch) => {
          const { dev = "", ino = "" } = identityOf(branch.folder as string) ?? {};
          sql
            .prepare(
              `UPDATE workspace SET path = path || '#replaced-' || id
               WHERE path = ? AND id <> (SELECT workspace FROM environment WHERE id = ?)`,
            )
            .run(branch.folder, branch.environment);
          sql
            .prepare(
              "UPDATE workspace SET dev = ?, ino = ? WHERE id = (SELECT workspace FROM environment WHERE id = ?)",
            )
            .run(dev, ino, branch.environment);
          sql.prepare("UPDATE branch SET state = 'open', parents = NULL WHERE id = ?").run(branch.id);
          return row(branch.id);
        }),
      );
    },

    /** One that was never complete leaves no trace. */
    drop(branch: BranchRow): void {
      transaction(() => {
        const workspace = sql.prepare("SELECT workspace FROM environment WHERE id = ?").pluck().get(branch.environment);
        sql.prepare("DELETE FROM branch WHERE id = ?").run(branch.id);
        sql.prepare("DELETE FROM thread WHERE id = ?").run(branch.thread);
        sql.prepare("DELETE FROM environment WHERE id = ?").run(branch.environment);
        sql.prepare("DELETE FROM workspace WHERE id = ?").run(workspace);
      });
    },

    abandon(branch: BranchRow): void {
      transaction(() => sql.prepare("UPDATE branch SET state = 'abandoned' WHERE id = ?").run(branch.id));
    },

    /** The folder is gone: its path is free for another workspace. */
    removed(branch: BranchRow): void {
      transaction(() => {
        sql.prepare("UPDATE branch SET folder = NULL WHERE id = ?").run(branch.id);
        sql
          .prepare(
            `UPDATE workspace SET path = path || '#ended-' || id, dev = '', ino = ''
             WHERE id = (SELECT workspace FROM environment WHERE id = ?)`,
          )
          .run(branch.environment);
      });
    },

    /** Forked from threads of an environment, oldest first. */
    of: (environment: string): BranchRow[] =>
      sql.prepare(`${select} WHERE s.environment = ? ORDER BY b.id`).all(environment) as BranchRow[],

    /** The branch whose environment this is. */
    at: (environment: string): BranchRow | undefined =>
      sql.prepare(`${select} WHERE b.environment = ?`).get(environment) as BranchRow | undefined,
  };
}
