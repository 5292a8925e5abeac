// A rewind's result as LangChain's state: the messages and channels of the checkpoint, and what comes behind them.
import { type BaseMessage, HumanMessage, RemoveMessage } from "@langchain/core/messages";
import { REMOVE_ALL_MESSAGES } from "@langchain/langgraph";
import { type Context, RewindError, type RewindResult, type Thread } from "agentrewind";
import { type ChannelKinds, channelUpdate, differingChannels } from "./channels.ts";
import { isFromPerson, isSummary, mark } from "./messages.ts";

/** Messages of a person that the target's context does not hold, in their order; also those of which `current` holds only a summary. */
export async function newerFromPerson(
  thread: Thread,
  current: readonly BaseMessage[],
  target: Context,
): Promise<BaseMessage[]> {
  const held = new Set((target.messages as BaseMessage[]).map((message) => message.id));
  const newer = new Map<string | undefined, BaseMessage>();
  const collect = (messages: readonly BaseMessage[]): void => {
    for (const message of messages) {
      if (isFromPerson(message) && !held.has(message.id)) newer.set(message.id, message);
    }
  };
  if (current.some(isSummary)) {
    for (const { id } of thread.checkpoints()) collect((await thread.context(id)).messages as BaseMessage[]);
  }
  collect(current);
  return [...newer.values()];
}

/** The abandoned part of `current`: what the target's context does not hold. */
export function abandonedPart(current: readonly BaseMessage[], target: Context): BaseMessage[] {
  const held = new Set((target.messages as BaseMessage[]).map((message) => message.id));
  return current.filter((message) => !held.has(message.id));
}

/** Tells what is true now. It also marks in LangGraph's state where the rewind put the conversation. */
export function tellMessage(result: RewindResult, content = result.message): HumanMessage {
  const { checkpoint, epoch, scope } = result;
  return new HumanMessage({
    id: `${mark}-${checkpoint.thread}-${epoch}`,
    content,
    additional_kwargs: { [mark]: scope === "environment" ? { epoch } : { checkpoint: checkpoint.id, epoch } },
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
      `The state ${differing.map((name) => `"${name}"`).join(", ")} differs from the checkpoint, and nobody knows how to put it back.`,
      {
        hint: "Whoever runs this agent: wrap it once, `const agent = rw.attach(createAgent({ …, middleware: [rw] }))`, a graph `rg.attach(graph.compile(…))`.",
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
