// Messages and channel values as bytes, with LangGraph's own serializer: the same fidelity as the user's checkpointer.
import { JsonPlusSerializer } from "@langchain/langgraph-checkpoint";
import type { Serializer } from "agentrewind";

const plus = new JsonPlusSerializer();

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
};
