// What a node gives back (an update, a Command, several of both): the model's message in it, and the same laid upon a restored state.
import { AIMessage, type BaseMessage, coerceMessageLikeToMessage, isBaseMessage } from "@langchain/core/messages";
import { Command, isCommand, messagesStateReducer, Overwrite } from "@langchain/langgraph";
import { messagesUpdate } from "../graph-state/restore.ts";

type Update = Record<string, unknown>;

const partsOf = (result: unknown): unknown[] =>
  result === undefined || result === null ? [] : Array.isArray(result) ? result : [result];

/** A Command may hold its update as pairs. */
function updateOf(part: unknown): Update {
  const update = isCommand(part) ? part.update : part;
  if (Array.isArray(update)) return Object.fromEntries(update as [string, unknown][]);
  return typeof update === "object" && update !== null ? (update as Update) : {};
}

const isParents = (part: unknown): boolean => isCommand(part) && part.graph === Command.PARENT;

const listOf = (value: unknown): unknown[] =>
  value === undefined || value === null ? [] : Array.isArray(value) ? value : [value];

function asMessage(item: unknown): unknown {
  if (isBaseMessage(item) || typeof item !== "object" || item === null) return item;
  try {
    return coerceMessageLikeToMessage(item as never);
  } catch {
    return item;
  }
}

/** The last message of the model in a node's result. */
export function replyIn(result: unknown, key: string): AIMessage | undefined {
  return partsOf(result)
    .filter((part) => !isParents(part))
    .flatMap((part) => listOf(updateOf(part)[key]))
    .map(asMessage)
    .findLast((item): item is AIMessage => AIMessage.isInstance(item));
}

/** The result with `message` in the place of the model's last one. */
export function withReply(result: unknown, key: string, message: AIMessage): unknown {
  let left = true;
  const parts = partsOf(result)
    .toReversed()
    .map((part) => {
      const update = updateOf(part);
      const items = listOf(update[key]).map(asMessage);
      const at = isParents(part) ? -1 : items.findLastIndex((item) => AIMessage.isInstance(item));
      if (!left || at < 0) return part;
      left = false;
      const replaced = { ...update, [key]: items.with(at, message) };
      return isCommand(part) ? new Command({ ...partsOfCommand(part), update: replaced }) : replaced;
    });
  return Array.isArray(result) ? parts.toReversed() : parts[0];
}

const partsOfCommand = ({ graph, goto, resume }: Command) => ({
  ...(graph === undefined ? {} : { graph }),
  ...(goto === undefined ? {} : { goto }),
  ...(resume === undefined ? {} : { resume }),
});

export interface Restored {
  readonly key: string;
  readonly messages: readonly BaseMessage[];
  /** Updates that restore the other channels. */
  readonly update: Readonly<Update>;
  /** What a channel holds after a write to a value; undefined where the write takes its place. */
  reduce(name: string, value: unknown, write: unknown): unknown;
}

const added = (list: BaseMessage[], write: unknown): BaseMessage[] =>
  Overwrite.isInstance(write)
    ? [...(write.value as BaseMessage[])]
    : messagesStateReducer(list, listOf(write) as BaseMessage[]);

/** The node's writes upon a state that is restored by the same step. */
export function uponRestored(result: unknown, { key, messages, update, reduce }: Restored): unknown {
  const combined: Update = { ...update };
  let list = [...messages];
  for (const part of partsOf(result)) {
    if (isParents(part)) continue;
    for (const [name, write] of Object.entries(updateOf(part))) {
      if (name === key) list = added(list, write);
      else if (Overwrite.isInstance(combined[name]) && !Overwrite.isInstance(write))
        combined[name] = new Overwrite(reduce(name, (combined[name] as Overwrite).value, write));
      else combined[name] = write;
    }
  }
  const commands = partsOf(result).filter((part): part is Command => isCommand(part));
  const restored = { ...combined, [key]: messagesUpdate(list) };
  if (commands.length === 0) return restored;
  return [
    restored,
    ...commands.map((part) => (isParents(part) ? part : new Command({ ...partsOfCommand(part), update: {} }))),
  ];
}
