// What an adapter tells of its framework's state, and what it is told where that stands.
import type { RewindResult } from "./types.ts";

/** One message of the framework's state, as a possible boundary. */
export interface Boundary {
  readonly anchor: string;
  /** It is the result of a tool: the environment may have changed before it. */
  readonly tool: boolean;
  /** Of a result: the id of the call that it answers. */
  readonly call?: string | undefined;
  /** On the message that a rewind put there: the checkpoint to which it returned. */
  readonly returnedTo?: string;
}

/** What the session itself is told besides, before a tool. */
export type Aligned = Alignment & {
  /** No tool has run from where the framework stands; "captured": and the head has the files as they are. */
  readonly begins?: "captured" | "unseen" | undefined;
};

export type Alignment = {
  /** Of the moment at which this was found out; give it to `beginTurn`. */
  readonly epoch: number;
} & (
  | /** Nothing of this conversation is known: it begins here. */ { readonly status: "new" }
  /** The framework stands at the head, or went on from it. */
  | { readonly status: "current"; readonly checkpoint: string }
  /** The framework stood elsewhere; the environment was brought there. */
  | { readonly status: "moved"; readonly checkpoint: string }
  /**
   * Rewinds from outside are not yet in the framework's state. It takes over the first result's context, unless that moved the files alone, and the
   * message of each, oldest first. They are delivered until its state shows them.
   */
  | { readonly status: "deliver"; readonly results: readonly RewindResult[] }
);
