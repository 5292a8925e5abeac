// Which checkpoint an id or an anchor means: the lines and families of threads (F-27).
import type { CheckpointRow } from "./rows.ts";
import type { Statements } from "./statements.ts";

export const checkpointSelect = `
  SELECT c.*, t.name AS thread_name, b.id AS branch, m.files, m.processes, f.files AS tools_files, f.processes AS tools_processes
  FROM checkpoint c JOIN thread t ON t.id = c.thread LEFT JOIN branch b ON b.thread = c.thread
  LEFT JOIN manifest m ON m.id = c.manifest LEFT JOIN manifest f ON f.id = c.tools_from`;

/** From a checkpoint back to the first. */
export const parentLine = `WITH RECURSIVE line(id) AS (
  SELECT ? UNION ALL SELECT c.parent FROM checkpoint c JOIN line ON c.id = line.id WHERE c.parent IS NOT NULL)`;

export function openLines({ get, all }: Statements, environment: string) {
  /** Heads of the lines whose ids a thread knows besides its own: what it was forked from, and the branches that it adopted. */
  function foreignLines(
    thread: number,
  ): { head: number | null; forked_from: number | null; adopted: number[] } | undefined {
    const row = get<{ head: number | null; forked_from: number | null; branches: number }>(
      "SELECT head, forked_from, (SELECT count(*) FROM branch WHERE source = thread.id) AS branches FROM thread WHERE id = ?",
      thread,
    );
    if (row === undefined || (row.forked_from === null && row.branches === 0)) return undefined;
    const adopted = all<{ head: number }>(
      "SELECT t.head FROM branch b JOIN thread t ON t.id = b.thread WHERE b.source = ? AND b.state = 'adopted' ORDER BY b.id DESC",
      thread,
    );
    return { ...row, adopted: adopted.map((one) => one.head) };
  }

  function onLines(
    lines: readonly (number | null)[],
    column: "seq" | "anchor",
    value: unknown,
  ): CheckpointRow | undefined {
    for (const from of lines) {
      const found =
        from === null
          ? undefined
          : get<CheckpointRow>(
              `${parentLine} ${checkpointSelect} WHERE c.id IN (SELECT id FROM line) AND c.${column} = ? ORDER BY c.id DESC LIMIT 1`,
              from,
              value,
            );
      if (found !== undefined) return found;
    }
    return undefined;
  }

  return {
    checkpoint: (id: number): CheckpointRow | undefined => get(`${checkpointSelect} WHERE c.id = ?`, id),
    /** What an id means in a thread: on the head's line first, then among its own, then on the lines that it came from or adopted (F-27). */
    checkpointBySeq(thread: number, seq: number): CheckpointRow | undefined {
      const own = get<CheckpointRow>(`${checkpointSelect} WHERE c.thread = ? AND c.seq = ?`, thread, seq);
      const lines = foreignLines(thread);
      if (lines === undefined) return own;
      return onLines([lines.head], "seq", seq) ?? own ?? onLines([lines.forked_from, ...lines.adopted], "seq", seq);
    },
    /** A checkpoint of another thread of the same family, by the number of its branch; 0 is the thread from which all come. */
    checkpointOfBranch: (thread: number, branch: number, seq: number): CheckpointRow | undefined =>
      get(
        `WITH RECURSIVE up(thread) AS (SELECT ? UNION SELECT b.source FROM branch b JOIN up ON b.thread = up.thread),
           top(thread) AS (SELECT thread FROM up WHERE thread NOT IN (SELECT thread FROM branch)),
           family(thread) AS (SELECT thread FROM top UNION SELECT b.thread FROM branch b JOIN family ON b.source = family.thread)
         ${checkpointSelect} WHERE c.thread IN (SELECT thread FROM family) AND coalesce(b.id, 0) = ? AND c.seq = ?`,
        thread,
        branch,
        seq,
      ),
    checkpointByAnchor(thread: number, anchor: string): CheckpointRow | undefined {
      const own = get<CheckpointRow>(
        `${checkpointSelect} WHERE c.thread = ? AND c.anchor = ? ORDER BY c.seq DESC LIMIT 1`,
        thread,
        anchor,
      );
      if (own !== undefined) return own;
      const lines = foreignLines(thread);
      return lines && onLines([lines.head, lines.forked_from, ...lines.adopted], "anchor", anchor);
    },
    /** True when other threads have a part in what its ids mean. */
    hasFamily: (thread: number): boolean => foreignLines(thread) !== undefined,
    /** Of a thread and of all that were forked from it, in the order of making. */
    familyCheckpoints: (thread: number): CheckpointRow[] =>
      all(
        `WITH RECURSIVE family(thread) AS (SELECT ? UNION SELECT b.thread FROM branch b JOIN family ON b.source = family.thread)
         ${checkpointSelect} WHERE c.thread IN (SELECT thread FROM family) ORDER BY c.id`,
        thread,
      ),
    checkpoints: (thread: number): CheckpointRow[] =>
      all(`${checkpointSelect} WHERE c.thread = ? ORDER BY c.seq`, thread),
    allCheckpoints: (): CheckpointRow[] =>
      all(`${checkpointSelect} WHERE t.environment = ? ORDER BY c.id`, environment),
    /** From `from` back to the first, newest first, along `parent` or along the environment's `timeline`. */
    lineage(from: number | null, along: "parent" | "timeline" = "parent"): CheckpointRow[] {
      if (from === null) return [];
      return all(
        `WITH RECURSIVE line(id, depth) AS (
           SELECT ?, 0 UNION ALL SELECT c.${along}, depth + 1 FROM checkpoint c JOIN line ON c.id = line.id WHERE c.${along} IS NOT NULL
         ) ${checkpointSelect} JOIN line ON line.id = c.id ORDER BY line.depth`,
        from,
      );
    },

    /** Whether `id` lies on the line from `from` back to the first. */
    isAncestor: (id: number, from: number | null): boolean =>
      from !== null && get(`${parentLine} SELECT 1 FROM line WHERE id = ? LIMIT 1`, from, id) !== undefined,
  };
}
