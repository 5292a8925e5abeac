// Keeps calls and results paired: providers refuse a result without its call and a call without its result.
import type { Format, Item } from "./format.ts";

export const unanswered =
  "No result: the run was stopped or sent back before this call had ended. Look at what it did before you send it again.";

/**
 * The same list with a result for every call and without results that answer none; the same array where it is sound.
 * @param continues calls may stand in front of the list, where they are not seen
 */
export function paired(format: Format, items: readonly Item[], continues = false): readonly Item[] {
  const result: Item[] = [];
  const open = new Map<string, Item>();
  let answering = false;
  let changed = false;
  const close = (): void => {
    changed ||= open.size > 0;
    result.push(...open.values());
    open.clear();
    answering = false;
  };
  for (const item of items) {
    const answered = format.answers(item);
    if (answered !== undefined) {
      answering = true;
      if (open.delete(answered) || continues) result.push(item);
      else changed = true;
      continue;
    }
    if (answering || !format.callsApart || format.speaker(item) !== "model") close();
    result.push(item);
    for (const call of format.calls(item)) open.set(call.id, format.result(call, unanswered));
  }
  close();
  return changed ? result : items;
}
