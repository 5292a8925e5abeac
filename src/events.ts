// What happens, for whoever listens: diagnostics channels "agentrewind:NAME:start" and "agentrewind:NAME:end" (docs/events.md).
import { channel } from "node:diagnostics_channel";

/** One object for each operation: at its start without what only its end knows. */
interface Operation {
  /** Where it failed. */
  error?: unknown;
}

/** A model decision, from its beginning until its reply's tools may run. */
export interface TurnEvent extends Operation {
  readonly thread: string;
  readonly checkpoint: string;
  /** "retry": the checkpoint was there already. */
  readonly kind: "turn" | "retry";
  /** The model call failed or was given up, or another turn began: nothing waited for this one. */
  abandoned?: boolean;
  state?: string;
  /** Milliseconds and bytes, as `Checkpoint.timings`. */
  timings?: { readonly exposedMs: number; readonly overlappedMs: number; readonly bytes: number };
}

/** The environment's half of a pair. */
export interface CaptureEvent extends Operation {
  readonly environment: string;
  /** Names of the halves, equal where nothing changed. */
  files?: string | null;
  processes?: string | null;
  /** Bytes written. */
  bytes?: number;
  /** How many paths or processes could not be captured. */
  problems?: number;
}

/** A move of a thread's head with its environment. */
export interface RewindEvent extends Operation {
  readonly thread: string;
  readonly kind: "rewind" | "undo" | "adopt" | "align";
  readonly by: "agent" | "caller" | "framework";
  readonly scope: "both" | "environment" | "context";
  /** Ids; `from` is null where the thread had no checkpoint. */
  readonly from: string | null;
  readonly to: string;
  epoch?: number;
  exposedMs?: number;
  notRestored?: number;
}

/** A checkpoint has reached the disk. */
export interface DurableEvent {
  readonly thread: string;
  readonly checkpoint: string;
}

/** The environment of a turn was not captured. */
export interface SkipEvent {
  readonly thread: string;
  readonly checkpoint: string;
  /** "unchanged": it is certain that nothing had changed, and it has the halves of the newest before it. "policy": `capture` said no. */
  readonly reason: "unchanged" | "policy";
}

/** What watches for changes may have missed some: everything counts as changed, and is looked at. */
export interface LossEvent {
  readonly watcher: "fanotify" | "ebpf";
  /** Its folder: a workspace, or the control group of a sandbox. */
  readonly path: string;
}

/** A job of an environment, on a host that many share: its capture, what makes that durable, or a rewind. */
export interface JobEvent {
  readonly job: "capture" | "persist" | "restore";
  /** Its id in the store. */
  readonly environment: string;
  /** Milliseconds until now. */
  readonly waitedMs: number;
}

/** Its turn has come. */
export interface GrantedEvent extends JobEvent {
  /** Somebody waited for it. */
  readonly promoted: boolean;
}

/** Who says when the jobs of this process run, from now on. */
export interface EngineEvent {
  /** The store's folder of locks. */
  readonly locks: string;
  /** "grants": this process, for all of the host. "asks": another one. "alone": this one, for itself only, until it is tried again. */
  readonly role: "grants" | "asks" | "alone";
  /**
   * Of "alone", the other process: "nobody" can be reached, it is "silent", what it says is "senseless", or it is of another "version". Of "grants": "unreachable",
   * no other process can ask it, for `error`.
   */
  readonly reason?: "nobody" | "silent" | "senseless" | "version" | "unreachable";
  readonly error?: unknown;
}

interface Events {
  readonly turn: TurnEvent;
  readonly capture: CaptureEvent;
  readonly rewind: RewindEvent;
}

const operations = {
  turn: { start: channel("agentrewind:turn:start"), end: channel("agentrewind:turn:end") },
  capture: { start: channel("agentrewind:capture:start"), end: channel("agentrewind:capture:end") },
  rewind: { start: channel("agentrewind:rewind:start"), end: channel("agentrewind:rewind:end") },
} as const;

const durable = channel("agentrewind:checkpoint:durable");
const skip = channel("agentrewind:skip");
const loss = channel("agentrewind:loss");
const promoted = channel("agentrewind:job:promoted");
const granted = channel("agentrewind:job:granted");
const engine = channel("agentrewind:engine");

/** Call the result once, with what the end knows; later calls do nothing. Who listens to an end was told of its start. */
export function beginEvent<Name extends keyof Events>(
  name: Name,
  start: Events[Name],
): (end: Partial<Events[Name]>) => void {
  const { start: started, end: ended } = operations[name];
  if (!started.hasSubscribers && !ended.hasSubscribers) return () => {};
  const event = { ...start };
  let open = true;
  started.publish(event);
  return (end) => {
    if (!open) return;
    open = false;
    ended.publish(Object.assign(event, end));
  };
}

export async function withEvent<Name extends keyof Events, T>(
  name: Name,
  start: Events[Name],
  work: () => Promise<T>,
  describe: (result: T) => Partial<Events[Name]>,
): Promise<T> {
  const end = beginEvent(name, start);
  try {
    const result = await work();
    end(describe(result));
    return result;
  } catch (error) {
    end({ error } as Partial<Events[Name]>);
    throw error;
  }
}

export function reportDurable(event: DurableEvent): void {
  if (durable.hasSubscribers) durable.publish(event);
}

export function reportSkip(event: SkipEvent): void {
  if (skip.hasSubscribers) skip.publish(event);
}

export function reportLoss(event: LossEvent): void {
  if (loss.hasSubscribers) loss.publish(event);
}

export function reportPromoted(event: JobEvent): void {
  if (promoted.hasSubscribers) promoted.publish(event);
}

export function reportGranted(event: GrantedEvent): void {
  if (granted.hasSubscribers) granted.publish(event);
}

export function reportEngine(event: EngineEvent): void {
  if (engine.hasSubscribers) engine.publish(event);
}
