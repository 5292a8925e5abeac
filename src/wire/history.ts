// A caller's list of messages, and what of it the model sees: abandoned turns stay in the caller's list and are left out of what is sent.
import { type Matches, matchLists } from "./align.ts";
import type { Format, Item } from "./format.ts";

/** Why an item is there that the caller's list does not hold. */
export type OwnRole =
  /** What a rewind tells the model. */
  | "told"
  /** A call of our tools and its result. */
  | "exchange"
  /** Brought back by a rewind; the caller's list has lost it. */
  | "restored";

/** On the message of a rewind: where it put the conversation. */
export interface Told {
  /** Null where only files went back. */
  readonly checkpoint: string | null;
  readonly epoch: number;
}

export interface OwnEntry {
  readonly own: OwnRole;
  readonly item: Item;
  readonly told?: Told | undefined;
}

export interface CallerEntry {
  readonly own: null;
  /** `Format.identity` of what stands in the caller's list. */
  readonly name: string;
  /** What the model sees in its place: as a rule the same. Undefined where it is left out. */
  readonly item: Item | undefined;
  /** The model sees something else than what stands in the caller's list. */
  readonly amended: boolean;
  /** A caller that went on from the effective conversation has our messages in its list. */
  readonly told?: Told | undefined;
}

export type Entry = OwnEntry | CallerEntry;

/** The caller's list in its order, with our own items between. Never changed, only replaced. */
export type History = readonly Entry[];

export const isShown = (entry: Entry): entry is Entry & { readonly item: Item } => entry.item !== undefined;

interface Shown {
  readonly entries: readonly (Entry & { readonly item: Item })[];
  readonly items: readonly Item[];
}

const shownIn = new WeakMap<History, Shown>();

/** What of it the model sees: worked out once for each history. */
function shownOf(history: History): Shown {
  let shown = shownIn.get(history);
  if (shown === undefined) {
    const entries = history.filter(isShown);
    shown = { entries, items: entries.map(({ item }) => item) };
    shownIn.set(history, shown);
  }
  return shown;
}

export const shownEntries = (history: History): Shown["entries"] => shownOf(history).entries;

/** What the model sees. */
export const shownItems = (history: History): readonly Item[] => shownOf(history).items;

export const callerEntry = (format: Format, item: Item): CallerEntry => ({
  own: null,
  name: format.identity(item),
  item,
  amended: false,
  told: undefined,
});

export interface Followed {
  readonly history: History;
  /** How many of the caller's items were known. */
  readonly known: number;
  /** Set where the caller has not only added to its list. */
  readonly from?: Line;
}

/** Where the caller stands, by what it has kept of the conversation, whatever it has cut. */
export interface Line {
  /** The conversation before, up to the newest item that the caller still has, with what is our own behind that. */
  readonly history: History;
  /** How many items at the end of the caller's list came behind it. */
  readonly news: number;
  /** The caller has all of it: its list goes back, and nothing was cut out. */
  readonly whole: boolean;
}

const nameOf = (format: Format, entry: Entry): string =>
  entry.own === null ? entry.name : format.identity(entry.item);

/** The history with the caller's list as it is now: grown, cut, compacted, edited, or the effective conversation itself. */
export function follow(format: Format, history: History, list: readonly Item[]): Followed {
  return grown(format, history, list) ?? rearranged(format, history, list);
}

/** Where the caller has only added to its list, as nearly always: one walk. Undefined where it has not. */
function grown(format: Format, history: History, list: readonly Item[]): Followed | undefined {
  const result: Entry[] = [];
  let at = 0;
  for (const entry of history) {
    const item = list[at];
    if (item !== undefined && isPlain(entry) && entry.item === item) {
      result.push(entry);
      at++;
    } else if (item !== undefined && nameOf(format, entry) === format.identity(item)) {
      result.push(kept(entry, callerEntry(format, item)));
      at++;
    } else if (entry.own !== null) result.push(entry);
    else return undefined;
  }
  const known = at;
  for (; at < list.length; at++) result.push(callerEntry(format, list[at] as Item));
  return { history: result, known };
}

function rearranged(format: Format, history: History, list: readonly Item[]): Followed {
  const fresh = list.map((item) => callerEntry(format, item));
  const matches = matchKept(
    history.map((entry) => nameOf(format, entry)),
    fresh.map(({ name }) => name),
    history.findLastIndex((entry) => entry.own === null),
  );
  const result: Entry[] = [];
  let next = 0;
  let gap: Entry[] = [];
  const come = (until?: number): CallerEntry[] =>
    fresh.slice(next === 0 ? 0 : (matches[next - 1]?.[1] as number) + 1, until);
  for (const [at, entry] of history.entries()) {
    const [i, j] = matches[next] ?? [];
    if (at !== i) {
      gap.push(entry);
      continue;
    }
    result.push(...mend(format, gap, come(j), entry), kept(entry, fresh[j as number] as CallerEntry));
    gap = [];
    next++;
  }
  result.push(...mend(format, gap, come(), undefined));
  return { history: result, known: matches.length, from: lineOf(history, list, matches) };
}

function lineOf(history: History, list: readonly Item[], matches: Matches): Line {
  const [i, j] = matches.at(-1) ?? [-1, -1];
  const next = history.findIndex((entry, at) => at > i && entry.own === null);
  const line = history.slice(0, i < 0 ? 0 : next < 0 ? history.length : next);
  return { history: line, news: list.length - 1 - j, whole: callersOf(line).length === matches.length };
}

/** What was said alike several times can be matched in several ways: a list that has what the caller was given last is taken to have grown from there. */
function matchKept(before: readonly string[], after: readonly string[], newest: number): Matches {
  const at = newest < 0 ? -1 : after.lastIndexOf(before[newest] as string);
  if (at < 0) return matchLists(before, after);
  const behind = matchLists(before.slice(newest + 1), after.slice(at + 1));
  return [
    ...matchLists(before.slice(0, newest), after.slice(0, at)),
    [newest, at],
    ...behind.map(([i, j]) => [i + newest + 1, j + at + 1] as const),
  ];
}

const isPlain = (entry: Entry): entry is CallerEntry => entry.own === null && !entry.amended;

/** The caller's newer version of an entry, hidden or amended as the old one. */
const kept = (old: Entry, now: CallerEntry): CallerEntry =>
  old.own === null && (old.item === undefined || old.amended) ? old : { ...now, told: old.told };

/** What stands between two known entries now. `gone`: what stood there, our own and what the caller has dropped; `come`: what the caller has put there. */
function mend(format: Format, gone: readonly Entry[], come: readonly CallerEntry[], after: Entry | undefined): Entry[] {
  const dropped = gone.filter((entry) => entry.own === null);
  if (dropped.length === 0) return [...gone, ...come];
  if (isEdit(format, dropped, come)) {
    let at = 0;
    return gone.map((entry) => (entry.own === null ? edited(entry, come[at++] as CallerEntry) : entry));
  }
  // The caller has cut or compacted: of our own only what a rewind told is still needed. A request sent again lacks the reply that was lost on its way.
  const first = gone.findIndex((entry) => entry.own === null && isShown(entry));
  const stays = (at: number): boolean => first < 0 || (after === undefined && come.length === 0 && at < first);
  const own = gone.filter((entry, at) => entry.own === "told" || (entry.own !== null && stays(at)));
  // What stands in the place of left out messages alone was made of them.
  const ofHidden = after !== undefined && !dropped.some(isShown);
  const put = ofHidden ? come.map((entry) => ({ ...entry, item: undefined })) : come;
  return after === undefined ? [...own, ...put] : [...put, ...own];
}

/** As many by the same speakers in the same order: the caller has changed their words. */
const isEdit = (format: Format, dropped: readonly CallerEntry[], come: readonly CallerEntry[]): boolean =>
  dropped.length === come.length &&
  dropped.every(({ item }, at) => {
    const now = come[at]?.item;
    return now !== undefined && (item === undefined || format.speaker(item) === format.speaker(now));
  });

const edited = (old: CallerEntry, now: CallerEntry): CallerEntry =>
  old.item === undefined ? { ...now, item: undefined } : now;

/** What the model sees now of the caller's list and did not see at an earlier moment. */
export function shownSince(history: History, target: History): CallerEntry[] {
  const then = new Set(pairsOf(history, target).pairs.values());
  return callersOf(history).filter((entry) => isShown(entry) && !then.has(entry));
}

/**
 * The caller's list as it is, seen as at an earlier moment: what the target shows is shown, what came since is left out, but for `carried` and what is told.
 * What the caller's list has lost comes back as our own.
 */
export function returnTo(
  history: History,
  target: History,
  carried: ReadonlySet<Entry>,
  told: readonly OwnEntry[],
): History {
  const { pairs, callers } = pairsOf(history, target);
  const result: Entry[] = [];
  let at = 0;
  const leaveOut = (until: CallerEntry | undefined): void => {
    for (; at < callers.length && callers[at] !== until; at++) {
      const entry = callers[at] as CallerEntry;
      result.push(carried.has(entry) ? entry : { ...entry, item: undefined, amended: false });
    }
  };
  for (const entry of target) {
    const current = entry.own === null ? pairs.get(entry) : undefined;
    if (current === undefined) {
      if (entry.own !== null) result.push(entry);
      else if (isShown(entry)) result.push({ own: "restored", item: entry.item });
      continue;
    }
    leaveOut(current);
    // A result that the caller has shortened since stays short.
    const asNow = isShown(entry) && !(entry as CallerEntry).amended && isShown(current);
    result.push(asNow ? current : { ...(entry as CallerEntry), name: current.name });
    at++;
  }
  leaveOut(undefined);
  return [...result, ...told];
}

const callersOf = (history: History): CallerEntry[] => history.filter((entry) => entry.own === null);

/** Which entry of the target is which one now. */
function pairsOf(history: History, target: History) {
  const callers = callersOf(history);
  const then = callersOf(target);
  const names = (entries: readonly CallerEntry[]): string[] => entries.map(({ name }) => name);
  const matches = matchLists(names(then), names(callers));
  const pairs = new Map<Entry, CallerEntry>(
    matches.map(([i, j]) => [then[i] as CallerEntry, callers[j] as CallerEntry] as const),
  );
  return { pairs, callers };
}

/** What must be stored beside the shown items to have the history again. JSON. */
export interface HistoryNotes {
  readonly format: string;
  /** Of each shown item that is our own, or was: then without a role. */
  readonly own: readonly (readonly [at: number, role: OwnRole | null, told?: Told])[];
  /** Of each shown item that stands for another one in the caller's list, that one's name. */
  readonly amended: readonly (readonly [at: number, name: string])[];
  /** Names of the caller's items that are left out, by how many shown ones stand before them. */
  readonly hidden: readonly (readonly [at: number, names: readonly string[]])[];
}

export function notesOf(format: Format, history: History): HistoryNotes {
  const own: [number, OwnRole | null, Told?][] = [];
  const amended: [number, string][] = [];
  const hidden: [number, string[]][] = [];
  let at = 0;
  for (const entry of history) {
    if (!isShown(entry)) {
      const last = hidden.at(-1);
      const { name } = entry as CallerEntry;
      if (last?.[0] === at) last[1].push(name);
      else hidden.push([at, [name]]);
      continue;
    }
    if (entry.told !== undefined) own.push([at, entry.own, entry.told]);
    else if (entry.own !== null) own.push([at, entry.own]);
    if (entry.own === null && entry.amended) amended.push([at, entry.name]);
    at++;
  }
  return { format: format.name, own, amended, hidden };
}

export function historyOf(format: Format, shown: readonly Item[], notes: HistoryNotes): History {
  const own = new Map(notes.own.map(([at, ...rest]) => [at, rest]));
  const amended = new Map(notes.amended);
  const hidden = new Map(notes.hidden);
  const history: Entry[] = [];
  for (let at = 0; at <= shown.length; at++) {
    for (const name of hidden.get(at) ?? []) history.push({ own: null, name, item: undefined, amended: false });
    const item = shown[at];
    if (item === undefined) continue;
    const [role = null, told] = own.get(at) ?? [];
    const name = amended.get(at);
    if (role !== null) history.push({ own: role, item, told });
    else history.push({ own: null, name: name ?? format.identity(item), item, amended: name !== undefined, told });
  }
  return history;
}
