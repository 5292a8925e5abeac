// Prepared statements of a catalog, by their text; what a full or broken disk fails is told as such.
import { asWriteFailure } from "../errors.ts";
import type { Sql, Statement } from "./database.ts";

export type Statements = ReturnType<typeof openStatements>;

export function openStatements(sql: Sql) {
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
  /** Of one moment, and with one lock for all that is read: each look of its own takes a lock of the file and gives it back. */
  const read = <T>(work: () => T): T => (sql.inTransaction ? work() : sql.transaction(work).deferred());
  return { get, all, run, transaction, read };
}
