// A tool's call around which effects are kept, as LangChain's results.
import { type BaseMessage, ToolMessage } from "@langchain/core/messages";
import { type Command, isGraphBubbleUp } from "@langchain/langgraph";
import type { Thread, ToolRun } from "agentrewind";
import { insideOf } from "./inner-calls.ts";

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

/**
 * Also for what models call inside of the tool: effects of a subagent are those of the conversation that delegated to it.
 * @param reply id of the message that holds the call: ids of calls alone may come again
 * @param signal aborted when a rewind has ended the tool: what is called inside of it from then on is not run
 */
export function runTool<R extends Request>(
  thread: Thread,
  request: R,
  handler: (request: R) => Result | Promise<Result>,
  reply: string | undefined,
  signal?: AbortSignal,
): Promise<Result> {
  const { id, name, args } = request.toolCall;
  const callId = id === undefined || reply === undefined ? undefined : `${reply}/${id}`;
  const made = new Set<number>();
  const outer = {
    call: { id, name },
    answer(call: Request["toolCall"], innerReply: string | undefined, invoke: (args: Args) => Promise<unknown>) {
      signal?.throwIfAborted();
      const known = callId !== undefined && innerReply !== undefined && call.id !== undefined;
      return recorded(thread, call, (given) => invoke(given) as Promise<Result>, {
        callId: known ? `${callId}/${innerReply}/${call.id}` : undefined,
        inside: callId === undefined ? undefined : { call: callId, made },
        made: (effect) => made.add(effect),
      });
    },
  };
  return recorded(
    thread,
    request.toolCall,
    (given) => {
      const same = given === args ? request : { ...request, toolCall: { ...request.toolCall, args: given } };
      return insideOf(outer, async () => handler(same));
    },
    { callId },
  );
}

type Args = Request["toolCall"]["args"];

interface Recorded {
  readonly callId: string | undefined;
  readonly inside?: ToolRun<Result>["inside"] | undefined;
  /** Told the effect that was recorded. */
  readonly made?: (effect: number) => void;
}

async function recorded(
  thread: Thread,
  { id, name, args }: Request["toolCall"],
  run: (args: Args) => Promise<Result>,
  { callId, inside, made }: Recorded,
): Promise<Result> {
  const outcome = await thread.runTool<Result>(
    {
      tool: name,
      args,
      ...(callId === undefined ? {} : { callId }),
      ...(inside === undefined ? {} : { inside }),
      encode,
      returned,
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
    (given) => run(given as Args),
  );
  if (outcome.status === "held") return new ToolMessage({ name, tool_call_id: id ?? "", content: outcome.message });
  if (outcome.effect !== null) made?.(outcome.effect.id);
  return outcome.result;
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

/** LangChain makes a text of what is none. */
function returned(result: Result): unknown {
  const content = messageOf(result)?.content ?? "";
  if (typeof content !== "string") return content;
  try {
    const value: unknown = JSON.parse(content);
    // "007" and numbers that are too long for one are texts.
    return typeof value === "object" || JSON.stringify(value) === content ? value : content;
  } catch {
    return content;
  }
}

/** Artifacts can be anything; what is not JSON is not kept. */
function plain(artifact: unknown): unknown {
  try {
    return artifact === undefined ? undefined : JSON.parse(JSON.stringify(artifact));
  } catch {
    return undefined;
  }
}
