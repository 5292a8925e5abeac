// A tool's call around which effects are kept, as LangChain's results.
import { type BaseMessage, ToolMessage } from "@langchain/core/messages";
import { type Command, isGraphBubbleUp } from "@langchain/langgraph";
import type { Thread } from "agentrewind";

interface Request {
  readonly toolCall: {
    readonly id?: string | undefined;
    readonly name: string;
    readonly args: Record<string, unknown>;
  };
}

type Result = ToolMessage | Command;

/** What of a result is kept, so that it can be given again for another call. */
interface Stored {
  readonly content: ToolMessage["content"];
  readonly status: "success" | "error" | null;
  readonly artifact: unknown;
}

/** @param reply id of the message that holds the call: ids of calls alone may come again */
export async function runTool<R extends Request>(
  thread: Thread,
  request: R,
  handler: (request: R) => Result | Promise<Result>,
  reply: string | undefined,
): Promise<Result> {
  const { id, name, args } = request.toolCall;
  const outcome = await thread.runTool<Result>(
    {
      tool: name,
      args,
      ...(id === undefined || reply === undefined ? {} : { callId: `${reply}/${id}` }),
      encode,
      decode: (stored) => {
        const { content, status, artifact } = stored as Stored;
        return new ToolMessage({
          name,
          tool_call_id: id ?? "",
          content,
          ...(status === null ? {} : { status }),
          ...(artifact === undefined ? {} : { artifact }),
        });
      },
      isFailure: (result) => messageOf(result)?.status === "error",
      isPause: isGraphBubbleUp,
    },
    (given) => handler(given === args ? request : { ...request, toolCall: { ...request.toolCall, args: given } }),
  );
  if (outcome.status !== "held") return outcome.result;
  return new ToolMessage({ name, tool_call_id: id ?? "", content: outcome.message });
}

/** Of a command: the answer to the call; what else it updates is not given again. */
function messageOf(result: Result): ToolMessage | undefined {
  if (ToolMessage.isInstance(result)) return result;
  const { messages } = ((result as Command).update ?? {}) as { messages?: BaseMessage[] };
  return Array.isArray(messages) ? messages.find((one) => ToolMessage.isInstance(one)) : undefined;
}

function encode(result: Result): Stored {
  const message = messageOf(result);
  return { content: message?.content ?? "", status: message?.status ?? null, artifact: plain(message?.artifact) };
}

/** Artifacts can be anything; what is not JSON is not kept. */
function plain(artifact: unknown): unknown {
  try {
    return artifact === undefined ? undefined : JSON.parse(JSON.stringify(artifact));
  } catch {
    return undefined;
  }
}
