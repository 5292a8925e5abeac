// Messages and channel values as bytes, with LangGraph's own serializer: the same fidelity as the user's checkpointer.
import { BaseMessage } from "@langchain/core/messages";
import { JsonPlusSerializer } from "@langchain/langgraph-checkpoint";
import type { Serializer } from "agentrewind";

const plus = new JsonPlusSerializer();

/** What of a message can be set anew: of every kind, of a reply, of a result. */
interface Fields {
  readonly content?: unknown;
  readonly id?: unknown;
  readonly name?: unknown;
  readonly additional_kwargs?: unknown;
  readonly response_metadata?: unknown;
  readonly tool_calls?: unknown;
  readonly invalid_tool_calls?: unknown;
  readonly usage_metadata?: unknown;
  readonly tool_call_id?: unknown;
  readonly status?: unknown;
  readonly artifact?: unknown;
}

/** Written out: it runs for each message of the conversation in every turn. */
const isSame = (a: Fields, b: Fields): boolean =>
  a.content === b.content &&
  a.id === b.id &&
  a.name === b.name &&
  a.additional_kwargs === b.additional_kwargs &&
  a.response_metadata === b.response_metadata &&
  a.tool_calls === b.tool_calls &&
  a.invalid_tool_calls === b.invalid_tool_calls &&
  a.usage_metadata === b.usage_metadata &&
  a.tool_call_id === b.tool_call_id &&
  a.status === b.status &&
  a.artifact === b.artifact;

function fieldsOf(message: Fields): Fields {
  const { content, id, name, additional_kwargs, response_metadata } = message;
  const { tool_calls, invalid_tool_calls, usage_metadata, tool_call_id, status, artifact } = message;
  return {
    ...{ content, id, name, additional_kwargs, response_metadata },
    ...{ tool_calls, invalid_tool_calls, usage_metadata, tool_call_id, status, artifact },
  };
}

/** An item is the serializer's type, a line feed, and its bytes. */
export const langchainSerializer: Serializer = {
  name: "langgraph-json-plus@1",
  async encode(item) {
    const [type, bytes] = await plus.dumpsTyped(item);
    return Buffer.concat([Buffer.from(`${type}\n`), bytes]);
  },
  async decode(bytes) {
    const end = bytes.indexOf(10);
    return plus.loadsTyped(Buffer.from(bytes.subarray(0, end)).toString("latin1"), bytes.subarray(end + 1));
  },
  mark: (item) => (BaseMessage.isInstance(item) ? fieldsOf(item as Fields) : undefined),
  isMarked: (item, mark) => mark !== undefined && isSame(item as Fields, mark as Fields),
};
