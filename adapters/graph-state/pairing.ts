// Keeps calls and results paired: a reply cut down to one of its calls, results for calls that never got one.
import { AIMessage, type BaseMessage, ToolMessage } from "@langchain/core/messages";
import { known } from "./known.ts";
import { mark } from "./messages.ts";

interface CallBlock {
  readonly id?: string;
  readonly call_id?: string;
}

/** The same reply with one of its calls only. Providers repeat the calls in their own fields: content blocks, raw output items. */
export function withOnlyCall(reply: AIMessage, id: string | undefined): AIMessage {
  const dropped = new Set((reply.tool_calls ?? []).map((call) => call.id).filter((other) => other !== id));
  const isKept = (block: unknown): boolean => {
    const { id: blockId, call_id: callId } = block as CallBlock;
    return !(blockId !== undefined && dropped.has(blockId)) && !(callId !== undefined && dropped.has(callId));
  };
  const { tool_calls: raw, ...kwargs } = reply.additional_kwargs;
  const { output, ...metadata } = reply.response_metadata;
  return new AIMessage({
    content: typeof reply.content === "string" ? reply.content : (reply.content.filter(isKept) as never),
    tool_calls: (reply.tool_calls ?? []).filter((call) => call.id === id),
    additional_kwargs: raw === undefined ? kwargs : { ...kwargs, tool_calls: raw.filter((call) => call.id === id) },
    response_metadata: output === undefined ? metadata : { ...metadata, output: keptOutput(output, isKept) },
    ...(reply.id === undefined ? {} : { id: reply.id }),
    ...(reply.name === undefined ? {} : { name: reply.name }),
    ...(reply.usage_metadata === undefined ? {} : { usage_metadata: reply.usage_metadata }),
  });
}

const keptOutput = (output: unknown, isKept: (item: unknown) => boolean): unknown =>
  Array.isArray(output) ? output.filter(isKept) : output;

const unanswered =
  "No result: the run was stopped or sent back before this call had ended. Look at what it did before you send it again.";

/**
 * `messages` with one result for every call and no other; the same array when it is so already. An aborted run leaves calls without results, a history that was cut
 * leaves results without calls, and providers refuse both.
 */
export function paired(messages: readonly BaseMessage[]): readonly BaseMessage[] {
  const { fault, open } = known(messages);
  if (fault >= messages.length && (open[messages.length - 1] ?? 0) === 0) return messages;
  return answered(withoutOrphans(messages));
}

/** Results stand behind their calls, each call has one. */
function withoutOrphans(messages: readonly BaseMessage[]): readonly BaseMessage[] {
  let open = new Set<string | undefined>();
  const kept = messages.filter((message) => {
    if (ToolMessage.isInstance(message)) return open.delete(message.tool_call_id);
    open = new Set(AIMessage.isInstance(message) ? (message.tool_calls ?? []).map((call) => call.id) : []);
    return true;
  });
  return kept.length === messages.length ? messages : kept;
}

function answered(messages: readonly BaseMessage[]): readonly BaseMessage[] {
  const results = new Set(messages.filter(ToolMessage.isInstance).map((message) => message.tool_call_id));
  const missing = (message: BaseMessage): ToolMessage[] =>
    !AIMessage.isInstance(message)
      ? []
      : (message.tool_calls ?? [])
          .filter((call) => call.id !== undefined && !results.has(call.id))
          .map(
            ({ id, name }) =>
              new ToolMessage({
                id: `${mark}-unanswered-${id}`,
                name,
                tool_call_id: id as string,
                status: "error",
                content: unanswered,
              }),
          );
  let added = false;
  const complete: BaseMessage[] = [];
  const due: ToolMessage[] = [];
  for (const message of messages) {
    if (!ToolMessage.isInstance(message)) complete.push(...due.splice(0));
    complete.push(message);
    const here = missing(message);
    added ||= here.length > 0;
    due.push(...here);
  }
  complete.push(...due);
  return added ? complete : messages;
}
