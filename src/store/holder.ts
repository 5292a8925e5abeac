// The fence of an environment: a number that rises when a holder that does not answer is replaced; what the replaced one still writes is refused (F-41).
import { RewindError } from "../errors.ts";
import type { Sql } from "./database.ts";

/** @throws HOLDER_CHANGED. Call it inside of the transaction that it guards. */
export type RequireHolder = () => void;

export function openHolder(sql: Sql, environment: string): RequireHolder {
  const holder = sql.prepare("SELECT holder FROM environment WHERE id = ?").pluck();
  const own = holder.get(environment);
  return () => {
    if (holder.get(environment) === own) return;
    throw new RewindError("HOLDER_CHANGED", "Another process has taken over this workspace.", {
      hint: "End this one: nothing that it does is recorded any more. The other process goes on.",
      details: { environment },
    });
  };
}

/**
 * Everything that was issued by the holder before is refused from now on: its rows, its turns, its packs.
 * @throws ENVIRONMENT_BUSY while it restores files, which no fence in the store can stop
 */
export function replaceHolder(sql: Sql, environment: string): void {
  sql
    .transaction(() => {
      const restores = sql.prepare("SELECT 1 FROM intent WHERE environment = ? AND state = 'open'").get(environment);
      if (restores !== undefined) {
        throw new RewindError(
          "ENVIRONMENT_BUSY",
          "The process that holds this workspace stopped in the middle of a rewind.",
          {
            hint: "End that process; the next open finishes its rewind.",
            details: { environment },
          },
        );
      }
      sql.prepare("UPDATE environment SET holder = holder + 1, epoch = epoch + 1 WHERE id = ?").run(environment);
      sql.prepare("UPDATE pack SET sealed = 1 WHERE environment = ?").run(environment);
    })
    .immediate();
}
