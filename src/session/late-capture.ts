// A turn that was begun without a capture gets one when its reply is there, before its tools run.
import { type CaptureJob, captureJob } from "../coordinator/jobs.ts";
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
  const { catalog, coordinator, gate, jobs, objects } = deps;
  await coordinator.exclusive(() => objects.use(() => complete(deps, row, issued)));
  const durable = gate === "durable" ? deps.persisting.get(row.id) : undefined;
  if (durable !== undefined) jobs.hurry(durable);
  await durable;
  return catalog.checkpoint(row.id) as CheckpointRow;
}

async function complete(deps: SessionDeps, row: CheckpointRow, issued: number): Promise<void> {
  const { catalog, environment, jobs } = deps;
  catalog.requireEpoch(issued);
  const capture = captureJob(jobs, environment, { promoted: true }, (one) => observed(environment, one));
  try {
    const completed = await half(deps, row, capture, issued);
    if (completed === undefined) return capture.letGo();
    const durable = capture.persist(() => persist(deps, completed)).result;
    durable.catch(() => {});
    persisted(deps, completed, durable);
    deps.track(durable);
  } catch (error) {
    capture.letGo();
    throw error;
  }
}

/** undefined where the row has got none. */
async function half(
  deps: SessionDeps,
  row: CheckpointRow,
  capture: CaptureJob,
  issued: number,
): Promise<CheckpointRow | undefined> {
  const { catalog } = deps;
  let captured: Captured;
  try {
    captured = await capture.captured;
  } catch (error) {
    catalog.requireEpoch(issued);
    catalog.markNotRestorable(row.id, reasonOf(error));
    return undefined;
  }
  const parent = row.parent === null ? undefined : catalog.checkpoint(row.parent);
  const { manifest, problems } = captured;
  const changes = await changesSince(deps, parent, manifest);
  const timings = JSON.parse(row.timings) as Timings;
  const bytes = timings.bytes + captured.bytes;
  fault("checkpoint.before-commit");
  const done = catalog.complete(row.id, { manifest, problems, changes, timings: { ...timings, bytes } }, issued);
  fault("checkpoint.committed");
  return done ? (catalog.checkpoint(row.id) as CheckpointRow) : undefined;
}

export function reasonOf(failure: unknown): string {
  return failure instanceof Error ? failure.message.replace(/\.$/, "") : "the environment could not be captured";
}
