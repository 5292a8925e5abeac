// Messages and channel values as bytes, with LangGraph's own serializer: the same fidelity as the user's checkpointer.
import { BaseMessage } from "@langchain/core/messages";
import { JsonPlusSerializer } from "@langchain/langgraph-checkpoint";
import type { Serializer } from "agentrewind";

const plus = new JsonPlusSerializer();

/** What of a message can be set anew: of every kind, of a reply, of a result. */
const fields = [
  ...["content", "id", "name", "additional_kwargs", "response_metadata"],
  ...["tool_calls", "invalid_tool_calls", "usage_metadata"],
  ...["tool_call_id", "status", "artifact"],
] as const;

type Fields = Readonly<Record<string, unknown>>;

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
  mark: (item) =>
    BaseMessage.isInstance(item)
      ? Object.fromEntries(fields.map((name) => [name, (item as unknown as Fields)[name]]))
      : undefined,
  isMarked(item, mark) {
    if (mark === undefined) return false;
    for (const name of fields) if ((item as Fields)[name] !== (mark as Fields)[name]) return false;
    return true;
  },
};
