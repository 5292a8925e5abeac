// What is worked out for each message of a list that as a rule only grows: for what was there before, it is not worked out again.
import { AIMessage, type BaseMessage, ToolMessage } from "@langchain/core/messages";

interface Known {
  readonly messages: BaseMessage[];
  readonly anchors: (string | undefined)[];
  /** How many calls have no result yet, behind each message. */
  readonly open: number[];
  /** Where the message that made a call stands, and its id; by the call's. What was cut off since stands there no more. */
  readonly callers: Map<string, { readonly at: number; readonly id: string }>;
  /** Where calls and results first do not pair up. */
  fault: number;
}

/** By their first message: lists of one conversation begin with the same object. */
const lists = new WeakMap<BaseMessage, Known>();

/** So many of the newest messages are looked at again: they get ids and lose calls in place. */
const recent = 16;

export function known(messages: readonly BaseMessage[]): Omit<Known, "callers" | "messages"> {
  const [first] = messages;
  if (first === undefined) return { anchors: [], open: [], fault: Number.POSITIVE_INFINITY };
  let list = lists.get(first);
  if (list === undefined) {
    list = { messages: [], anchors: [], open: [], callers: new Map(), fault: Number.POSITIVE_INFINITY };
    lists.set(first, list);
  }
  let shared = 0;
  const most = Math.min(list.messages.length, messages.length);
  while (shared < most && list.messages[shared] === messages[shared]) shared++;
  goOn(list, messages, shared);
  return list;
}

function goOn(list: Known, messages: readonly BaseMessage[], shared: number): void {
  let from = Math.max(0, shared - recent);
  while (from > 0 && list.open[from - 1] !== 0) from--;
  list.messages.length = from;
  list.anchors.length = from;
  list.open.length = from;
  if (list.fault >= from) list.fault = Number.POSITIVE_INFINITY;
  let open = new Set<string>();
  for (let at = from; at < messages.length; at++) {
    const message = messages[at] as BaseMessage;
    let sound: boolean;
    if (ToolMessage.isInstance(message)) sound = open.delete(message.tool_call_id);
    else {
      sound = open.size === 0;
      open = callsOf(list, message);
    }
    if (!sound) list.fault = Math.min(list.fault, at);
    list.messages.push(message);
    list.anchors.push(anchorOf(list, message));
    list.open.push(open.size);
  }
}

function callsOf(list: Known, message: BaseMessage): Set<string> {
  const open = new Set<string>();
  if (!AIMessage.isInstance(message)) return open;
  for (const { id } of message.tool_calls ?? []) {
    if (id === undefined) continue;
    open.add(id);
    if (message.id !== undefined) list.callers.set(id, { at: list.messages.length, id: message.id });
  }
  return open;
}

function anchorOf({ callers, messages }: Known, message: BaseMessage): string | undefined {
  const caller = ToolMessage.isInstance(message) ? callers.get(message.tool_call_id) : undefined;
  if (caller !== undefined && messages[caller.at]?.id === caller.id) {
    return `tool:${caller.id}/${(message as ToolMessage).tool_call_id}`;
  }
  if (message.id === undefined) return undefined;
  const source = message.additional_kwargs?.lc_source;
  return `${message.getType()}:${message.id}${typeof source === "string" ? `:${source}` : ""}`;
}
