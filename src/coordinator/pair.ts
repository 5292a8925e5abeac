// One matched pair in the making: both halves are stored side by side, published in one transaction, then made durable.
import { performance } from "node:perf_hooks";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Capture, Captured, Environment } from "../environment/environment.ts";
import { withEvent } from "../events.ts";
import { captureJob, type Jobs, knownJob } from "./jobs.ts";

export interface StoredHalf {
  /** Bytes written for the conversation. */
  readonly bytes: number;
}

export interface PairSteps<Context extends StoredHalf, Row> {
  readonly environment: Environment;
  /** The environment's half where it is known without a capture; a `captured` that rejects says why there is none. Default: a capture that begins now. */
  readonly known?: Capture | undefined;
  readonly jobs: Jobs;
  /** Ends the wait with a failed environment half; the agent goes on without it. */
  readonly signal: AbortSignal | undefined;
  storeContext(): Promise<Context>;
  /** One transaction. `captured` is null when the environment could not be captured, for `failure`. */
  publish(context: Context, captured: Captured | null, failure: unknown, workMs: number): Promise<Row>;
  /** Both halves are on disk when it resolves. */
  persist(row: Row): Promise<void>;
}

export interface Pair<Row> {
  /** The published row. Rejects when the pair could not be stored at all. */
  readonly published: Promise<Row>;
  /** The row once both halves are durable. */
  readonly durable: Promise<Row>;
  /** Somebody waits for it. */
  promote(until: "captured" | "durable"): void;
  /** Milliseconds of work until published; 0 before. */
  readonly workMs: () => number;
}

/** Starts the capture at once; the caller waits where it must (invariant 1: nothing is visible before `publish`). */
export function beginPair<Context extends StoredHalf, Row>(steps: PairSteps<Context, Row>): Pair<Row> {
  const start = performance.now();
  let workMs = 0;
  const { environment, known, jobs, signal } = steps;
  const capture =
    known === undefined
      ? captureJob(jobs, environment, { signal }, (one) => observed(environment, one))
      : knownJob(jobs, known);
  const published = (async () => {
    const [half, conversation] = await Promise.allSettled([capture.captured, nextTurn().then(steps.storeContext)]);
    if (conversation.status === "rejected") throw conversation.reason;
    const found = half.status === "fulfilled" ? half.value : null;
    const failure = half.status === "rejected" ? half.reason : undefined;
    workMs = performance.now() - start;
    return steps.publish(conversation.value, found, failure, workMs);
  })();
  let promoteDurable = (): void => {};
  let hurried = false;
  const durable = published.then(async (row) => {
    const job = capture.persist(() => steps.persist(row));
    promoteDurable = job.promote;
    if (hurried) job.promote();
    await job.result;
    return row;
  });
  published.catch(capture.letGo);
  durable.catch(() => {});
  return {
    published,
    durable,
    promote(until) {
      capture.promote();
      if (until === "captured") return;
      hurried = true;
      promoteDurable();
    },
    workMs: () => workMs,
  };
}

/** A capture of a pair, told to whoever listens. */
export function observed({ kind }: Environment, { captured }: Capture): Promise<Captured> {
  return withEvent(
    "capture",
    { environment: kind },
    () => captured,
    ({ manifest: { files, processes }, bytes, problems }) => ({ files, processes, bytes, problems: problems.length }),
  );
}
