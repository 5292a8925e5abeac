// Names the points of a conversation at which a model decides, so that they are found again in another process and in a list that was cut.
import { digest } from "./digest.ts";
import type { Format, Item } from "./format.ts";
import { type Entry, type History, shownEntries } from "./history.ts";

export interface WireBoundary {
  readonly anchor: string;
  readonly tool: boolean;
  /** Of a result: the call that it answers. */
  readonly call?: string | undefined;
  readonly returnedTo?: string;
}

type Shown = Entry & { readonly item: Item };

/**
 * One for each shown entry, newest first, each named when it is asked for. Calls and results have names for good; words are named by the last such name before
 * them, and by how often they were said since.
 * @param start names what came before the history
 */
export function* boundariesOf(format: Format, history: History, start = ""): Generator<WireBoundary> {
  const shown = shownEntries(history);
  for (let at = shown.length - 1; at >= 0; at--) {
    const entry = shown[at] as Shown;
    const told = entry.told?.checkpoint;
    const call = format.answers(entry.item);
    yield {
      anchor: anchorOf(format, shown, at, start),
      tool: call !== undefined,
      call,
      ...(typeof told === "string" ? { returnedTo: told } : {}),
    };
  }
}

export function newestAnchor(format: Format, history: History, start = ""): string | undefined {
  return boundariesOf(format, history, start).next().value?.anchor;
}

function anchorOf(format: Format, shown: readonly Shown[], at: number, start: string): string {
  const entry = shown[at] as Shown;
  const fixed = fixedName(format, entry);
  const answered = format.answers(entry.item) !== undefined;
  if (fixed !== undefined && !answered) return fixed;
  const base = baseOf(format, shown, at, start);
  // The same id may have been given twice: what was called first tells them apart.
  if (fixed !== undefined) return base.name === "" ? fixed : `${fixed}/${base.name}`;
  const name = format.identity(entry.item);
  let count = 1;
  for (let before = base.at + 1; before < at; before++) {
    if (format.identity((shown[before] as Shown).item) === name) count++;
  }
  return `said:${digest([base.name, name, count])}`;
}

/** What has a name for good and is no result, last before `at`. */
function baseOf(format: Format, shown: readonly Shown[], at: number, start: string): { name: string; at: number } {
  for (let before = at - 1; before >= 0; before--) {
    const entry = shown[before] as Shown;
    const name = format.answers(entry.item) === undefined ? fixedName(format, entry) : undefined;
    if (name !== undefined) return { name, at: before };
  }
  return { name: start, at: -1 };
}

function fixedName(format: Format, entry: Shown): string | undefined {
  if (entry.told !== undefined) return `told:${entry.told.epoch}`;
  const isFixed = format.calls(entry.item).length > 0 || format.answers(entry.item) !== undefined;
  return isFixed ? format.identity(entry.item) : undefined;
}
