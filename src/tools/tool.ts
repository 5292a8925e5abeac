// Tools bound to an environment: what a framework's adapter needs to know of one, and what they need of a Rewind.
import type { z } from "zod";
import type { Environment } from "../environment/environment.ts";
import type { RewindError } from "../errors.ts";
import type { Moment } from "../session/moment.ts";

/** What a tool gave back: a text for the model. With `error` it was not done, and the text says why and what to do. */
export interface ToolAnswer {
  readonly text: string;
  readonly error?: RewindError;
}

export interface ToolCall {
  /** Ends what the call runs. */
  readonly signal?: AbortSignal | undefined;
}

/** One tool, for no framework in particular: name, description and schema are what the model sees. */
export interface EnvironmentTool {
  readonly name: string;
  readonly description: string;
  readonly schema: z.ZodObject;
  /**
   * Checks the arguments and acts. What a model can mend is an outcome with `error`, never a rejection.
   * What a rewind overtook writes nothing any more, and its result is an outcome with STALE_EPOCH.
   * @throws the signal's reason when it was aborted
   */
  run(args: unknown, call?: ToolCall): Promise<ToolAnswer>;
}

/** The conversation that a call serves; a Thread is one. */
export interface Conversation {
  readonly name: string;
  readonly epoch: number;
  moment(): Moment;
  holds(moment: Moment): boolean;
  settled(): Promise<void>;
}

/** What the tools are bound to; a Rewind is one. */
export interface ToolHost {
  readonly environment: Environment;
  running(): Conversation | undefined;
  thread(name: string): Conversation;
  threads(): string[];
}

/** One call, as a tool sees it. */
export interface Work {
  readonly environment: Environment;
  /** Name of the conversation that the call serves. */
  readonly conversation: string;
  readonly signal: AbortSignal | undefined;
  /** Characters of one result. */
  readonly limit: number;
  readonly knowledge: Knowledge;
  /** Resolves when a rewind that is under way is done: what it ended must not be told as if it had ended by itself. */
  settled(): Promise<void>;
  /** Writes as long as no rewind came in between. @throws STALE_EPOCH */
  write(path: string, data: Uint8Array): Promise<void>;
}

/** @see guard.ts */
export interface Knowledge {
  learn(path: string, bytes: Uint8Array): void;
  /** @throws FILE_NOT_READ, FILE_CHANGED */
  require(path: string, bytes: Uint8Array): void;
}

/** A tool before it is bound. */
export interface ToolKind<Schema extends z.ZodObject = z.ZodObject> {
  readonly name: string;
  readonly description: string;
  readonly schema: Schema;
  /** Its calls wait for each other. */
  readonly writes?: boolean;
  act(args: z.output<Schema>, work: Work): Promise<string>;
}
