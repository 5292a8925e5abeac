// Sees a published pair to the disk.
import { reportDurable } from "../events.ts";
import { fault } from "../faults.ts";
import type { CheckpointRow } from "../store/rows.ts";
import type { SessionDeps } from "./deps.ts";
import { checkpointId } from "./views.ts";

/** Both halves are on disk when it resolves. */
export async function persist(
  { catalog, objects, syncLog }: Pick<SessionDeps, "catalog" | "objects" | "syncLog">,
  row: CheckpointRow,
): Promise<void> {
  await objects.sync();
  // A half that it gets later is not among what was synced here.
  if (row.state !== "not-restorable") catalog.markDurable(row.id);
  await syncLog();
  fault("durable.committed");
  reportDurable({ thread: row.thread_name, checkpoint: checkpointId(row) });
}

/** Notes that a checkpoint is being brought to the disk. */
export function persisted({ persisting }: SessionDeps, { id }: CheckpointRow, durable: Promise<unknown>): void {
  persisting.set(id, durable);
  void durable.catch(() => {}).then(() => persisting.delete(id));
}
