// The catalog's rows of one environment: threads, checkpoints, rewinds, lessons, intents. Every multi-row change is one transaction.
import { asWriteFailure, RewindError } from "../errors.ts";
import type { Sql, Statement } from "./database.ts";

import type {
  CheckpointRow,
  IntentRow,
  LessonRow,
  ManifestRow,
  NewCheckpoint,
  RewindCommit,
  RewindRow,
  ThreadRow,
  ToolsMark,
} from "./rows.ts";

const checkpointSelect = `
  SELECT c.*, t.name AS thread_name, b.id AS branch, m.files, m.processes, f.files AS tools_files, f.processes AS tools_processes
  FROM checkpoint c JOIN thread t ON t.id = c.thread LEFT JOIN branch b ON b.thread = c.thread
  LEFT JOIN manifest m ON m.id = c.manifest LEFT JOIN manifest f ON f.id = c.tools_from`;

/** From a checkpoint back to the first. */
const parentLine = `WITH RECURSIVE line(id) AS (
  SELECT ? UNION ALL SELECT c.parent FROM checkpoint c JOIN line ON c.id = line.id WHERE c.parent IS NOT NULL)`;

export type Catalog = ReturnType<typeof openCatalog>;

/** Reads and writes the rows of environment `environment`; writing needs its lock (F-26). */
export function openCatalog(sql: Sql, environment: string) {
  const now = (): string => new Date().toISOString();
  const prepared = new Map<string, Statement>();
  const statement = (text: string): Statement => {
    let found = prepared.get(text);
    if (found === undefined) {
      found = sql.prepare<unknown[]>(text);
      prepared.set(text, found);
    }
    return found;
  };
  const get = <T>(text: string, ...values: unknown[]): T | undefined => statement(text).get(...values) as T | undefined;
  const all = <T>(text: string, ...values: unknown[]): T[] => statement(text).all(...values) as T[];
  const writing = <T>(work: () => T): T => {
    try {
      return work();
    } catch (error) {
      throw asWriteFailure(error, "the store's catalog");
    }
  };
  const run = (text: string, ...values: unknown[]): number =>
    writing(() => Number(statement(text).run(...values).lastInsertRowid));
  const transaction = <T>(work: () => T): T => writing(() => sql.transaction(work).immediate());

  const epoch = (): number =>
    get<{ epoch: number }>("SELECT epoch FROM environment WHERE id = ?", environment)?.epoch ?? 0;

  function requireEpoch(issued: number): void {
    const current = epoch();
    if (issued === current) return;
    throw new RewindError(
      "STALE_EPOCH",
      `This was issued in epoch ${issued}; a rewind has moved the environment to epoch ${current}.`,
      {
        hint: "Drop it and go on from the restored context.",
        details: { issued, current },
      },
    );
  }

  function addManifest(manifest: ManifestRow): number {
    const at = now();
    const found = get<{ id: number }>(
      "SELECT id FROM manifest WHERE files IS ? AND processes IS ? ORDER BY id LIMIT 1",
      manifest.files,
      manifest.processes,
    );
    return (
      found?.id ??
      run(
        "INSERT INTO manifest (files, processes, files_at, processes_at) VALUES (?, ?, ?, ?)",
        manifest.files,
        manifest.processes,
        at,
        at,
      )
    );
  }

  function insertCheckpoint(row: NewCheckpoint): number {
    const timeline =
      get<{ head: number | null }>("SELECT head FROM environment WHERE id = ?", environment)?.head ?? null;
    return run(
      `INSERT INTO checkpoint (thread, seq, parent, timeline, turn, kind, state, reason, label, anchor, context, messages, serializer,
         manifest, changes, activity, problems, timings, lessons, partial, created_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      row.thread,
      row.seq,
      row.parent,
      timeline,
      row.turn,
      row.kind,
      row.state,
      row.reason,
      row.label,
      row.anchor,
      row.context,
      row.messages,
      row.serializer,
      row.manifest === null ? null : addManifest(row.manifest),
      row.changes === null ? null : JSON.stringify(row.changes),
      JSON.stringify(row.activity),
      JSON.stringify(row.problems),
      JSON.stringify(row.timings),
      JSON.stringify(row.lessons),
      row.partial === undefined ? null : JSON.stringify(row.partial),
      now(),
    );
  }

  function moveThread(thread: number, head: number, lessons: readonly number[]): void {
    run(
      "UPDATE thread SET head = ?, lessons = ?, active_at = ? WHERE id = ?",
      head,
      JSON.stringify(lessons),
      now(),
      thread,
    );
  }

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
    epoch,
    requireEpoch,
    timelineHead: (): number | null =>
      get<{ head: number | null }>("SELECT head FROM environment WHERE id = ?", environment)?.head ?? null,
    generation: (): number =>
      get<{ generation: number }>("SELECT generation FROM environment WHERE id = ?", environment)?.generation ?? 0,
    raiseGeneration: (): number => {
      run("UPDATE environment SET generation = generation + 1 WHERE id = ?", environment);
      return (
        get<{ generation: number }>("SELECT generation FROM environment WHERE id = ?", environment)?.generation ?? 0
      );
    },

    threads: (): ThreadRow[] =>
      all("SELECT * FROM thread WHERE environment = ? ORDER BY active_at DESC, id DESC", environment),
    thread: (name: string): ThreadRow | undefined =>
      get("SELECT * FROM thread WHERE environment = ? AND name = ?", environment, name),
    makeThread(name: string): ThreadRow {
      run("INSERT OR IGNORE INTO thread (environment, name, active_at) VALUES (?, ?, ?)", environment, name, now());
      return get("SELECT * FROM thread WHERE environment = ? AND name = ?", environment, name) as ThreadRow;
    },
    /** Takes the thread's next number; it is never given again (F-17). */
    takeSeq(thread: number): number {
      return transaction(() => {
        const seq = get<{ next_seq: number }>("SELECT next_seq FROM thread WHERE id = ?", thread)?.next_seq ?? 0;
        run("UPDATE thread SET next_seq = ? WHERE id = ?", seq + 1, thread);
        return seq;
      });
    },

    headOf: (thread: number): number =>
      get<{ head: number }>("SELECT head FROM thread WHERE id = ?", thread)?.head as number,
    /** The next number is at least `seq`: a thread that goes on from another's checkpoint must not repeat a number of its line. */
    raiseSeq: (thread: number, seq: number): void => {
      run("UPDATE thread SET next_seq = max(next_seq, ?) WHERE id = ?", seq, thread);
    },

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
    /** Objects were lost with the machine since this was last cleared: what is not durable may lack some. */
    isSuspect: (): boolean => get("SELECT 1 FROM environment WHERE id = ? AND suspect = 1", environment) !== undefined,
    clearSuspect: (): void => {
      run("UPDATE environment SET suspect = 0 WHERE id = ?", environment);
    },
    /** Some restorable checkpoint holds this file snapshot. */
    isHeld: (files: string): boolean =>
      get(
        "SELECT 1 FROM manifest m JOIN checkpoint c ON c.manifest = m.id WHERE m.files = ? AND c.state <> 'not-restorable' LIMIT 1",
        files,
      ) !== undefined,
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

    /** One transaction: the pair becomes visible and the heads move to it (F-16). */
    addCheckpoint(row: NewCheckpoint, issued: number, moveHeads = true): CheckpointRow {
      const id = transaction(() => {
        requireEpoch(issued);
        const added = insertCheckpoint(row);
        if (moveHeads) {
          moveThread(row.thread, added, row.lessons);
          run("UPDATE environment SET head = ? WHERE id = ?", added, environment);
        }
        return added;
      });
      return get(`${checkpointSelect} WHERE c.id = ?`, id) as CheckpointRow;
    },
    markDurable: (id: number): void => {
      run("UPDATE checkpoint SET state = 'durable' WHERE id = ? AND state = 'captured'", id);
    },
    markNotRestorable: (id: number, reason: string): void => {
      run("UPDATE checkpoint SET state = 'not-restorable', reason = ? WHERE id = ?", reason, id);
    },
    markTools(id: number, tools: ToolsMark, from: ManifestRow | null): void {
      transaction(() => {
        run(
          "UPDATE checkpoint SET tools = ?, tools_from = ? WHERE id = ?",
          tools,
          from === null ? null : addManifest(from),
          id,
        );
      });
    },
    setLabel: (id: number, label: string): void => {
      run("UPDATE checkpoint SET label = ? WHERE id = ?", label, id);
    },
    setTimings: (id: number, timings: unknown): void => {
      run("UPDATE checkpoint SET timings = ? WHERE id = ?", JSON.stringify(timings), id);
    },

    /** Checkpoints that hang on another parent since a prune, and whose changes are not told against it yet. */
    hungAnew: (): CheckpointRow[] =>
      all(
        `${checkpointSelect} WHERE t.environment = ? AND c.pruned > 0 AND c.parent IS NOT NULL AND c.changes IS NULL
         AND c.state <> 'not-restorable'`,
        environment,
      ),
    setChanges: (id: number, changes: unknown): void => {
      run("UPDATE checkpoint SET changes = ? WHERE id = ?", JSON.stringify(changes), id);
    },

    openIntent: (thread: number, kind: string, payload: unknown): number =>
      run(
        "INSERT INTO intent (environment, thread, kind, state, payload, created_at) VALUES (?, ?, ?, 'open', ?, ?)",
        environment,
        thread,
        kind,
        JSON.stringify(payload),
        now(),
      ),
    closeIntent: (id: number, state: "done" | "undone"): void => {
      run("UPDATE intent SET state = ? WHERE id = ?", state, id);
    },
    openIntents: (): IntentRow[] =>
      all(
        "SELECT id, thread, kind, payload FROM intent WHERE environment = ? AND state = 'open' ORDER BY id",
        environment,
      ),

    commitRewind(commit: RewindCommit, issued: number): RewindRow {
      const id = transaction(() => {
        requireEpoch(issued);
        const target = typeof commit.target === "number" ? commit.target : insertCheckpoint(commit.target);
        if (commit.moveTimeline) run("UPDATE environment SET head = ? WHERE id = ?", target, environment);
        run("UPDATE environment SET epoch = epoch + 1 WHERE id = ?", environment);
        const added = run(
          `INSERT INTO rewind (thread, key, kind, requested_by, scope, head_before, left_at, target, epoch, delivered, result, created_at,
             left_seq, target_seq)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, (SELECT seq FROM checkpoint WHERE id = ?),
             (SELECT seq FROM checkpoint WHERE id = ?))`,
          commit.thread,
          commit.key,
          commit.kind,
          commit.requestedBy,
          commit.scope,
          commit.headBefore,
          commit.leftAt,
          target,
          issued + 1,
          commit.delivered ? 1 : 0,
          JSON.stringify(commit.result),
          now(),
          commit.leftAt,
          target,
        );
        if (commit.undoes !== null) run("UPDATE rewind SET undone = 1 WHERE id = ?", commit.undoes);
        const lessons = [...commit.lessons];
        if (commit.lesson !== null) {
          lessons.push(
            run(
              "INSERT INTO lesson (thread, rewind, text, created_at) VALUES (?, ?, ?, ?)",
              commit.thread,
              added,
              commit.lesson,
              now(),
            ),
          );
        }
        if (commit.moveThread) moveThread(commit.thread, target, lessons);
        if (commit.adopts !== null) run("UPDATE branch SET state = 'adopted' WHERE id = ?", commit.adopts);
        if (commit.intent !== null) run("UPDATE intent SET state = 'done' WHERE id = ?", commit.intent);
        return added;
      });
      return get("SELECT * FROM rewind WHERE id = ?", id) as RewindRow;
    },
    rewindByKey: (thread: number, key: string): RewindRow | undefined =>
      get("SELECT * FROM rewind WHERE thread = ? AND key = ?", thread, key),
    /** Oldest first. */
    rewinds: (thread: number): RewindRow[] => all("SELECT * FROM rewind WHERE thread = ? ORDER BY id", thread),
    markDelivered: (thread: number): void => {
      run("UPDATE rewind SET delivered = 1 WHERE thread = ? AND delivered = 0", thread);
    },
    /** Newest first; of a branch also those that its source knew when it was forked, and of its source those of a branch that it adopted. */
    lessons: (thread: number): LessonRow[] =>
      all(
        `WITH RECURSIVE family(thread, upto) AS (
           SELECT ?, 9007199254740991
           UNION SELECT b.source, min(b.lessons, f.upto) FROM branch b JOIN family f ON b.thread = f.thread
           UNION SELECT b.thread, f.upto FROM branch b JOIN family f ON b.source = f.thread WHERE b.state = 'adopted'
         )
         SELECT l.id, l.text, l.created_at, r.left_seq AS from_seq, r.target_seq AS to_seq
         FROM lesson l JOIN rewind r ON r.id = l.rewind
         WHERE EXISTS (SELECT 1 FROM family WHERE family.thread = l.thread AND l.id <= family.upto) ORDER BY l.id DESC`,
        thread,
      ),
  };
}
