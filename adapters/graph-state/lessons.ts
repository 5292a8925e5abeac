// Lessons that a summary or a trimmed history has cut out of the conversation are shown to the model all the same, once.
import { type BaseMessage, HumanMessage } from "@langchain/core/messages";
import type { Thread } from "agentrewind";
import { isSummary, mark, textOf } from "./messages.ts";

/** Rendered for the model and never stored: its place and its text depend on what is missing alone, so that a provider's prompt cache stays valid. */
export function withLessons(thread: Thread, messages: readonly BaseMessage[]): readonly BaseMessage[] {
  const text = thread.reminder(textsOf(messages));
  if (text === null) return messages;
  const at = messages.findLastIndex(isSummary) + 1;
  const told = new HumanMessage({
    id: `${mark}-lessons`,
    content: text,
    additional_kwargs: { [mark]: { lessons: true } },
  });
  return [...messages.slice(0, at), told, ...messages.slice(at)];
}

/** Newest first: what a rewind told stands near the end, as a rule. */
function* textsOf(messages: readonly BaseMessage[]): Generator<string> {
  for (let at = messages.length - 1; at >= 0; at--) yield textOf(messages[at] as BaseMessage);
}
