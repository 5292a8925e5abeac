// What the relay must know of a model API's messages. One implementation a wire format; all of them pure.

/** One message or item as it stands in a request's JSON. */
export type Item = Readonly<Record<string, unknown>>;

export interface Call {
  readonly id: string;
  readonly name: string;
  /** JSON, as the model wrote it. */
  readonly arguments: string;
  /** The item that it is, where kinds of calls have results of their own forms. */
  readonly item?: Item;
}

export type Speaker = "person" | "model" | "tool" | "other";

/**
 * The implementer's contract: no function changes its arguments, and all of them take any JSON object: what an API adds tomorrow is an item of the speaker
 * "other" that keeps its place.
 */
export interface Format {
  /** For example "chat-completions". Part of the stored format: it never changes its meaning. */
  readonly name: string;
  /** Whether each call of a reply is an item of its own. */
  readonly callsApart: boolean;
  /** Names the item for as long as its caller keeps it, also when the caller shortens a result: calls and results by their ids, the rest by what it says. */
  identity(item: Item): string;
  speaker(item: Item): Speaker;
  /** The words in it, "" where there are none. */
  text(item: Item): string;
  /** Those that the caller answers: not those that the API's server carries out itself. */
  calls(item: Item): readonly Call[];
  /** Ids of the calls that the API's server carries out itself. They have no result, or one of the server's own. */
  provided(item: Item): readonly string[];
  /** Id of the call whose result it is. */
  answers(item: Item): string | undefined;
  /** True where the tool says that it failed. */
  failed(item: Item): boolean;
  /**
   * A result for the call; undefined where none can be made of words.
   * @param ran the words are what the tool returned; else why it did not run, as by default
   */
  result(call: Call, text: string, ran?: boolean): Item | undefined;
  /** True for what an API refuses unless something of the model follows it (reasoning). */
  leadsTo(item: Item): boolean;
  /** What is said to the model between its turns. */
  message(text: string): Item;
  /** An item of the model whose words begin with these; the same where it has no words of its own. */
  prefixed(item: Item, text: string): Item;
  /** One reply of the model without some of its calls, and without what makes no sense without them. */
  withoutCalls(items: readonly Item[], dropped: ReadonlySet<string>): Item[];
}

/** The parts of a content value that are text, one after the other. */
export function textOfContent(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content
    .map((part: unknown) => {
      if (typeof part === "string") return part;
      const { text, refusal } = (part ?? {}) as { text?: unknown; refusal?: unknown };
      if (typeof text === "string") return text;
      return typeof refusal === "string" ? refusal : "";
    })
    .join("");
}
