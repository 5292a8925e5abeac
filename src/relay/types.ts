// The relay's words: what it is given and what it gives back.
import type { Thread } from "../session/thread.ts";
import type { RewindRequest } from "../session/types.ts";
import type { Call, Format, Item } from "../wire/index.ts";
import type { Replay } from "./log.ts";

export type HumanMessages = "keep" | "refuse" | "drop";

export interface RelayOptions {
  readonly thread: Thread;
  readonly format: Format;
  /** Messages that a person sent after the target of a rewind. Default "keep". */
  readonly humanMessages?: HumanMessages;
  /** Files that somebody else changed, when the agent rewinds. */
  readonly external: "keep" | "restore";
  /** Default "unfinished". */
  readonly replay?: Replay;
  /** True for a call that hands the conversation over to another agent: whose loop goes on with that one, the agent's rewind does not go behind it. */
  readonly handsOver?: (call: Call) => boolean;
  /** Runs after each rewind of the agent; where it fails, the state that was left comes back and the model is told. */
  readonly verify?: RewindRequest["verify"];
}

/** What a model answered. */
export interface ModelReply {
  /** JSON, of which `RelayTurn.again` makes the reply again in another process. */
  readonly raw: unknown;
  readonly items: readonly Item[];
  /** The server's name for it, where a later request may go on from it by that name. */
  readonly id?: string | undefined;
  /** Words that the caller has been shown in front of these: of replies that did not count. */
  readonly prefix?: string;
  /** Items that the caller has been given in front of these: the same. */
  readonly before?: readonly Item[];
}

export interface AskOptions {
  /** False: without the rewind tools. */
  readonly ownTools: boolean;
  /** The reply from which the server goes on; undefined where the items are the whole conversation. */
  readonly previous: string | undefined;
  /** The instructions to put in front of the items. */
  readonly preamble: readonly Item[];
}

/** One model call with these items. May be called several times for one turn of the caller. */
export type Ask<Reply extends ModelReply> = (items: readonly Item[], options: AskOptions) => Promise<Reply>;

export interface RelayTurn<Reply extends ModelReply> {
  /** The caller's list, without instructions in front of it; with `previous` only what is new. */
  readonly list: readonly Item[];
  /** The reply from which the server goes on. */
  readonly previous?: string | undefined;
  /** Instructions in front of the list, where the adapter keeps them apart: they may be others in each request. Default: none. */
  readonly preamble?: readonly Item[];
  readonly ask: Ask<Reply>;
  again(raw: unknown): Reply;
  readonly signal?: AbortSignal | undefined;
}

export interface Relayed<Reply> {
  readonly reply: Reply;
  /** Ids of the reply's calls that are not the caller's. */
  readonly dropped: ReadonlySet<string>;
}
