// Names the points of a conversation at which a model decides, so that they are found again in another process and in a list that was cut.
import { digest } from "./digest.ts";
import type { Format } from "./format.ts";
import { type Entry, type History, isShown } from "./history.ts";

export interface WireBoundary {
  readonly anchor: string;
  readonly tool: boolean;
  readonly returnedTo?: string;
}

/**
 * One for each shown entry, newest first. Calls and results have names for good; words are named by the last such name before them, and by how often they
 * were said since.
 * @param start names what came before the history
 */
export function boundariesOf(format: Format, history: History, start = ""): WireBoundary[] {
  const boundaries: WireBoundary[] = [];
  let base = start;
  let since = new Map<string, number>();
  for (const entry of history) {
    if (!isShown(entry)) continue;
    const { item } = entry;
    const answered = format.answers(item);
    const fixed = fixedName(format, entry);
    let anchor: string;
    if (fixed !== undefined) {
      // The same id may have been given twice: what was called first tells them apart.
      anchor = answered === undefined || base === "" ? fixed : `${fixed}/${base}`;
      if (answered === undefined) {
        base = fixed;
        since = new Map();
      }
    } else {
      const name = format.identity(item);
      const count = (since.get(name) ?? 0) + 1;
      since.set(name, count);
      anchor = `said:${digest([base, name, count])}`;
    }
    const told = entry.told?.checkpoint;
    boundaries.push({
      anchor,
      tool: answered !== undefined,
      ...(typeof told === "string" ? { returnedTo: told } : {}),
    });
  }
  return boundaries.reverse();
}

function fixedName(format: Format, entry: Entry & { readonly item: object }): string | undefined {
  if (entry.told !== undefined) return `told:${entry.told.epoch}`;
  const item = entry.item as Parameters<Format["identity"]>[0];
  return format.calls(item).length > 0 || format.answers(item) !== undefined ? format.identity(item) : undefined;
}
