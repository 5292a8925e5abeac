// A rewind's result as LangChain's state: the update that makes the messages and channels those of the checkpoint.
import { type BaseMessage, HumanMessage, RemoveMessage } from "@langchain/core/messages";
import { REMOVE_ALL_MESSAGES } from "@langchain/langgraph";
import { type Context, RewindError, type RewindResult } from "agentrewind";
import { type ChannelKinds, channelUpdate, differingChannels } from "./channels.ts";
import { isFromPerson, mark } from "./messages.ts";

export interface Restored {
  /** The whole new list, ending with the message that tells what is true now. */
  readonly messages: BaseMessage[];
  readonly channels: Record<string, unknown>;
}

/** Messages of a person that the target's context does not hold. */
export function newerFromPerson(current: readonly BaseMessage[], target: Context): BaseMessage[] {
  const held = new Set((target.messages as BaseMessage[]).map((message) => message.id));
  return current.filter((message) => isFromPerson(message) && !held.has(message.id));
}

/** The abandoned part of `current`: what the target's context does not hold. */
export function abandonedPart(current: readonly BaseMessage[], target: Context): BaseMessage[] {
  const held = new Set((target.messages as BaseMessage[]).map((message) => message.id));
  return current.filter((message) => !held.has(message.id));
}

export function tellMessage(result: RewindResult): HumanMessage {
  const { checkpoint, epoch } = result;
  return new HumanMessage({
    id: `${mark}-${checkpoint.thread}-${epoch}`,
    content: result.message,
    additional_kwargs: { [mark]: { checkpoint: checkpoint.id, epoch } },
  });
}

/** @throws NOT_ATTACHED when a channel differs and the agent's channels are not known */
export async function channelsToRestore(
  current: Readonly<Record<string, unknown>>,
  target: Context,
  kinds: ChannelKinds | undefined,
): Promise<Record<string, unknown>> {
  const wanted = target.channels ?? {};
  const differing = await differingChannels(current, wanted);
  if (differing.length === 0) return {};
  if (kinds === undefined) {
    throw new RewindError(
      "NOT_ATTACHED",
      `The state ${differing.map((name) => `"${name}"`).join(", ")} differs from the checkpoint, and the middleware does not know how to put it back.`,
      {
        hint: "Whoever runs this agent: wrap it once, `const agent = rw.attach(createAgent({ …, middleware: [rw] }))`.",
        details: { channels: differing },
      },
    );
  }
  return channelUpdate(differing, wanted, kinds);
}

export const messagesUpdate = (messages: readonly BaseMessage[]): BaseMessage[] => [
  new RemoveMessage({ id: REMOVE_ALL_MESSAGES }),
  ...messages,
];
