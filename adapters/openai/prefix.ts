// Request bodies of one conversation begin alike: what was there before is found by comparing text and is neither parsed nor written again; its items are the
// same objects.
import type { Item } from "agentrewind/relay";
import type { Json } from "./api.ts";

interface Ends {
  /** Where the list begins in the text, behind its bracket. */
  readonly begin: number;
  /** Where each of its items ends. */
  readonly ends: readonly number[];
}

interface Last extends Ends {
  readonly text: string;
  readonly items: readonly Item[];
}

const pieceSize = 1 << 16;

export class Prefix {
  readonly #field: string;
  readonly #opening: string;
  #last: Last | undefined;

  /** @param field of the body whose value is the list */
  constructor(field: string) {
    this.#field = field;
    this.#opening = `"${field}":[`;
  }

  /** The body, with the same objects in its list where they stood in the body before. @throws SyntaxError */
  parse(text: string): Json {
    const known = this.#last && knownOf(this.#last, text);
    this.#last = undefined;
    const more = known && this.#parseRest(text, known);
    const body = more ?? (JSON.parse(text) as Json);
    const list = body[this.#field];
    const from = more === undefined ? this.#start(text) : known;
    if (Array.isArray(list) && from !== undefined) this.#last = remember(text, list, from);
    return body;
  }

  /** The body as JSON: where the items of its list stood in the text that was parsed last, that text. */
  stringify(body: Json): string {
    const { [this.#field]: list, ...rest } = body;
    if (this.#last === undefined || !Array.isArray(list)) return JSON.stringify(body);
    const others = JSON.stringify(rest).slice(0, -1);
    return `${others}${others === "{" ? "" : ","}${this.#opening}${written(this.#last, list)}]}`;
  }

  /** Undefined where the text is not as the client writes it. */
  #parseRest(text: string, { items, begin, ends }: Last): Json | undefined {
    const end = ends.at(-1) as number;
    const isWhole = text[end] === "]";
    const rest = isWhole ? end : end + 1;
    // The field may be there twice; the last one counts.
    if ((!isWhole && text.slice(end, end + 2) !== ",{") || text.includes(this.#opening, rest)) return undefined;
    const body = JSON.parse(text.slice(0, begin) + text.slice(rest)) as Json;
    const list = body[this.#field];
    return Array.isArray(list) ? { ...body, [this.#field]: [...items, ...list] } : undefined;
  }

  #start(text: string): Ends | undefined {
    const at = text.indexOf(this.#opening);
    return at < 0 ? undefined : { begin: at + this.#opening.length, ends: [] };
  }
}

/** The part of the last list with which this text begins too; undefined where that is no item. */
function knownOf({ text: before, items, begin, ends }: Last, text: string): Last | undefined {
  const common = commonLength(before, text);
  let [low, high] = [0, ends.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((ends[middle - 1] as number) <= common) low = middle;
    else high = middle - 1;
  }
  return low === 0 ? undefined : { text, items: items.slice(0, low), begin, ends: ends.slice(0, low) };
}

function remember(text: string, items: readonly Item[], { begin, ends }: Ends): Last | undefined {
  const all = [...ends];
  let from = all.length > 0 ? (all.at(-1) as number) + 1 : begin;
  for (const item of items.slice(all.length)) {
    const spelled = JSON.stringify(item);
    // Somebody else's spelling: the next body is compared with nothing.
    if (!text.startsWith(spelled, from)) return undefined;
    from += spelled.length;
    all.push(from);
    from++;
  }
  return { text, items, begin, ends: all };
}

/** Runs of items that stand in the text one behind the other are one slice of it. */
function written({ text, items, begin, ends }: Last, list: readonly Item[]): string {
  let places: Map<Item, number> | undefined;
  let next = 0;
  // As a rule what stands next; elsewhere only where something was left out.
  const placeOf = (item: Item): number | undefined => {
    if (items[next] === item) return next;
    places ??= new Map(items.map((one, at) => [one, at]));
    return places.get(item);
  };
  const startOf = (place: number): number => (place === 0 ? begin : (ends[place - 1] as number) + 1);
  const pieces: string[] = [];
  for (let at = 0; at < list.length; ) {
    const first = placeOf(list[at] as Item);
    if (first === undefined) {
      pieces.push(JSON.stringify(list[at++]));
      continue;
    }
    let place = first;
    while (at < list.length && list[at] === items[place]) {
      at++;
      place++;
    }
    pieces.push(text.slice(startOf(first), ends[place - 1]));
    next = place;
  }
  return pieces.join(",");
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
