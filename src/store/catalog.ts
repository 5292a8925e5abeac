// The catalog's rows of one environment: threads, checkpoints, rewinds, lessons, intents. Every multi-row change is one transaction.
import { RewindError } from "../errors.ts";
import type { Sql } from "./database.ts";
import { type KnownEffects, knownWith, openEffects } from "./effects.ts";
import { openGone } from "./gone.ts";
import { openHolder } from "./holder.ts";
import { openJournal } from "./journal.ts";
import { checkpointSelect, openLines } from "./lines.ts";
import { openNamedStates } from "./named-states.ts";
import type {
  CheckpointRow,
  EnvironmentHalf,
  IntentRow,
  LessonRow,
  ManifestRow,
  NewCheckpoint,
  RewindCommit,
  RewindRow,
  ThreadRow,
  ToolsMark,
} from "./rows.ts";
import { openStatements, type Statements } from "./statements.ts";

export type Catalog = ReturnType<typeof openCatalog>;

/** Reads and writes the rows of environment `environment`; writing needs its lock (F-26). */
export function openCatalog(sql: Sql, environment: string) {
  const plain = openStatements(sql);
  const requireHolder = openHolder(sql, environment);
  const { get, all, read } = plain;
  /** Each change is made only while the lock is ours by the store's own word (F-41). */
  const transaction = <T>(work: () => T): T =>
    plain.transaction(() => {
      requireHolder();
      return work();
    });
  const run = (text: string, ...values: unknown[]): number =>
    sql.inTransaction ? plain.run(text, ...values) : transaction(() => plain.run(text, ...values));
  const statements: Statements = { get, all, run, transaction, read };
  const lines = openLines(statements, environment);
  const effects = openEffects(statements, environment);
  const now = (): string => new Date().toISOString();

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

  /** What the context of a new checkpoint tells of effects (F-44). */
  function knownAt({ parent, thread, effectsUpTo = null }: NewCheckpoint): KnownEffects {
    const before =
      parent === null ? undefined : get<{ effects: string }>("SELECT effects FROM checkpoint WHERE id = ?", parent);
    const known = JSON.parse(before?.effects ?? "[]") as KnownEffects;
    return effectsUpTo === null ? known : knownWith(known, thread, effects.effectsFrom(thread), effectsUpTo);
  }

  function insertCheckpoint(row: NewCheckpoint): number {
    const timeline =
      get<{ head: number | null }>("SELECT head FROM environment WHERE id = ?", environment)?.head ?? null;
    return run(
      `INSERT INTO checkpoint (thread, seq, parent, timeline, turn, kind, state, reason, label, anchor, context, messages, serializer,
         manifest, changes, activity, problems, timings, lessons, partial, effects, created_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
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
      JSON.stringify(knownAt(row)),
      now(),
    );
  }

  function moveThread(thread: number, head: number, lessons: readonly number[]): void {
    run(
      "UPDATE thread SET head = ?, lessons = ?, active_at = ?, gone = NULL WHERE id = ?",
      head,
      JSON.stringify(lessons),
      now(),
      thread,
    );
  }

  const catalog = {
    ...lines,
    ...openNamedStates(statements),
    ...openJournal(statements, environment),
    ...openGone(statements, environment),
    ...effects,
    requireHolder,
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

    /** Reads of one moment. */
    read,
    /** Reads and writes in one transaction. */
    atOnce: transaction,
    threads: (): ThreadRow[] =>
      all("SELECT * FROM thread WHERE environment = ? ORDER BY active_at DESC, id DESC", environment),
    thread: (name: string): ThreadRow | undefined =>
      get("SELECT * FROM thread WHERE environment = ? AND name = ?", environment, name),
    makeThread(name: string): ThreadRow {
      run("INSERT OR IGNORE INTO thread (environment, name, active_at) VALUES (?, ?, ?)", environment, name, now());
      return get("SELECT * FROM thread WHERE environment = ? AND name = ?", environment, name) as ThreadRow;
    },
    threadName: (id: number): string => get<{ name: string }>("SELECT name FROM thread WHERE id = ?", id)?.name ?? "",
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
    /** Some checkpoint or what was seen before tools names this half. */
    isNamed: (half: "files" | "processes", name: string): boolean =>
      get(
        `SELECT 1 FROM manifest m WHERE m.${half} = ?
           AND EXISTS (SELECT 1 FROM checkpoint c WHERE c.manifest = m.id OR c.tools_from = m.id) LIMIT 1`,
        name,
      ) !== undefined,
    /** One transaction: the pair becomes visible and the heads move to it (F-16). */
    addCheckpoint(row: NewCheckpoint, issued: number, moveHeads = true): CheckpointRow {
      return transaction(() => {
        requireEpoch(issued);
        const added = insertCheckpoint(row);
        if (moveHeads) {
          moveThread(row.thread, added, row.lessons);
          if (row.kind === "turn") run("UPDATE thread SET acted = 0 WHERE id = ?", row.thread);
          run("UPDATE environment SET head = ? WHERE id = ?", added, environment);
        }
        return lines.checkpoint(added) as CheckpointRow;
      });
    },
    /** One transaction: a checkpoint of the conversation alone gets its other half (F-18). False where it has one, or the head has moved on. */
    complete(id: number, half: EnvironmentHalf, issued: number): boolean {
      return transaction(() => {
        requireEpoch(issued);
        const isHead = get("SELECT 1 FROM thread WHERE head = ?", id) !== undefined;
        if (!isHead || lines.checkpoint(id)?.state !== "not-restorable") return false;
        run(
          "UPDATE checkpoint SET state = 'captured', reason = NULL, manifest = ?, changes = ?, problems = ?, timings = ? WHERE id = ?",
          addManifest(half.manifest),
          half.changes === null ? null : JSON.stringify(half.changes),
          JSON.stringify(half.problems),
          JSON.stringify(half.timings),
          id,
        );
        return true;
      });
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
    toolEnded: (id: number): void => {
      run("UPDATE checkpoint SET tools = 'ran' WHERE id = ? AND tools = 'running'", id);
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
        for (const { text, parts = null, covers = null } of commit.newLessons) {
          lessons.push(
            run(
              "INSERT INTO lesson (thread, rewind, text, parts, covers, created_at) VALUES (?, ?, ?, ?, ?, ?)",
              commit.thread,
              added,
              text,
              parts === null ? null : JSON.stringify(parts),
              covers === null ? null : JSON.stringify(covers),
              now(),
            ),
          );
        }
        if (commit.moveThread) moveThread(commit.thread, target, lessons);
        run("UPDATE thread SET acted = 0, gone = NULL WHERE id = ?", commit.thread);
        // Where only files went back the conversation still tells of everything that was done.
        if (commit.moveThread && commit.scope !== "environment")
          run("UPDATE thread SET effects_from = ? WHERE id = ?", effects.effectMark(commit.thread), commit.thread);
        if (commit.adopts !== null) run("UPDATE branch SET state = 'adopted' WHERE id = ?", commit.adopts);
        if (commit.intent !== null) run("UPDATE intent SET state = 'done' WHERE id = ?", commit.intent);
        return added;
      });
      return catalog.rewind(id) as RewindRow;
    },
    rewindByKey: (thread: number, key: string): RewindRow | undefined =>
      get("SELECT * FROM rewind WHERE thread = ? AND key = ?", thread, key),
    rewind: (id: number): RewindRow | undefined => get("SELECT * FROM rewind WHERE id = ?", id),
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
         SELECT l.id, l.text, l.parts, l.covers, l.created_at, l.rewind, r.left_seq AS from_seq, r.target_seq AS to_seq, r.target, b.id AS branch
         FROM lesson l JOIN rewind r ON r.id = l.rewind LEFT JOIN branch b ON b.thread = l.thread
         WHERE EXISTS (SELECT 1 FROM family WHERE family.thread = l.thread AND l.id <= family.upto) ORDER BY l.id DESC`,
        thread,
      ),
  };
  return catalog;
}
