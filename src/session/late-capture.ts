// A turn that was begun without a capture gets one when its reply is there, before its tools run.
import { observed } from "../coordinator/pair.ts";
import type { Captured } from "../environment/environment.ts";
import { fault } from "../faults.ts";
import type { CheckpointRow } from "../store/rows.ts";
import type { SessionDeps } from "./deps.ts";
import { persist, persisted } from "./persist.ts";
import { changesSince } from "./turn-capture.ts";
import type { Timings } from "./types.ts";

/**
 * The state of the environment now becomes the other half of `row`. Where it cannot be captured the row says why; where the head has moved on nothing is done.
 * @param issued the epoch in which the turn began
 * @throws STALE_EPOCH when a rewind came first
 */
export async function captureLate(deps: SessionDeps, row: CheckpointRow, issued: number): Promise<CheckpointRow> {
  const { catalog, coordinator, gate, objects } = deps;
  await coordinator.exclusive(() => objects.use(() => complete(deps, row, issued)));
  if (gate === "durable") await deps.persisting.get(row.id);
  return catalog.checkpoint(row.id) as CheckpointRow;
}

async function complete(deps: SessionDeps, row: CheckpointRow, issued: number): Promise<void> {
  const { catalog, environment } = deps;
  catalog.requireEpoch(issued);
  const capture = environment.capture();
  capture.durable.catch(() => {});
  let captured: Captured;
  try {
    captured = await observed(environment, capture);
  } catch (error) {
    catalog.requireEpoch(issued);
    catalog.markNotRestorable(row.id, reasonOf(error));
    return;
  }
  const parent = row.parent === null ? undefined : catalog.checkpoint(row.parent);
  const { manifest, problems } = captured;
  const changes = await changesSince(deps, parent, manifest);
  const timings = JSON.parse(row.timings) as Timings;
  const bytes = timings.bytes + captured.bytes;
  fault("checkpoint.before-commit");
  const done = catalog.complete(row.id, { manifest, problems, changes, timings: { ...timings, bytes } }, issued);
  fault("checkpoint.committed");
  if (!done) return;
  const completed = catalog.checkpoint(row.id) as CheckpointRow;
  const durable = capture.durable.then(() => persist(deps, completed));
  persisted(deps, completed, durable);
  deps.track(durable);
}

export function reasonOf(failure: unknown): string {
  return failure instanceof Error ? failure.message.replace(/\.$/, "") : "the environment could not be captured";
}
