// Keeps calls and results paired: providers refuse a result without its call and a call without its result.
import { canonical } from "./digest.ts";
import type { Format, Item } from "./format.ts";

export const unanswered =
  "No result: the run was stopped or sent back before this call had ended. Look at what it did before you send it again.";

/**
 * The same list with one result for every call that can be given one, each call once, without results that answer none and without what must be followed and is not; the same array
 * where it is sound.
 * @param continues calls may stand in front of the list, where they are not seen
 */
export function paired(format: Format, items: readonly Item[], continues = false): readonly Item[] {
  const result: Item[] = [];
  const open = new Map<string, Item | undefined>();
  /** Calls that have no result and can be given none. */
  const unanswerable = new Set<string>();
  /** Where each call stood last. */
  const called = new Map<string, number>();
  const provided = new Set<string>();
  let answering = false;
  let changed = false;
  const close = (): void => {
    changed ||= open.size > 0;
    for (const [id, item] of open) {
      if (item === undefined) unanswerable.add(id);
      else result.push(item);
    }
    open.clear();
    answering = false;
  };
  for (const [at, item] of items.entries()) {
    const answered = format.answers(item);
    if (answered !== undefined && provided.has(answered)) {
      result.push(item);
      continue;
    }
    if (answered !== undefined) {
      answering = true;
      if (open.delete(answered) || (continues && !called.has(answered))) result.push(item);
      else changed = true;
      continue;
    }
    const calls = format.calls(item);
    const before =
      calls.length > 0 && calls.every(({ id }) => called.has(id)) ? called.get(calls[0]?.id as string) : undefined;
    // Some servers give an id again, for another call.
    const isRepeated =
      before !== undefined &&
      (calls.every(({ id }) => open.has(id)) || exchangeAt(format, items, before) === exchangeAt(format, items, at));
    if (isRepeated || (format.leadsTo(item) && !isFollowed(format, items, at))) {
      changed = true;
      continue;
    }
    if (ends(format, item, answering)) close();
    result.push(item);
    for (const id of format.provided(item)) provided.add(id);
    for (const call of calls) {
      open.set(call.id, format.result(call, unanswered));
      called.set(call.id, at);
    }
  }
  close();
  if (unanswerable.size > 0) return paired(format, format.withoutCalls(result, unanswerable), continues);
  return changed ? result : items;
}

/** The calls before it get no more results: what a tool says besides is said among the results. */
const ends = (format: Format, item: Item, answering: boolean): boolean => {
  const speaker = format.speaker(item);
  return speaker === "model" ? answering || !format.callsApart : speaker !== "tool";
};

/** Names a call by itself and its results. */
function exchangeAt(format: Format, items: readonly Item[], at: number): string {
  const item = items[at] as Item;
  const ids = new Set(format.calls(item).map(({ id }) => id));
  const results: string[] = [];
  for (let next = at + 1; next < items.length && ids.size > 0; next++) {
    const answered = format.answers(items[next] as Item);
    if (answered === undefined && format.speaker(items[next] as Item) !== "model") break;
    if (answered !== undefined && ids.delete(answered)) results.push(format.text(items[next] as Item));
  }
  return canonical([format.identity(item), ...results]);
}

function isFollowed(format: Format, items: readonly Item[], at: number): boolean {
  const next = items.slice(at + 1).find((item) => !format.leadsTo(item));
  return next !== undefined && format.speaker(next) === "model";
}
