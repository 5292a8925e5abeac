// Optional markers: each checkpoint's id at its place in the conversation, rendered for the model and never stored.
import type { BaseMessage } from "@langchain/core/messages";
import type { Thread } from "agentrewind";
import { anchorsOf } from "./messages.ts";

/**
 * The text of a marker depends on the checkpoint alone, so that a provider's prompt cache stays valid over the turns.
 * @param turn the checkpoint that is in the making
 */
export function withMarkers(
  messages: readonly BaseMessage[],
  thread: Thread,
  turn: { readonly id: string; readonly anchor: string | undefined },
): BaseMessage[] {
  const ids = new Map([...thread.checkpoints(), turn].map((one) => [one.anchor ?? null, one.id]));
  const anchors = anchorsOf(messages);
  return messages.map((message, index) => {
    const anchor = anchors[index];
    const id = anchor === undefined ? undefined : ids.get(anchor);
    if (id === undefined) return message;
    const text = `\n[checkpoint ${id}]`;
    const content =
      typeof message.content === "string" ? message.content + text : [...message.content, { type: "text", text }];
    const Message = message.constructor as new (fields: unknown) => BaseMessage;
    return new Message({ ...message, content, id: message.id });
  });
}
