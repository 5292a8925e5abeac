// Formats in which each message, call and result of a reply is an item of its own.
import { type Call, type Format, type Item, textOfContent } from "./format.ts";

/** What such a format is made of. */
export interface ApartParts extends Pick<Format, "name" | "identity" | "answers" | "failed" | "provided"> {
  isMessage(item: Item): boolean;
  /** Of the model and its server, where it is neither a message nor a result. */
  isModels(item: Item): boolean;
  callOf(item: Item): Call | undefined;
  textOfResult(item: Item): string;
  /** @param ran the words are what the tool returned; else why it did not run */
  resultOf(call: Call, text: string, ran: boolean): Item | undefined;
}

export function formatApart({ isMessage, isModels, callOf, textOfResult, resultOf, ...parts }: ApartParts): Format {
  const format: Format = {
    ...parts,
    callsApart: true,

    speaker(item) {
      if (isMessage(item)) {
        if (item.role === "user") return "person";
        return item.role === "assistant" ? "model" : "other";
      }
      if (parts.answers(item) !== undefined) return "tool";
      return isModels(item) ? "model" : "other";
    },

    text(item) {
      if (isMessage(item)) return textOfContent(item.content);
      return parts.answers(item) === undefined ? "" : textOfResult(item);
    },

    calls: (item) => [callOf(item)].filter((call) => call !== undefined),
    result: (call, text, ran = false) => resultOf(call, text, ran),
    leadsTo: (item) => item.type === "reasoning",
    message: (text) => ({ type: "message", role: "user", content: text }),

    prefixed: (item, text) =>
      isMessage(item)
        ? { ...item, content: [{ type: "output_text", text: text + textOfContent(item.content) }] }
        : item,

    withoutCalls: (items, dropped) => withoutApart(format, items, dropped),
  };
  return format;
}

/** Without some calls, and without what must be followed and is not any more. */
function withoutApart(
  format: Pick<Format, "calls" | "leadsTo">,
  items: readonly Item[],
  dropped: ReadonlySet<string>,
): Item[] {
  const kept: Item[] = [];
  let leading: Item[] = [];
  for (const item of items) {
    if (format.leadsTo(item)) {
      leading.push(item);
      continue;
    }
    if (format.calls(item).some(({ id }) => dropped.has(id))) continue;
    kept.push(...leading, item);
    leading = [];
  }
  return kept;
}
