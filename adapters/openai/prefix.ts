// Request bodies of one conversation begin alike: what was there before is found by comparing text, and its items are the same objects again.
import type { Item } from "agentrewind/relay";

interface Last {
  readonly text: string;
  readonly items: readonly Item[];
  /** Where each item ends in the text. */
  readonly ends: readonly number[];
}

const pieceSize = 1 << 16;

export class Prefix {
  #last: Last | undefined;

  /**
   * The items of a list of the body, as the same objects where they stood in the body before.
   * @param field whose array they are, as `JSON.stringify` writes it; of other texts nothing is known again
   */
  reuse(text: string, field: string, items: readonly Item[]): Item[] {
    const last = this.#last;
    this.#last = undefined;
    const begin = text.indexOf(`"${field}":[`);
    if (begin < 0) return [...items];
    const common = last === undefined ? 0 : commonLength(last.text, text);
    let shared = 0;
    while (last !== undefined && shared < items.length && (last.ends[shared] ?? Number.POSITIVE_INFINITY) <= common)
      shared++;
    const result = items.map((item, at) => (at < shared ? (last?.items[at] as Item) : item));
    const ends = last === undefined ? [] : last.ends.slice(0, shared);
    let from = (ends.at(-1) ?? begin + field.length + 4) + (shared > 0 ? 1 : 0);
    for (let at = shared; at < items.length; at++) {
      const written = JSON.stringify(items[at]);
      // Somebody else's spelling: the next body is compared with nothing.
      if (!text.startsWith(written, from)) return result;
      ends.push(from + written.length);
      from += written.length + 1;
    }
    this.#last = { text, items: result, ends };
    return result;
  }
}

function commonLength(a: string, b: string): number {
  const shorter = Math.min(a.length, b.length);
  let from = 0;
  for (let size = pieceSize; size >= 1; ) {
    const to = Math.min(from + size, shorter);
    if (to > from && a.slice(from, to) === b.slice(from, to)) from = to;
    else size >>= 1;
    if (from === shorter) break;
  }
  return from;
}
