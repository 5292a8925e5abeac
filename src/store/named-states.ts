// States that a thread's framework names itself, and the checkpoint that each belongs to (F-46).
import { checkpointSelect } from "./lines.ts";
import type { CheckpointRow, Place } from "./rows.ts";
import type { Statements } from "./statements.ts";

export function openNamedStates({ get, run, transaction }: Statements) {
  return {
    stateNamed: (thread: number, name: string): CheckpointRow | undefined =>
      get(
        `${checkpointSelect} WHERE c.id = (SELECT checkpoint FROM named_state WHERE thread = ? AND name = ?)`,
        thread,
        name,
      ),
    nameState: (thread: number, name: string, checkpoint: number): void => {
      run("INSERT OR REPLACE INTO named_state (thread, name, checkpoint) VALUES (?, ?, ?)", thread, name, checkpoint);
    },
    forgetStates: (thread: number): void => {
      transaction(() => {
        run("DELETE FROM named_state WHERE thread = ?", thread);
        run("UPDATE thread SET place = NULL WHERE id = ?", thread);
      });
    },
    place: (thread: number): Place | null => {
      const text = get<{ place: string | null }>("SELECT place FROM thread WHERE id = ?", thread)?.place ?? null;
      return text === null ? null : (JSON.parse(text) as Place);
    },
    setPlace: (thread: number, place: Place): void => {
      run("UPDATE thread SET place = ? WHERE id = ?", JSON.stringify(place), thread);
    },
  };
}
