// The public words of effects: what a tool did outside of the environment, and what became of a call.

export type EffectClass = "idempotent" | "reversible" | "compensable" | "irreversible";

/** What happens to an equivalent call behind a rewind. */
export type OnRepeat = "replay" | "hold" | "allow";

export type EffectState =
  /** The call runs, in this process. */
  | "running"
  /** It was begun, and no result was recorded: the process ended before, or runs elsewhere. */
  | "unknown"
  | "completed"
  | "failed"
  /** Its compensation succeeded. */
  | "compensated"
  /** Its compensation failed, or it is not known how that ended. */
  | "uncompensated";

/** Something outside of the environment that a tool did. No rewind takes it back. */
export interface Effect {
  readonly id: number;
  readonly thread: string;
  readonly tool: string;
  readonly class: EffectClass;
  /** One line, bounded, with secrets masked. */
  readonly description: string;
  /** The checkpoint behind which it was done; null when there was none. */
  readonly checkpoint: string | null;
  readonly epoch: number;
  readonly state: EffectState;
  /** Short form of the result; null while there is none. */
  readonly result: string | null;
  /** Why it or its compensation failed; null otherwise. */
  readonly note: string | null;
  readonly createdAt: string;
}

/** A call of a tool that is about to be made. */
export interface ToolRun<T> {
  readonly tool: string;
  /** As the model gave them; plain JSON. */
  readonly args: unknown;
  /**
   * Names this very call: where it comes again (a resumed run, a retry of the framework) it is answered from the record. Must differ for every
   * call that a model makes, so give the reply's id along with the call's. Without it a call that is run again counts as another one.
   */
  readonly callId?: string;
  /**
   * The call, by its `callId`, inside of which this one is made by an agent of its own (then this one's `callId` begins with that and "/"): where that call is run
   * again, its agent knows of no effect of an earlier run. `made` holds those of this run.
   */
  readonly inside?: { readonly call: string; readonly made: ReadonlySet<number> };
  /** The tool destroys what no capture holds: it does not run behind a checkpoint that could not be captured. */
  readonly destructive?: boolean;
  /** The epoch in which the model's reply was asked for; a rewind since then makes the call stale. Default: the present one. */
  readonly epoch?: number;
  /** The result as plain JSON, and back; by default it is JSON itself. */
  readonly encode?: (result: T) => unknown;
  readonly decode?: (stored: unknown) => T;
  /** What the tool itself returned, as plain JSON, where `encode` gives a framework's form of it: `compensate` gets this. */
  readonly returned?: (result: T) => unknown;
  /** The result says that the tool failed. By default only what it throws does. */
  readonly isFailure?: (result: T) => boolean;
  /** What was thrown only pauses the call (an interrupt): nothing was done yet. */
  readonly isPause?: (error: unknown) => boolean;
}

export type ToolOutcome<T> =
  | /** It ran now. */ { readonly status: "ran"; readonly result: T; readonly effect: Effect | null }
  /** It did not run: this is the recorded result of the same, or of an equivalent call. */
  | { readonly status: "replayed"; readonly result: T; readonly effect: Effect }
  /** It did not run: `message` is the answer for the model. */
  | { readonly status: "held"; readonly message: string; readonly effect: Effect | null };
