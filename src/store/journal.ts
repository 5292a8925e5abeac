// What adapters must find again in another process (F-40).
import type { JournalRow } from "./rows.ts";
import type { Statements } from "./statements.ts";

export function openJournal({ get, run, transaction }: Statements, environment: string) {
  return {
    /**
     * @param values keys, and the names of what is kept under them
     * @param checkpoint with which they go
     * @param ofTools they tell what was done in the environment, and are gone where that is (F-75)
     */
    putJournal(
      { thread, checkpoint, ofTools }: { thread: number; checkpoint: number | null; ofTools: boolean },
      values: readonly (readonly [string, string])[],
    ): void {
      transaction(() => {
        for (const [key, value] of values) {
          run(
            `INSERT INTO journal (thread, checkpoint, key, value, behind, epoch)
               SELECT ?, ?, ?, ?, CASE WHEN ? THEN head END, CASE WHEN ? THEN epoch END FROM environment WHERE id = ?
             ON CONFLICT (thread, key) DO UPDATE SET checkpoint = excluded.checkpoint, value = excluded.value,
               behind = excluded.behind, epoch = excluded.epoch`,
            thread,
            checkpoint,
            key,
            value,
            ofTools ? 1 : 0,
            ofTools ? 1 : 0,
            environment,
          );
        }
      });
    },
    journal: (thread: number, key: string): JournalRow | undefined =>
      get<JournalRow>("SELECT value FROM journal WHERE thread = ? AND key = ?", thread, key),
  };
}
