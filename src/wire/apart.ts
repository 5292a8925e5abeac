// For formats in which each call of a reply is an item of its own.
import type { Format, Item } from "./format.ts";

/** Without some calls, and without what must be followed and is not any more. */
export function withoutApart(
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
