// The engine's face: when the work of an environment may run, on a host that many share. It only grants; the work stays in the process that owns the environment.
import { availableParallelism } from "node:os";

/** "capture": until a state is fixed. "persist": until it is durable. "restore": everything of a rewind. */
export type JobKind = "capture" | "persist" | "restore";

export interface JobRequest {
  readonly kind: JobKind;
  /** Its id in the store: no environment waits because another asks for more. */
  readonly environment: string;
  /** What the work reads or writes most: names the file system's device. */
  readonly device: string;
  /** Somebody waits for it from the beginning. */
  readonly promoted?: boolean;
  /** Ends the wait (CAPTURE_FAILED); what runs ends itself. */
  readonly signal?: AbortSignal | undefined;
}

export interface Job<T> {
  /** Settles as the work does; rejects when the signal came before its turn. */
  readonly result: Promise<T>;
  /** Somebody waits for it now: it comes before everything for which nobody does. */
  promote(): void;
  /** Milliseconds until its turn came, or until now. */
  waitedMs(): number;
}

/**
 * Contract.
 *
 * - `work` is called at most once, in the caller's asynchronous context; in the call of `run` itself when its turn is at once.
 * - A restore never waits. A capture and what makes it durable wait while as many of their kind run as the limits say, on their device and on the host.
 * - What was promoted comes before what was not; among equals the environments take turns, and each gets its jobs in order.
 * - Jobs that make durable and wait for the same device go together and count as one: what they sync is mostly the same.
 * - No job waits for ever: when the process that grants ends, another takes its place; when it does not answer, this one goes on by its own limits alone.
 */
export interface Engine {
  run<T>(request: JobRequest, work: () => Promise<T>): Job<T>;
  /** Promotes every job of the environment that waits. */
  hurry(environment: string): void;
  /** Resolves when at most so many jobs that make durable wait in that environment; undefined when that is so already. */
  room(environment: string, waiting: number): Promise<void> | undefined;
  /** Jobs that wait must have ended. */
  close(): Promise<void>;
}

/** How many may run at once. */
export interface KindLimits {
  readonly perDevice: number;
  /** On all devices together. */
  readonly all: number;
}

/** Of the process that grants, for the whole host; the others' are in force while they are on their own. */
export interface EngineLimits {
  /** Captures and restores, which take the processors. */
  readonly capture: KindLimits;
  /** What makes durable, which takes the disks. */
  readonly persist: KindLimits;
}

/** A capture keeps about one processor busy; more than a few flushes of one device at once only wait for each other. */
export function defaultLimits(cores: number = availableParallelism()): EngineLimits {
  const captures = Math.max(2, cores);
  return { capture: { perDevice: captures, all: captures }, persist: { perDevice: 2, all: Math.max(4, cores) } };
}

/** A job as whoever grants sees it. */
export interface Ticket extends Omit<JobRequest, "signal" | "promoted"> {
  readonly promoted: boolean;
  /** It has begun already: it is counted and not granted again. */
  readonly running: boolean;
}

export interface Place {
  promote(): void;
  /** It is done, or is not wanted any more. */
  end(): void;
}

/** Whoever grants: the queue of this process, or that of another behind a socket. */
export interface Scheduler {
  /** @param granted called once, perhaps before `ask` returns */
  ask(ticket: Ticket, granted: () => void): Place;
}
