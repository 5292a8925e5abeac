// What a session's parts share; made once by the composition root.
import type { Coordinator } from "../coordinator/coordinator.ts";
import type { Jobs } from "../coordinator/jobs.ts";
import type { ChangedSince } from "../coordinator/policy/changed.ts";
import type { Policy } from "../coordinator/policy/policy.ts";
import type { Environment } from "../environment/environment.ts";
import type { Catalog } from "../store/catalog.ts";
import type { Objects } from "../store/objects.ts";
import type { EffectRules } from "./effect-rules.ts";
import type { TurnObserver } from "./observer.ts";
import type { Staleness } from "./staleness.ts";
import type { Budget, Lesson } from "./types.ts";

/** A context in the store. */
export interface StoredContext {
  readonly name: string;
  readonly messages: number;
  readonly serializer: string;
  readonly bytes: number;
}

export interface Reached {
  /** The checkpoint of the decision that the reply answers. */
  readonly head: number;
  readonly store: () => Promise<StoredContext>;
}

export interface BegunTools {
  readonly checkpoint: number;
  ended: boolean;
}

export interface SessionDeps {
  readonly catalog: Catalog;
  readonly objects: Objects;
  readonly environment: Environment;
  readonly coordinator: Coordinator;
  readonly jobs: Jobs;
  readonly syncLog: () => Promise<void>;
  readonly gate: "captured" | "durable";
  readonly onCaptureFailure: "continue" | "stop";
  /** Which turns are captured. */
  readonly policy: Policy;
  /** Who can tell whether anything changed, where anybody can. */
  readonly changedSince?: ChangedSince | undefined;
  /** Set where turns are observed and nothing is captured: no file ever moves, no effect is held, and no rewind is offered. */
  readonly observer?: TurnObserver | undefined;
  readonly budget: Budget;
  readonly staleness: Staleness;
  readonly effects: EffectRules;
  /** Effects whose calls run in this process. */
  readonly running: Set<number>;
  /** By thread: the checkpoint behind which tools of this process were entered last, and whether one of them has ended. */
  readonly toolsBegun: Map<number, BegunTools>;
  /** By checkpoint: resolves when both of its halves are on disk, while they are brought there. */
  readonly persisting: Map<number, Promise<unknown>>;
  /** Sums up lessons that have become too long to tell. */
  readonly summarizeLessons?: ((lessons: readonly Lesson[]) => string | Promise<string>) | undefined;
  /** Of threads that an adapter drives here: whether it can put back state channels besides the messages. */
  readonly restoresChannels: Map<string, () => boolean>;
  /** By thread: where its conversation stands behind the model's last reply, for who leaves that state (`Thread.reached`). */
  readonly reached: Map<number, Reached>;
  /** `close` waits for work in the background that is given here. */
  readonly track: (work: Promise<unknown>) => void;
  /** @throws CLOSED */
  readonly assertOpen: () => void;
}
