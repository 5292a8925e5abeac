// The rewind tools as calls in a reply: carried out here, never by the caller.
import { z } from "zod";
import { isRewindError, RewindError } from "../errors.ts";
import { labelledText, refusalText, siblingRefusal } from "../session/texts.ts";
import type { Thread } from "../session/thread.ts";
import { checkpointTool, listCheckpointsTool, rewindTool } from "../session/tools.ts";
import type { Context, RewindRequest } from "../session/types.ts";
import { type Call, callerEntry, type Entry, type Format, type Item } from "../wire/index.ts";
import type { ModelReply } from "./types.ts";

/** As each API wants them described; `parameters` is JSON Schema. */
export const ownTools = [rewindTool, listCheckpointsTool, checkpointTool].map(({ name, description, schema }) => {
  const { $schema: _, ...parameters } = z.toJSONSchema(schema);
  return { name, description, parameters };
});
export const ownToolNames: ReadonlySet<string> = new Set(ownTools.map(({ name }) => name));

export interface OwnCallOptions {
  /** Makes a rewind idempotent. */
  key(call: Call): string;
  /** The context in which the calls were made. */
  current(): Context;
  readonly external: "keep" | "restore";
  readonly verify: RewindRequest["verify"] | undefined;
  /** Why a rewind must not go that far. */
  crossing(target: string): Promise<RewindError | undefined>;
}

export type OwnOutcome =
  /** The conversation moved: nothing of the reply counts. */
  | { readonly kind: "rewound" }
  /** A rewind was refused: no call of the reply runs, each has its result here. */
  | { readonly kind: "refused"; readonly results: ReadonlyMap<string, string> }
  /** Results of our calls; the others are the caller's. */
  | { readonly kind: "answered"; readonly results: ReadonlyMap<string, string> };

/** The first rewind that is admissible wins, wherever it stands in the reply. */
export async function carryOut(thread: Thread, calls: readonly Call[], options: OwnCallOptions): Promise<OwnOutcome> {
  const results = new Map<string, string>();
  for (const call of calls.filter(({ name }) => name === rewindTool.name)) {
    const refused = await rewindBy(thread, call, options);
    if (refused === undefined) return { kind: "rewound" };
    results.set(call.id, refusalText(refused));
  }
  if (results.size > 0) {
    for (const { id } of calls) if (!results.has(id)) results.set(id, siblingRefusal);
    return { kind: "refused", results };
  }
  for (const call of calls) {
    if (call.name === listCheckpointsTool.name) results.set(call.id, thread.listText());
    if (call.name === checkpointTool.name) results.set(call.id, label(thread, call));
  }
  return { kind: "answered", results };
}

/** @returns why it was refused */
async function rewindBy(thread: Thread, call: Call, options: OwnCallOptions): Promise<RewindError | undefined> {
  const parsed = rewindTool.schema.safeParse(parseArguments(call));
  if (!parsed.success) {
    return new RewindError("BAD_ARGUMENT", "rewind needs a checkpoint and a lesson, both as text.", {
      hint: 'For example {"checkpoint": "c7", "lesson": "what was tried, what proved false, what to do instead"}.',
    });
  }
  const { checkpoint, lesson } = parsed.data;
  try {
    const refused = thread.admissible(checkpoint, lesson);
    if (refused !== undefined) return refused;
    const crossed = await options.crossing(checkpoint);
    if (crossed !== undefined) return crossed;
    await thread.rewind({
      to: checkpoint,
      lesson,
      by: "agent",
      external: options.external,
      ...(options.verify === undefined ? {} : { verify: options.verify }),
      key: options.key(call),
      current: options.current(),
      delivery: "pending",
    });
    return undefined;
  } catch (error) {
    if (isRewindError(error) && error.code !== "STALE_EPOCH") return error;
    throw error;
  }
}

function label(thread: Thread, call: Call): string {
  const parsed = checkpointTool.schema.safeParse(parseArguments(call));
  try {
    if (!parsed.success) {
      throw new RewindError("BAD_ARGUMENT", "checkpoint needs a label, as text.", {
        hint: 'For example {"label": "tests green"}.',
      });
    }
    return labelledText(thread.label(parsed.data.label));
  } catch (error) {
    if (isRewindError(error)) return refusalText(error);
    throw error;
  }
}

function parseArguments(call: Call): unknown {
  try {
    return call.arguments.trim() === "" ? {} : JSON.parse(call.arguments);
  } catch {
    return undefined;
  }
}

/** A reply that never reaches the caller, with the results of all its calls. */
export function ownExchange(format: Format, items: readonly Item[], results: ReadonlyMap<string, string>): Entry[] {
  const given = resultItems(format, items, results);
  const answered = new Set(given.map((item) => format.answers(item)));
  const left = [...results.keys()].filter((id) => !answered.has(id));
  return [...format.withoutCalls(items, new Set(left)), ...given].map((item) => ({ own: "exchange", item }));
}

/** A reply that the caller gets without the calls that are ours: the model goes on seeing it whole, and without what the caller was given in front of it. */
export function sharedReply(
  format: Format,
  { items, before = [], prefix = "" }: ModelReply,
  results: ReadonlyMap<string, string>,
): Entry[] {
  const given = format.withoutCalls(items, new Set(results.keys()));
  const entries: Entry[] = before.map((item) => ({ ...callerEntry(format, item), item: undefined }));
  let next = 0;
  for (const item of items) {
    const now = given[next];
    // Where a call is an item, one of ours is not among those given; else it was cut out of its item.
    if (now === undefined || (format.callsApart && now !== item)) {
      entries.push({ own: "exchange", item });
      continue;
    }
    next++;
    const name = format.identity(prefix === "" ? now : format.prefixed(now, prefix));
    entries.push({ own: null, name, item, amended: prefix !== "" || name !== format.identity(item) });
  }
  return [...entries, ...resultItems(format, items, results).map((item) => ({ own: "exchange", item }) as const)];
}

const resultItems = (format: Format, items: readonly Item[], results: ReadonlyMap<string, string>): Item[] =>
  items
    .flatMap((item) => format.calls(item))
    .flatMap((call) => {
      const text = results.get(call.id);
      const result = text === undefined ? undefined : format.result(call, text);
      return result === undefined ? [] : [result];
    });
