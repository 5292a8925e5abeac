// What a session's parts share; made once by the composition root.
import type { Coordinator } from "../coordinator/coordinator.ts";
import type { Environment } from "../environment/environment.ts";
import type { Catalog } from "../store/catalog.ts";
import type { Objects } from "../store/objects.ts";
import type { Staleness } from "./staleness.ts";
import type { Budget } from "./types.ts";

export interface SessionDeps {
  readonly catalog: Catalog;
  readonly objects: Objects;
  readonly environment: Environment;
  readonly coordinator: Coordinator;
  readonly syncLog: () => Promise<void>;
  readonly gate: "captured" | "durable";
  readonly onCaptureFailure: "continue" | "stop";
  readonly budget: Budget;
  readonly staleness: Staleness;
  /** Of threads that an adapter drives here: whether it can put back state channels besides the messages. */
  readonly restoresChannels: Map<string, () => boolean>;
  /** `close` waits for work in the background that is given here. */
  readonly track: (work: Promise<unknown>) => void;
  /** @throws CLOSED */
  readonly assertOpen: () => void;
}
