// The rows of one thread, or of one checkpoint of it, with the numbers that they have in a bundle.
import { openCatalog } from "../store/catalog.ts";
import type { Sql } from "../store/database.ts";
import type { KnownEffects } from "../store/effects.ts";
import { checkpointSelect, parentLine } from "../store/lines.ts";
import type { CheckpointRow, Partial, Place, RewindRow, ThreadRow } from "../store/rows.ts";
import { effectRow, lessonRow, type Numbers } from "./row-forms.ts";
import type { Row, ThreadPart } from "./schema.ts";

export interface Wanted {
  readonly environment: string;
  readonly thread: ThreadRow;
  /** Its id; null: all of the thread, and what it came from. */
  readonly checkpoint: number | null;
}

/** What a row needs besides the catalog. */
export interface Needed {
  readonly context: string;
  readonly files: readonly string[];
  readonly processes: readonly string[];
}

/** Of one moment: `sql` is in a transaction. */
export class ThreadRows {
  readonly threads: readonly ThreadPart[];
  readonly #sql: Sql;
  readonly #thread: ThreadRow;
  /** Checkpoints, oldest first: their ids, and their numbers from 1. */
  readonly #checkpoints: Numbers;
  readonly #owner: ReadonlyMap<number, number>;
  readonly #rewinds: Numbers;
  readonly #lessons: Numbers;
  /** Effects of the other threads come first, so that what one of them has done lies in one stretch. */
  readonly #effects: Numbers;
  readonly #stretches: ReadonlyMap<number, readonly number[]>;
  readonly #ownThreads: readonly number[];
  readonly #single: boolean;

  constructor(sql: Sql, { environment, thread: { id }, checkpoint }: Wanted) {
    this.#sql = sql;
    const thread = this.#one<ThreadRow>("thread", id);
    this.#thread = thread;
    this.#single = checkpoint !== null;
    const catalog = openCatalog(sql, environment);
    const rows = checkpoint === null ? this.#ofThread(thread.id) : [this.#one<Owned>("checkpoint", checkpoint)];
    this.#checkpoints = numbered(rows.map((row) => row.id));
    const head = checkpoint ?? thread.head;
    const { owner, highest } = this.#owners(rows, new Set(this.#line(head)));
    this.#owner = owner;
    this.#ownThreads = [...new Set([thread.id, ...rows.map((row) => row.thread)])];
    const lessons = catalog.lessons(thread.id).reverse();
    this.#lessons = numbered(lessons.map((one) => one.id));
    const own = catalog.rewinds(thread.id).map((row) => row.id);
    const rewinds = new Set([...lessons.map((one) => one.rewind), ...own]);
    this.#rewinds = numbered([...rewinds].sort((a, b) => a - b));
    this.#stretches = this.#effectStretches();
    this.#effects = numbered([...this.#stretches.values()].flat());
    const told = this.#single && head !== null ? this.#one<CheckpointRow>("checkpoint", head).lessons : thread.lessons;
    this.threads = highest.map((seq, index) => ({
      name: index === 0 ? thread.name : `${thread.name}~${index}`,
      nextSeq: Math.max(seq + 1, index === 0 ? thread.next_seq : 0),
      head: index === 0 ? this.#numberOf(head) : null,
      forkedFrom: index === 0 ? this.#numberOf(thread.forked_from) : null,
      lessons: index === 0 ? this.#told(told) : [],
      effectsFrom: index === 0 ? this.#boundary(thread.id, catalog.effectsFrom(thread.id)) : 0,
      place: index === 0 && !this.#single ? this.#place(thread.place) : null,
      activeAt: thread.active_at,
    }));
  }

  get checkpoints(): number {
    return this.#checkpoints.size;
  }

  /** One for each checkpoint, oldest first. */
  *needed(): Generator<Needed> {
    for (const row of this.#rows()) {
      const known = (names: readonly (string | null)[]): string[] => names.filter((name) => name !== null);
      const kept = row.state === "not-restorable" ? [] : [row.files, row.processes];
      yield {
        context: row.context,
        files: known([kept[0] ?? null, row.tools_files]),
        processes: known([kept[1] ?? null, row.tools_processes]),
      };
    }
  }

  /** Names of objects that the thread's journal holds. */
  *journalValues(): Generator<string> {
    for (const row of this.#journal()) yield row.value;
  }

  *rows(): Generator<Row> {
    for (const row of this.#rows()) yield this.#checkpoint(row);
    for (const [id] of this.#rewinds) yield this.#rewind(this.#one("rewind", id));
    for (const [id] of this.#lessons)
      yield lessonRow(this.#one("lesson", id), this.#rewinds, (lessons) => this.#told(lessons));
    for (const [id] of this.#effects)
      yield effectRow(this.#one("effect", id), this.#thread.id, this.#checkpoints, this.#effects);
    for (const { key, value, checkpoint } of this.#journal())
      yield { table: "journal", key, value, checkpoint: this.#numberOf(checkpoint) };
    const named = this.#sql.prepare("SELECT name, checkpoint FROM named_state WHERE thread = ? ORDER BY name");
    for (const { name, checkpoint } of named.all(this.#thread.id) as { name: string; checkpoint: number }[]) {
      const number = this.#numberOf(checkpoint);
      if (number !== null) yield { table: "named", name, checkpoint: number };
    }
  }

  #ofThread(thread: number): Owned[] {
    return this.#sql
      .prepare(
        `WITH RECURSIVE wanted(id) AS (SELECT id FROM checkpoint WHERE thread = ?
           UNION SELECT t.head FROM thread t WHERE t.id = ? AND t.head IS NOT NULL
           UNION SELECT c.parent FROM checkpoint c JOIN wanted ON c.id = wanted.id WHERE c.parent IS NOT NULL)
         SELECT id, thread, seq FROM checkpoint WHERE id IN (SELECT id FROM wanted) ORDER BY id`,
      )
      .all(thread, thread) as Owned[];
  }

  /** From a checkpoint back to the first. */
  #line(head: number | null): number[] {
    return this.#sql.prepare(`${parentLine} SELECT id FROM line`).pluck().all(head) as number[];
  }

  /** Which thread of the bundle has a checkpoint: the first that has not given its number away, those of the head's line first, then the thread's own. */
  #owners(rows: readonly Owned[], line: ReadonlySet<number>) {
    const order = (row: Owned): number => (line.has(row.id) ? 0 : row.thread === this.#thread.id ? 1 : 2);
    const taken: Set<number>[] = [new Set()];
    const owner = new Map<number, number>();
    for (const { id, seq } of [...rows].sort((a, b) => order(a) - order(b) || a.id - b.id)) {
      let index = taken.findIndex((one) => !one.has(seq));
      if (index < 0) index = taken.push(new Set()) - 1;
      taken[index]?.add(seq);
      owner.set(id, index);
    }
    return { owner, highest: taken.map((seqs) => [...seqs].reduce((high, seq) => Math.max(high, seq), -1)) };
  }

  #effectStretches(): Map<number, number[]> {
    const find = this.#sql.prepare("SELECT id FROM effect WHERE thread = ? ORDER BY id").pluck();
    const others = this.#ownThreads.filter((id) => id !== this.#thread.id).sort((a, b) => a - b);
    return new Map([...others, this.#thread.id].map((id) => [id, find.all(id) as number[]]));
  }

  *#rows(): Generator<CheckpointRow> {
    const find = this.#sql.prepare(`${checkpointSelect} WHERE c.id = ?`);
    for (const [id] of this.#checkpoints) yield find.get(id) as CheckpointRow;
  }

  #one<T>(table: string, id: number): T {
    return this.#sql.prepare(`SELECT * FROM ${table} WHERE id = ?`).get(id) as T;
  }

  #journal(): { key: string; value: string; checkpoint: number | null }[] {
    const rows = this.#sql
      .prepare("SELECT key, value, checkpoint FROM journal WHERE thread = ? ORDER BY id")
      .all(this.#thread.id) as { key: string; value: string; checkpoint: number | null }[];
    return rows.filter((row) => row.checkpoint === null || this.#checkpoints.has(row.checkpoint));
  }

  #numberOf(checkpoint: number | null | undefined): number | null {
    return (checkpoint == null ? undefined : this.#checkpoints.get(checkpoint)) ?? null;
  }

  #told(lessons: string): number[] {
    return (JSON.parse(lessons) as number[]).flatMap((id) => this.#lessons.get(id) ?? []);
  }

  /** How many effects of the bundle a thread had done up to this one. */
  #boundary(thread: number, upTo: number): number {
    const stretch = this.#stretches.get(thread) ?? [];
    const first = stretch[0] === undefined ? 1 : (this.#effects.get(stretch[0]) as number);
    return first - 1 + stretch.filter((id) => id <= upTo).length;
  }

  #place(text: string | null): ThreadPart["place"] {
    if (text === null) return null;
    const { left, at, touched, waiting, storing } = JSON.parse(text) as Place;
    const number = this.#numberOf(left);
    return {
      ...{ at: { ...at }, touched, waiting: [...waiting] },
      ...(number === null ? {} : { left: number }),
      ...(storing === undefined ? {} : { storing }),
    };
  }

  /** The nearest one before it on the environment's timeline that is in the bundle. */
  #before(timeline: number | null): number | null {
    const find = this.#sql.prepare("SELECT timeline FROM checkpoint WHERE id = ?").pluck();
    let at = timeline;
    while (at !== null && !this.#checkpoints.has(at)) at = (find.get(at) as number | null | undefined) ?? null;
    return this.#numberOf(at);
  }

  /** Of a single one: how many lie before it. */
  #pruned(row: CheckpointRow): number {
    if (!this.#single) return row.pruned;
    const line = this.#sql
      .prepare(`${parentLine} SELECT count(*) - 1 + sum(pruned) FROM checkpoint WHERE id IN (SELECT id FROM line)`)
      .pluck();
    return line.get(row.id) as number;
  }

  #checkpoint(row: CheckpointRow): Row {
    const partial = row.partial === null ? null : (JSON.parse(row.partial) as Partial);
    const lost = row.state === "not-restorable";
    const known = (JSON.parse(row.effects) as KnownEffects).filter(([thread]) => this.#stretches.has(thread));
    return {
      table: "checkpoint",
      thread: this.#owner.get(row.id) as number,
      seq: row.seq,
      parent: this.#numberOf(row.parent),
      timeline: this.#before(row.timeline),
      turn: row.turn,
      kind: row.kind,
      state: row.state as "durable",
      reason: row.reason,
      label: row.label,
      anchor: row.anchor,
      context: row.context,
      messages: row.messages,
      serializer: row.serializer,
      files: lost ? null : row.files,
      processes: lost ? null : row.processes,
      tools: row.tools,
      toolsFiles: row.tools_files,
      toolsProcesses: row.tools_processes,
      changes: row.changes === null || this.#single ? null : JSON.parse(row.changes),
      activity: JSON.parse(row.activity),
      problems: JSON.parse(row.problems),
      timings: JSON.parse(row.timings),
      lessons: this.#told(row.lessons),
      pruned: this.#pruned(row),
      partial: partial === null ? null : { from: this.#numberOf(partial.from), paths: [...partial.paths] },
      effects: known.map(([thread, above, upTo]) => [this.#boundary(thread, above), this.#boundary(thread, upTo)]),
      createdAt: row.created_at,
    };
  }

  #rewind(row: RewindRow): Row {
    // What another thread did, or led elsewhere than to one checkpoint alone, is known and not to be undone.
    const own = row.thread === this.#thread.id && !this.#single;
    const result = JSON.parse(row.result) as { lessons?: readonly number[] };
    return {
      table: "rewind",
      key: own ? row.key : null,
      kind: row.kind as "rewind",
      requestedBy: row.requested_by as "agent",
      scope: row.scope as "both",
      headBefore: this.#numberOf(row.head_before),
      leftAt: own ? this.#numberOf(row.left_at) : null,
      leftSeq: row.left_seq,
      target: this.#numberOf(row.target),
      targetSeq: row.target_seq,
      epoch: row.epoch,
      delivered: !own || row.delivered !== 0,
      undone: !own || row.undone !== 0,
      result: { ...result, lessons: this.#told(JSON.stringify(result.lessons ?? [])) } as never,
      createdAt: row.created_at,
    };
  }
}

interface Owned {
  readonly id: number;
  readonly thread: number;
  readonly seq: number;
}

const numbered = (ids: readonly number[]): Map<number, number> => new Map(ids.map((id, index) => [id, index + 1]));
