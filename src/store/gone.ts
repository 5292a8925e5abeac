// What went with the killed owner of an environment that ends with it (F-75).
import type { Gone, Place } from "./rows.ts";
import type { Statements } from "./statements.ts";

/** Of one thread: what tools did of which its conversation can know is gone. */
export interface NewGone {
  readonly thread: number;
  readonly gone: Gone;
  /** Where the files stand among the states that its framework names. */
  readonly place: Place | null;
}

export function openGone({ get, run, transaction }: Statements, environment: string) {
  const goneOf = (thread: number): Gone | undefined => {
    const text = get<{ gone: string | null }>("SELECT gone FROM thread WHERE id = ?", thread)?.gone ?? null;
    return text === null ? undefined : (JSON.parse(text) as Gone);
  };
  return {
    /** One transaction. @param behind the checkpoint at which the environment began again, and those of its timeline behind that */
    markGone(behind: readonly number[], threads: readonly NewGone[]): void {
      transaction(() => {
        run(
          `DELETE FROM journal WHERE behind IN (SELECT value FROM json_each(?))
             AND epoch = (SELECT epoch FROM environment WHERE id = ?)
             AND thread IN (SELECT id FROM thread WHERE environment = ?)`,
          JSON.stringify(behind),
          environment,
          environment,
        );
        for (const { thread, gone, place } of threads) {
          run("UPDATE thread SET gone = ? WHERE id = ?", JSON.stringify(gone), thread);
          if (place !== null) run("UPDATE thread SET place = ? WHERE id = ?", JSON.stringify(place), thread);
        }
      });
    },
    /** These calls of the thread run again. */
    addAgain(thread: number, calls: readonly string[]): void {
      transaction(() => {
        const gone = goneOf(thread);
        if (gone === undefined || calls.every((call) => gone.again.includes(call))) return;
        const again = [...new Set([...gone.again, ...calls])];
        run("UPDATE thread SET gone = ? WHERE id = ?", JSON.stringify({ ...gone, again }), thread);
      });
    },
    /** A tool of the thread runs, or has ended. @param told false: its adapter does not tell */
    setActed(thread: number, told: boolean): void {
      const head = told ? get<{ head: number | null }>("SELECT head FROM environment WHERE id = ?", environment) : null;
      const acted = told ? (head?.head ?? 0) : null;
      if (get("SELECT 1 FROM thread WHERE id = ? AND acted IS ?", thread, acted) !== undefined) return;
      run("UPDATE thread SET acted = ? WHERE id = ?", acted, thread);
    },
  };
}
