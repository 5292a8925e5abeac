// Puts a bundle's rows into the catalog as a workspace of their own, in one transaction.
import type { Sql, Statement } from "../store/database.ts";
import { identityOf } from "../store/workspaces.ts";
import type { Header, Row, RowOf } from "./schema.ts";

/** What the halves of checkpoints are called in this store. */
export interface Landed {
  readonly files: (name: string) => string;
  /** Null where the processes are left behind. */
  readonly processes: (name: string) => string | null;
}

export interface Arrival extends Landed {
  readonly workspace: string;
  readonly environment: string;
  /** Real path. */
  readonly folder: string;
  readonly header: Header;
  readonly rows: Iterable<Row>;
}

/** @returns how many checkpoints there are */
export function insertRows(sql: Sql, arrival: Arrival): number {
  return sql.transaction(() => new Insertion(sql, arrival).run()).immediate();
}

class Insertion {
  readonly #sql: Sql;
  readonly #arrival: Arrival;
  /** A row's id is its number in the bundle, and this. */
  readonly #base: Readonly<Record<"checkpoint" | "rewind" | "lesson" | "effect", number>>;
  readonly #threads: number[] = [];
  readonly #counts = { checkpoint: 0, rewind: 0, lesson: 0, effect: 0 };
  readonly #statements = new Map<string, Statement>();

  constructor(sql: Sql, arrival: Arrival) {
    this.#sql = sql;
    this.#arrival = arrival;
    const highest = (table: string): number =>
      sql.prepare(`SELECT coalesce(max(id), 0) FROM ${table}`).pluck().get() as number;
    const everGiven = sql.prepare("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'effect'").pluck();
    this.#base = {
      checkpoint: highest("checkpoint"),
      rewind: highest("rewind"),
      lesson: highest("lesson"),
      effect: Math.max(highest("effect"), everGiven.get() as number),
    };
  }

  run(): number {
    const { workspace, environment, folder, header, rows } = this.#arrival;
    const now = new Date().toISOString();
    const { dev = "", ino = "" } = identityOf(folder) ?? {};
    this.#sql.prepare("UPDATE workspace SET path = path || '#replaced-' || id WHERE path = ?").run(folder);
    this.#insert("workspace", { id: workspace, path: folder, dev, ino, created_at: now });
    const { kind, epoch } = header.environment;
    this.#insert("environment", { id: environment, workspace, kind, epoch });
    for (const [index, thread] of header.threads.entries()) {
      const { name, nextSeq, effectsFrom, activeAt, lessons, place } = thread;
      const added = this.#insert("thread", {
        ...{ environment, name, next_seq: nextSeq },
        ...{
          lessons: json(lessons.map((one) => this.#base.lesson + one)),
          effects_from: this.#base.effect + effectsFrom,
        },
        // The thread itself is the one that is meant where none is named.
        active_at: index === 0 ? now : activeAt,
        place:
          place === null
            ? null
            : json({ ...place, ...(place.left === undefined ? {} : { left: this.#at(place.left) }) }),
      });
      this.#threads.push(Number(added));
    }
    for (const row of rows) this.#add(row);
    for (const [index, { head, forkedFrom }] of header.threads.entries())
      this.#sql
        .prepare("UPDATE thread SET head = ?, forked_from = ? WHERE id = ?")
        .run(this.#at(head), this.#at(forkedFrom), this.#threads[index]);
    const [main] = header.threads;
    this.#sql.prepare("UPDATE environment SET head = ? WHERE id = ?").run(this.#at(main?.head ?? null), environment);
    return this.#counts.checkpoint;
  }

  #add(row: Row): void {
    if (row.table === "checkpoint") this.#checkpoint(row);
    else if (row.table === "rewind") this.#rewind(row);
    else if (row.table === "lesson") this.#lesson(row);
    else if (row.table === "effect") this.#effect(row);
    else if (row.table === "journal")
      this.#insert("journal", {
        ...{ thread: this.#threads[0], key: row.key, value: row.value },
        checkpoint: this.#at(row.checkpoint),
      });
    else
      this.#insert("named_state", { thread: this.#threads[0], name: row.name, checkpoint: this.#at(row.checkpoint) });
  }

  #checkpoint(row: RowOf<"checkpoint">): void {
    const main = this.#threads[0];
    this.#insert("checkpoint", {
      ...{ id: this.#base.checkpoint + ++this.#counts.checkpoint, thread: this.#threads[row.thread], seq: row.seq },
      ...{ parent: this.#at(row.parent), timeline: this.#at(row.timeline), turn: row.turn, kind: row.kind },
      // Everything was on disk before this row.
      ...{ state: row.state === "captured" ? "durable" : row.state, reason: row.reason, label: row.label },
      ...{ anchor: row.anchor, context: row.context, messages: row.messages, serializer: row.serializer },
      ...{ manifest: this.#manifest(row.files, row.processes), tools: row.tools },
      tools_from: this.#manifest(row.toolsFiles, row.toolsProcesses),
      ...{ changes: row.changes === null ? null : json(row.changes), activity: json(row.activity) },
      ...{ problems: json(row.problems), timings: json(row.timings), pruned: row.pruned },
      lessons: json(row.lessons.map((one) => this.#base.lesson + one)),
      partial: row.partial === null ? null : json({ from: this.#at(row.partial.from) ?? 0, paths: row.partial.paths }),
      effects: json(row.effects.map(([from, to]) => [main, this.#base.effect + from, this.#base.effect + to])),
      created_at: row.createdAt,
    });
  }

  #rewind(row: RowOf<"rewind">): void {
    const result = { ...row.result, lessons: row.result.lessons.map((one) => this.#base.lesson + one) };
    this.#insert("rewind", {
      ...{ id: this.#base.rewind + ++this.#counts.rewind, thread: this.#threads[0], key: row.key, kind: row.kind },
      ...{ requested_by: row.requestedBy, scope: row.scope, head_before: this.#at(row.headBefore) },
      ...{ left_at: this.#at(row.leftAt), left_seq: row.leftSeq, target: this.#at(row.target) },
      ...{ target_seq: row.targetSeq, epoch: row.epoch, delivered: row.delivered ? 1 : 0, undone: row.undone ? 1 : 0 },
      ...{ result: json(result), created_at: row.createdAt },
    });
  }

  #lesson(row: RowOf<"lesson">): void {
    this.#insert("lesson", {
      ...{ id: this.#base.lesson + ++this.#counts.lesson, thread: this.#threads[0] },
      ...{ rewind: this.#base.rewind + row.rewind, text: row.text },
      parts: row.parts === null ? null : json(row.parts),
      covers: row.covers === null ? null : json(row.covers.map((one) => this.#base.lesson + one)),
      created_at: row.createdAt,
    });
  }

  #effect(row: RowOf<"effect">): void {
    this.#insert("effect", {
      ...{ id: this.#base.effect + ++this.#counts.effect, thread: this.#threads[0] },
      ...{ checkpoint: this.#at(row.checkpoint), seq: row.seq, epoch: row.epoch, call: row.call, tool: row.tool },
      ...{ class: row.class, description: row.description, arguments: row.arguments, consumes: json(row.consumes) },
      ...{ state: row.state, result: row.result, shown: row.shown, note: row.note, consent: row.consent },
      replays: row.replays === null ? null : this.#base.effect + row.replays,
      ...{ created_at: row.createdAt, ended_at: row.endedAt },
    });
  }

  #at(number: number | null): number | null {
    return number === null ? null : this.#base.checkpoint + number;
  }

  #manifest(files: string | null, processes: string | null): number | null {
    if (files === null) return null;
    const { files: filesOf, processes: processesOf } = this.#arrival;
    const halves = [filesOf(files), processes === null ? null : processesOf(processes)];
    const found = this.#prepared("SELECT id FROM manifest WHERE files IS ? AND processes IS ? ORDER BY id LIMIT 1").get(
      ...halves,
    ) as { id: number } | undefined;
    if (found !== undefined) return found.id;
    const at = new Date().toISOString();
    const [files_, processes_] = halves;
    return Number(this.#insert("manifest", { files: files_, processes: processes_, files_at: at, processes_at: at }));
  }

  #insert(table: string, values: Readonly<Record<string, unknown>>): number | bigint {
    const names = Object.keys(values);
    const text = `INSERT INTO ${table} (${names.join(", ")}) VALUES (${names.map(() => "?").join(", ")})`;
    return this.#prepared(text).run(...Object.values(values)).lastInsertRowid;
  }

  #prepared(text: string): Statement {
    const found = this.#statements.get(text) ?? this.#sql.prepare<unknown[]>(text);
    this.#statements.set(text, found);
    return found;
  }
}

const json = (value: unknown): string => JSON.stringify(value);
