// What the fetch below the client must know of one of OpenAI's APIs.
import type { Format, Item } from "agentrewind/relay";

export type Json = Readonly<Record<string, unknown>>;

/** One event of a stream: the JSON behind `data:`, and the name before it where the API gives one. */
export interface StreamEvent {
  readonly event?: string;
  readonly data: Json;
}

export interface RequestParts {
  /** Instructions in front: they may be others in each request. */
  readonly preamble: readonly Item[];
  readonly list: readonly Item[];
  /** The API's state to go on from. */
  readonly previous: string | undefined;
  readonly hasTools: boolean;
  /** The model must call this or nothing: our tools would not be called. */
  readonly fixedChoice: boolean;
  readonly stream: boolean;
}

/** What the caller of a stream has been given already. */
export interface Shown {
  /** Something of the stream has been sent. */
  readonly begun: boolean;
  /** Of replies that did not count: words, and items where the API has them. */
  readonly before: { readonly text: string; readonly items: readonly Item[] };
  /** Of the reply that counts: as many of its words and items from the front. */
  readonly text: string;
  readonly items: number;
  /** Of the reply that counts: what the server sent and was not given yet, where that is known. */
  readonly held?: readonly StreamEvent[] | undefined;
}

/** Puts the events of one model call together, and says which may pass at once. */
export interface Collector {
  /** @returns what may be shown before the reply is whole and its gate is open, of this event and of those before */
  push(event: StreamEvent): readonly StreamEvent[];
  readonly shown: Shown;
  /** The reply as the API gives it without a stream. Undefined where the stream broke off. */
  reply(): Json | undefined;
}

export interface Api {
  readonly format: Format;
  /** Where a request's body has its list. */
  readonly field: string;
  /** @throws BAD_ARGUMENT for what cannot be taken back */
  read(body: Json): RequestParts;
  /** The body with these items, instructions included. @param previous as in `RequestParts` */
  write(body: Json, items: readonly Item[], previous: string | undefined, ownTools: boolean): Json;
  /** The items of a reply. */
  items(reply: Json): Item[];
  /** The API's name for the reply, for a request that goes on from it. */
  idOf(reply: Json): string | undefined;
  /** The reply without these calls. */
  without(reply: Json, dropped: ReadonlySet<string>): Json;
  /** @param live false: nothing passes */
  collector(shown: Shown, live: boolean): Collector;
  /** The events that give a caller of a stream what of the reply it has not been given yet. */
  events(reply: Json, shown: Shown, body: Json): StreamEvent[];
  /** The line behind the last event. */
  readonly end: string;
}
