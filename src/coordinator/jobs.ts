// What one environment asks of the engine.
import { statSync } from "node:fs";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Capture, Captured, Environment } from "../environment/environment.ts";
import type { Engine, Job, JobKind } from "./engine/engine.ts";

export interface JobOptions {
  readonly signal?: AbortSignal | undefined;
  /** Somebody waits for it from the beginning. */
  readonly promoted?: boolean;
}

export interface Jobs {
  run<T>(kind: JobKind, work: () => Promise<T>, options?: JobOptions): Job<T>;
  /** Somebody waits for everything that this environment has under way, and for what is added to it until `until` settles. */
  hurry(until?: Promise<unknown>): void;
  /** Resolves when another state may be captured: no more wait to be made durable than may; or when the signal comes. */
  room(signal?: AbortSignal): Promise<void>;
}

/** Everything at once, for who only reads. */
export const atOnce: Jobs = {
  run: (_kind, work) => ({ result: work(), promote() {}, waitedMs: () => 0 }),
  hurry() {},
  room: async () => {},
};

export interface JobPlace {
  readonly engine: Engine;
  /** Id of the environment. */
  readonly environment: string;
  readonly device: (kind: JobKind) => string;
  /** How many captured states may wait to be made durable. */
  readonly waiting: number;
}

export function jobsOf({ engine, environment, device, waiting }: JobPlace): Jobs {
  let waitedFor = 0;
  return {
    run(kind, work, { signal, promoted = false } = {}) {
      const first = promoted || waitedFor > 0;
      return engine.run({ kind, environment, device: device(kind), signal, promoted: first }, work);
    },
    hurry(until) {
      engine.hurry(environment);
      if (until === undefined) return;
      waitedFor++;
      const done = (): void => void waitedFor--;
      until.then(done, done);
    },
    async room(signal) {
      // With the one that is captured then there are as many again.
      const room = engine.room(environment, waiting - 1);
      if (room === undefined || signal?.aborted === true) return;
      const aborted = new Promise<void>((resolve) =>
        signal?.addEventListener("abort", () => resolve(), { once: true }),
      );
      await Promise.race([room, aborted]);
    },
  };
}

/** Device of each kind of work: a capture's is that of `captured`, or of `stored` where there is no such folder. */
export function devicesOf(captured: string, stored: string): JobPlace["device"] {
  const store = deviceOf(stored) ?? "";
  const capture = deviceOf(captured) ?? store;
  return (kind) => (kind === "persist" ? store : capture);
}

const deviceOf = (path: string): string | undefined =>
  statSync(path, { bigint: true, throwIfNoEntry: false })?.dev.toString();

/** A capture of which both halves have their turns. */
export interface CaptureJob {
  readonly captured: Promise<Captured>;
  promote(): void;
  /** Runs `work` when the state is durable, or could not be captured; rejects where it could not be made durable. */
  persist(work: () => Promise<void>): Job<void>;
  /** It is not waited for until it is durable. */
  letGo(): void;
}

/** @param follow of the capture, when its turn has come */
export function captureJob(
  jobs: Jobs,
  environment: Environment,
  { signal, promoted }: JobOptions = {},
  follow: (capture: Capture) => Promise<Captured> = ({ captured }) => captured,
): CaptureJob {
  let letGo = (): void => {};
  const mayPersist = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  let durable = Promise.resolve();
  const work = (): Promise<Captured> => {
    const capture = environment.capture({ mayPersist, ...(signal === undefined ? {} : { signal }) });
    capture.durable.catch(() => {});
    durable = capture.captured.then(
      () => capture.durable,
      () => {},
    );
    durable.catch(() => {});
    return follow(capture);
  };
  const job = jobs.run("capture", work, { signal, promoted: promoted === true });
  job.result.catch(() => {});
  return {
    captured: job.result,
    promote: job.promote,
    letGo,
    persist: (then) =>
      jobs.run("persist", async () => {
        letGo();
        await Promise.all([durable, nextTurn()]);
        await then();
      }),
  };
}

/** The same of a state that is there already. Its being durable is waited for outside of a turn: it may be the work of another one. */
export function knownJob(jobs: Jobs, { captured, durable }: Capture): CaptureJob {
  return {
    captured,
    promote() {},
    letGo() {},
    persist(then) {
      let job: Job<void> | undefined;
      let promoted = false;
      const result = durable.then(() => {
        job = jobs.run("persist", then, { promoted });
        return job.result;
      });
      result.catch(() => {});
      return {
        result,
        promote() {
          promoted = true;
          if (job === undefined) jobs.hurry();
          else job.promote();
        },
        waitedMs: () => job?.waitedMs() ?? 0,
      };
    },
  };
}
