// Optional markers: each checkpoint's id at its place in the conversation, rendered for the model and never stored.
import type { BaseMessage } from "@langchain/core/messages";
import type { Thread } from "agentrewind";
import { anchorOf } from "./messages.ts";

/** The text of a marker depends on the checkpoint alone, so that a provider's prompt cache stays valid over the turns. */
export function withMarkers(messages: readonly BaseMessage[], thread: Thread): BaseMessage[] {
  const ids = new Map(thread.checkpoints().map((one) => [one.anchor, one.id]));
  return messages.map((message) => {
    const id = message.id === undefined ? undefined : ids.get(anchorOf(message));
    if (id === undefined) return message;
    const text = `\n[checkpoint ${id}]`;
    const content =
      typeof message.content === "string" ? message.content + text : [...message.content, { type: "text", text }];
    const Message = message.constructor as new (fields: unknown) => BaseMessage;
    return new Message({ ...message, content, id: message.id });
  });
}
